#include "worker/train/scorer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <tuple>
#include <utility>

#include "common/base/check.h"
#include "common/base/text.h"
#include "common/specs/loss_type.h"

namespace dt::worker {
namespace {

// Bits whose unsigned order is the order of the floats; -0 counts as 0.
uint32_t SortBits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
float FromSortBits(uint32_t bits) {
  return std::bit_cast<float>((bits & 0x80000000u) != 0 ? bits & 0x7fffffffu : ~bits);
}

// log(1 + e^x)
double Softplus(double x) { return std::max(x, 0.0) + std::log1p(std::exp(-std::fabs(x))); }

double Sigmoid(double logit) {
  const double small = std::exp(-std::fabs(logit));
  return logit >= 0 ? 1 / (1 + small) : small / (1 + small);
}

// What one sample adds to the sums of its batch, and the prediction for it.
struct Scored {
  double loss = 0;        // In float64.
  double prediction = 0;  // Probability, value, class, or score of the pair.
  bool hit = false;
};

// Scores one sample of a loss over classes.
Scored OfClasses(std::span<const float> logits, double label) {
  const auto top = std::ranges::max_element(logits);
  double sum = 0;
  for (const float x : logits) sum += std::exp(double{x} - double{*top});
  Scored scored{.prediction = static_cast<double>(top - logits.begin())};
  if (std::isnan(label)) return scored;  // The sample is only predicted.
  const auto own = static_cast<size_t>(label);
  scored.loss = std::log(sum) + double{*top} - double{logits[own]};
  scored.hit = scored.prediction == label;
  return scored;
}

// Scores one sample of a loss over the positive item, whose score comes first, and its negatives.
Scored OfNegatives(const LossSpec& loss, std::span<const float> scores) {
  const std::span<const float> negatives = scores.subspan(1);
  Scored scored = OfClasses(scores, 0);
  scored.prediction = double{scores[0]};
  scored.hit = scores[0] > *std::ranges::max_element(negatives);
  if (loss.type != "bpr") return scored;
  scored.loss = 0;
  for (const float x : negatives) scored.loss += Softplus(double{x} - double{scores[0]});
  scored.loss /= static_cast<double>(negatives.size());
  return scored;
}

// Scores one sample of a loss with labels 0 and 1.
Scored OfLogit(const LossSpec& loss, double x, double label) {
  const double log_loss = std::max(x, 0.0) - x * label + std::log1p(std::exp(-std::fabs(x)));
  Scored scored{.loss = log_loss, .prediction = Sigmoid(x)};
  const bool positive = label == 1.0;
  if (loss.type == "focal") {
    const double balance = positive ? double{loss.alpha} : 1 - double{loss.alpha};
    scored.loss *= balance * std::pow(Sigmoid(positive ? -x : x), double{loss.gamma});
  } else if (positive) {
    scored.loss *= double{loss.pos_weight};
  }
  return scored;
}

// `output`: that of one sample.
Scored ScoredOf(const LossSpec& loss, std::span<const float> output, double label) {
  if (loss.type == "softmax_cross_entropy") return OfClasses(output, label);
  if (loss.type == "in_batch_softmax") {
    return {.loss = double{output[1]}, .prediction = double{output[0]}, .hit = output[2] != 0};
  }
  if (HasNegatives(loss.type)) return OfNegatives(loss, output);
  const double x{output[0]};
  if (!IsBinaryLoss(loss.type)) return {.loss = (x - label) * (x - label), .prediction = x};
  return OfLogit(loss, x, label);
}

// False for a sample that is only predicted: one without a label, or whose user and item do not
// belong together.
bool Counts(const LossSpec& loss, float label) {
  return !std::isnan(label) && (!IsOfPairs(loss.type) || label != 0.0f);
}

// Calibration is computed for these losses.
bool Predicts(const LossSpec& loss) { return IsBinaryLoss(loss.type) || loss.type == "mse"; }

std::span<const float> OutputOf(std::span<const float> outputs, size_t samples, size_t i) {
  const size_t width = outputs.size() / samples;
  return outputs.subspan(i * width, width);
}

// Bytes of a batch in the message to the scheduler, roughly: its sums, and for each score a float,
// a label and perhaps a group.
uint64_t BytesOf(const LossSpec& loss, const EvaluatePart& part) {
  const uint64_t group = loss.group_column == kNone ? 0 : sizeof(Key);
  const uint64_t sample = IsBinaryLoss(loss.type) ? sizeof(float) + sizeof(uint8_t) + group : 0;
  return sizeof(EvaluatePart) + 16 + part.samples * sample;
}

// Sorts `scored`, and `groups` in the same way unless it is empty.
void SortTogether(std::vector<uint64_t>& scored, std::vector<Key>& groups) {
  if (groups.empty()) {
    std::ranges::sort(scored);
    return;
  }
  std::vector<std::pair<uint64_t, Key>> pairs;
  pairs.reserve(scored.size());
  for (size_t i = 0; i < scored.size(); ++i) pairs.emplace_back(scored[i], groups[i]);
  std::ranges::sort(pairs);
  for (size_t i = 0; i < pairs.size(); ++i) std::tie(scored[i], groups[i]) = pairs[i];
}

}  // namespace

Result<Scorer> Scorer::Open(const Graph& graph, const std::string& predictions,
                            const DataConfig& data, uint64_t report_bytes_max) {
  Scorer scorer(graph, report_bytes_max);
  if (predictions.empty()) return scorer;
  DT_TRY(scorer.file_, NewFile::Create(predictions));
  if (!data.kept_columns.empty()) {
    DT_TRY(scorer.kept_, KeptColumns::Open(data));
  }
  std::vector<std::string> names = data.kept_columns;
  for (const LossSpec& loss : graph.losses) names.push_back(loss.name);
  DT_TRY_STATUS(scorer.file_->Write(JoinText(names, ",") + "\n"));
  return scorer;
}

Status Scorer::Add(uint64_t number, const Batch& batch,
                   std::span<const std::span<const float>> outputs) {
  for (size_t l = 0; l < outputs.size(); ++l) {
    DT_TRY_STATUS(AddLoss(l, number, batch, outputs[l]));
  }
  return file_ == nullptr ? OkStatus() : WriteLines(batch, outputs);
}

Status Scorer::AddLoss(size_t l, uint64_t number, const Batch& batch,
                       std::span<const float> outputs) {
  const LossSpec& loss = graph_->losses[l];
  const bool labelled = loss.label_column != kNone;
  const std::span<const float> labels =
      labelled ? std::span<const float>(batch.columns[loss.label_column].floats)
               : std::span<const float>();
  const SampleRange own = batch.own();
  const bool grouped = loss.group_column != kNone;
  DT_CHECK(!grouped || batch.columns[loss.group_column].keys.size() == own.size());
  DT_CHECK(own.size() == 0 || outputs.size() % own.size() == 0);
  DT_CHECK(!labelled || labels.size() == batch.samples);
  EvaluatePart part{.batch = number};
  for (size_t i = 0; i < own.size(); ++i) {
    const std::span<const float> output = OutputOf(outputs, own.size(), i);
    if (!std::ranges::all_of(output, [](float x) { return std::isfinite(x); })) {
      return WithHint(Unavailable("output {} of evaluation sample {} is not finite", loss.name,
                                  batch.first_sample + own.begin + i + 1),
                      "lower the learning rate or set optimizer.clip_norm");
    }
    const float label = labelled ? labels[own.begin + i] : 1.0f;
    if (!Counts(loss, label)) continue;
    const Scored scored = ScoredOf(loss, output, double{label});
    part.samples += 1;
    part.loss_sum += scored.loss;
    part.hits += scored.hit ? 1 : 0;
    if (Predicts(loss)) part.label_sum += double{label}, part.prediction_sum += scored.prediction;
    if (!IsBinaryLoss(loss.type)) continue;
    scored_[l].push_back(uint64_t{SortBits(output[0])} << 1 | (label != 0.0f ? 1 : 0));
    if (grouped) groups_[l].push_back(batch.columns[loss.group_column].keys[i]);
  }
  done_.losses[l].parts.push_back(part);
  report_bytes_ += BytesOf(loss, part);
  if (report_bytes_ <= report_bytes_max_) return OkStatus();
  return WithHint(Invalid("this worker's scores of an evaluation take more than {}, the limit of a "
                          "message to the scheduler",
                          BytesText(report_bytes_max_)),
                  "evaluate fewer samples, use more workers, or take `group` out of a loss");
}

Status Scorer::WriteLines(const Batch& batch, std::span<const std::span<const float>> outputs) {
  lines_.clear();
  const size_t own = batch.own().size();
  for (size_t i = 0; i < own; ++i) {
    if (kept_ != nullptr) DT_TRY_STATUS(kept_->AppendNext(lines_));
    for (size_t l = 0; l < outputs.size(); ++l) {
      const std::span<const float> output = OutputOf(outputs[l], own, i);
      fmt::format_to(
          std::back_inserter(lines_), "{}{}", l == 0 ? "" : ",",
          static_cast<float>(ScoredOf(graph_->losses[l], output, double{kNoLabel}).prediction));
    }
    lines_ += '\n';
  }
  return file_->Write(lines_);
}

Result<EvaluateDone> Scorer::Finish() {
  if (file_ != nullptr) DT_TRY_STATUS(file_->Finish());
  for (size_t l = 0; l < scored_.size(); ++l) {
    LossScores& done = done_.losses[l];
    SortTogether(scored_[l], groups_[l]);
    done.scores.reserve(scored_[l].size());
    done.labels.reserve(scored_[l].size());
    for (const uint64_t scored : scored_[l]) {
      done.scores.push_back(FromSortBits(static_cast<uint32_t>(scored >> 1)));
      done.labels.push_back(static_cast<uint8_t>(scored & 1));
    }
    done.groups = std::move(groups_[l]);
  }
  return std::move(done_);
}

}  // namespace dt::worker
