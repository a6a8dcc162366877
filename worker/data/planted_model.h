// The model behind generated data: a logit from a weight per string of most columns, low-rank
// interactions of some pairs of columns, and mildly curved effects of some counts. Its parts are
// scaled to fixed variances, so that data of any seed is equally hard. Immutable after
// construction: any thread.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace dt::worker {

class PlantedModel {
 public:
  static constexpr size_t kCounts = 13;
  static constexpr size_t kFields = 26;
  static constexpr int64_t kMissing = INT64_MIN;

  struct Sample {
    std::array<int64_t, kCounts> counts;  // kMissing: an empty cell.
    std::array<uint32_t, kFields> ids;    // Ids of the strings, in the order of falling frequency.
    double probability = 0;
    bool label = false;
  };

  PlantedModel(uint64_t seed, double vocabulary);

  // Sample number `row`: a pure function of (seed, vocabulary, row).
  Sample Draw(uint64_t row) const;
  // The string of an id: 8 hex digits; empty for an empty cell.
  const std::string& Text(size_t field, uint32_t id) const { return fields_[field].texts[id]; }

 private:
  static constexpr size_t kRank = 2;
  using Factor = std::array<double, kRank>;

  // A column of strings whose frequencies follow a power law, drawn by Walker's alias method.
  struct Field {
    std::vector<double> frequency;
    std::vector<uint32_t> keep;   // The drawn slot is kept if a 32-bit number is at most this.
    std::vector<uint32_t> alias;  // The slot that is taken otherwise.
    std::vector<double> weights;
    std::vector<Factor> factors;  // Only for columns that interact.
    std::vector<std::string> texts;
  };
  void MakeField(size_t field, size_t size);
  void MakeAlias(Field& field);
  void MakeWeights(size_t field, double variance);
  void MakeFactors();
  double Interaction(const std::array<uint32_t, kFields>& ids) const;
  int64_t DrawCount(size_t count, const std::array<uint32_t, 4>& bits) const;

  const uint64_t seed_;
  std::vector<Field> fields_;
};

}  // namespace dt::worker
