#include "worker/train/scorer.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cmath>
#include <cstring>

#include "common/base/check.h"

namespace dt::worker {
namespace {

bool IsBinary(const LossSpec& loss) { return loss.type == "binary_cross_entropy"; }

// Bits whose unsigned order is the order of the floats; -0 counts as 0.
uint32_t SortBits(float value) {
  const auto bits = std::bit_cast<uint32_t>(value + 0.0f);
  return (bits & 0x80000000u) != 0 ? ~bits : bits | 0x80000000u;
}
float FromSortBits(uint32_t bits) {
  return std::bit_cast<float>((bits & 0x80000000u) != 0 ? bits & 0x7fffffffu : ~bits);
}

double Sigmoid(double logit) {
  const double small = std::exp(-std::fabs(logit));
  return logit >= 0 ? 1 / (1 + small) : small / (1 + small);
}

// Of one sample, in float64.
double LossOf(const LossSpec& loss, double output, double label) {
  if (!IsBinary(loss)) return (output - label) * (output - label);
  return std::max(output, 0.0) - output * label + std::log1p(std::exp(-std::fabs(output)));
}

Status Failed(std::string_view doing, const std::string& path) {
  return WithWhere(Unavailable("{} the predictions failed: {}", doing, std::strerror(errno)), path);
}

}  // namespace

Result<Scorer> Scorer::Open(const Graph& graph, const std::string& predictions) {
  Scorer scorer(graph, predictions);
  if (predictions.empty()) return scorer;
  scorer.file_.reset(std::fopen((predictions + ".part").c_str(), "wb"));
  if (scorer.file_ == nullptr) return Failed("creating", predictions);
  std::string header;
  for (const LossSpec& loss : graph.losses) header += (header.empty() ? "" : ",") + loss.name;
  DT_TRY_STATUS(scorer.Write(header + "\n"));
  return scorer;
}

Status Scorer::Write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) == text.size()) return OkStatus();
  return Failed("writing", predictions_);
}

Status Scorer::Add(uint64_t number, const Batch& batch,
                   std::span<const std::span<const float>> outputs) {
  // The first loss is the one that metrics are about.
  const LossSpec& loss = graph_->losses.front();
  const std::span<const float> scores = outputs.front();
  const std::vector<float>& labels = batch.columns[loss.label_column].floats;
  DT_CHECK(scores.size() == batch.samples && labels.size() == batch.samples);
  EvaluatePart part{.batch = number};
  for (size_t i = 0; i < scores.size(); ++i) {
    if (!std::isfinite(scores[i])) {
      return WithHint(Unavailable("output {} of evaluation sample {} is not finite", loss.name,
                                  batch.first_sample + i + 1),
                      "lower the learning rate or set optimizer.clip_norm");
    }
    if (std::isnan(labels[i])) continue;  // A sample without a label is only predicted.
    part.samples += 1;
    part.loss_sum += LossOf(loss, double{scores[i]}, double{labels[i]});
    part.label_sum += double{labels[i]};
    part.prediction_sum += IsBinary(loss) ? Sigmoid(double{scores[i]}) : double{scores[i]};
    if (!IsBinary(loss)) continue;
    scored_.push_back(uint64_t{SortBits(scores[i])} << 1 | (labels[i] != 0.0f ? 1 : 0));
  }
  done_.parts.push_back(part);
  return file_ == nullptr ? OkStatus() : WriteLines(batch, outputs);
}

Status Scorer::WriteLines(const Batch& batch, std::span<const std::span<const float>> outputs) {
  lines_.clear();
  for (size_t i = 0; i < batch.samples; ++i) {
    for (size_t l = 0; l < outputs.size(); ++l) {
      const double output{outputs[l][i]};
      const double predicted = IsBinary(graph_->losses[l]) ? Sigmoid(output) : output;
      fmt::format_to(std::back_inserter(lines_), "{}{}", l == 0 ? "" : ",",
                     static_cast<float>(predicted));
    }
    lines_ += '\n';
  }
  return Write(lines_);
}

Result<EvaluateDone> Scorer::Finish() {
  if (file_ != nullptr) {
    if (std::fclose(file_.release()) != 0) return Failed("writing", predictions_);
    if (std::rename((predictions_ + ".part").c_str(), predictions_.c_str()) != 0) {
      return Failed("renaming", predictions_);
    }
  }
  std::ranges::sort(scored_);
  done_.scores.reserve(scored_.size());
  done_.labels.reserve(scored_.size());
  for (const uint64_t scored : scored_) {
    done_.scores.push_back(FromSortBits(static_cast<uint32_t>(scored >> 1)));
    done_.labels.push_back(static_cast<uint8_t>(scored & 1));
  }
  return std::move(done_);
}

}  // namespace dt::worker
