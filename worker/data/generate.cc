#include "worker/data/generate.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "common/storage/files.h"
#include "worker/data/planted_model.h"

namespace dt::worker {
namespace {

constexpr uint64_t kChunkRows = 8192;
constexpr double kScoreSteps = 2147483647.0;  // Probabilities are ranked in 31 bits.

// Rows [begin, end) as text, and the values from which the truth is computed.
struct Chunk {
  std::string text;
  std::vector<uint32_t> scores;  // Probability in 31 bits, then the label's bit.
  double loss = 0;
};

void AppendNumber(std::string& out, int64_t value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  out.append(digits, end);
}

void FillChunk(const PlantedModel& model, uint64_t begin, uint64_t end, Chunk& chunk) {
  chunk.text.clear();
  chunk.scores.clear();
  chunk.loss = 0;
  for (uint64_t row = begin; row < end; ++row) {
    const PlantedModel::Sample sample = model.Draw(row);
    chunk.text += sample.label ? '1' : '0';
    for (const int64_t count : sample.counts) {
      chunk.text += '\t';
      if (count != PlantedModel::kMissing) AppendNumber(chunk.text, count);
    }
    for (size_t f = 0; f < PlantedModel::kFields; ++f) {
      chunk.text += '\t';
      chunk.text += model.Text(f, sample.ids[f]);
    }
    chunk.text += '\n';
    const auto score = static_cast<uint32_t>(sample.probability * kScoreSteps);
    chunk.scores.push_back(score << 1 | (sample.label ? 1 : 0));
    chunk.loss -= std::log(sample.label ? sample.probability : 1 - sample.probability);
  }
}

// The probability that a random positive is ranked above a random negative, ties as half.
double AucOf(std::vector<uint32_t>& scores) {
  std::sort(scores.begin(), scores.end());
  uint64_t negatives = 0, positives = 0;
  double won = 0;
  for (size_t at = 0; at < scores.size();) {
    uint64_t tied[2] = {};
    const uint32_t score = scores[at] >> 1;
    for (; at < scores.size() && scores[at] >> 1 == score; ++at) ++tied[scores[at] & 1];
    won += static_cast<double>(tied[1]) *
           (static_cast<double>(negatives) + 0.5 * static_cast<double>(tied[0]));
    negatives += tied[0];
    positives += tied[1];
  }
  if (negatives == 0 || positives == 0) return std::numeric_limits<double>::quiet_NaN();
  return won / (static_cast<double>(negatives) * static_cast<double>(positives));
}

Status GenerateSplit(const PlantedModel& model, uint64_t first_row, const std::string& path,
                     TaskPool& pool, SplitTruth& truth) {
  DT_TRY(const auto file, NewFile::Create(path));
  std::vector<uint32_t> scores;
  scores.reserve(truth.rows);
  double loss = 0;
  std::vector<Chunk> chunks(2 * pool.threads());
  const uint64_t batch_rows = chunks.size() * kChunkRows;
  for (uint64_t at = 0; at < truth.rows; at += batch_rows) {
    const uint64_t rows = std::min(batch_rows, truth.rows - at);
    pool.ParallelFor(rows, kChunkRows, [&](size_t begin, size_t end) {
      FillChunk(model, first_row + at + begin, first_row + at + end, chunks[begin / kChunkRows]);
    });
    for (size_t i = 0; i * kChunkRows < rows; ++i) {
      DT_TRY_STATUS(file->Write(chunks[i].text));
      scores.insert(scores.end(), chunks[i].scores.begin(), chunks[i].scores.end());
      loss += chunks[i].loss;
    }
  }
  DT_TRY_STATUS(file->Finish());
  truth.auc = AucOf(scores);
  truth.logloss = loss / static_cast<double>(truth.rows);
  return OkStatus();
}

std::string JsonNumber(double value) {
  return std::isfinite(value) ? fmt::format("{:.6f}", value) : "null";
}

std::string JsonOf(const SplitTruth& truth) {
  return fmt::format("{{\"auc\": {}, \"logloss\": {}}}", JsonNumber(truth.auc),
                     JsonNumber(truth.logloss));
}

}  // namespace

Result<GenerateTruth> GenerateCriteo(const GenerateOptions& options, TaskPool& pool) {
  if (options.rows < 10) return Invalid("rows: {} found, at least 10 expected", options.rows);
  if (!(options.vocabulary >= 0.01 && options.vocabulary <= 1e5)) {
    return Invalid("vocabulary: {} found, 0.01 to 100000 expected", options.vocabulary);
  }
  const PlantedModel model(options.seed, options.vocabulary);
  GenerateTruth truth;
  truth.valid.rows = truth.test.rows = options.rows / 10;
  truth.train.rows = options.rows - truth.valid.rows - truth.test.rows;
  uint64_t row = 0;
  for (const auto& [name, split] :
       {std::pair{"train", &truth.train}, std::pair{"valid", &truth.valid},
        std::pair{"test", &truth.test}}) {
    const std::string path = fmt::format("{}/{}.tsv", options.out_dir, name);
    DT_TRY_STATUS(GenerateSplit(model, row, path, pool, *split));
    row += split->rows;
  }
  DT_TRY_STATUS(
      WriteWholeFile(options.out_dir + "/truth.json",
                     fmt::format("{{\"train\": {},\n \"valid\": {},\n \"test\": {}}}\n",
                                 JsonOf(truth.train), JsonOf(truth.valid), JsonOf(truth.test))));
  return truth;
}

}  // namespace dt::worker
