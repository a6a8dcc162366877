// A placement problem, prepared for many predictions: values with their readers, groups of items,
// and which groups are free to move. Immutable once made.
#pragma once

#include <span>

#include "scheduler/place/problem.h"

namespace dt::scheduler {

class Model {
 public:
  struct Value {
    uint32_t from = 0;
    double bytes = 0;
    PerPlace<double> copy_seconds = {};  // [p]: time of a copy from place p to the other one.
  };
  struct Group {
    std::vector<uint32_t> items;  // Ascending.
    // Includes launches; kCannotRun if one of the items cannot run there.
    PerPlace<double> seconds = {};
    PerPlace<double> memory = {};
    std::optional<uint8_t> forced;  // Set by a tag, or because the other place has no kernel.
  };

  // Errors: Invalid, if a group has two different tags, or has no kernel at its tagged place or at
  // either place; the text names the items. REQUIRES: edges run forward, places are below kPlaces,
  // no number is negative or NaN.
  static Result<Model> Make(PlacementProblem problem);

  const PlacementProblem& problem() const { return problem_; }
  uint32_t item_count() const { return static_cast<uint32_t>(problem_.items.size()); }
  uint32_t value_count() const { return static_cast<uint32_t>(values_.size()); }

  // Launch and computing together.
  double duration(uint32_t item, uint8_t place) const { return durations_[item][place]; }
  // A lower bound of the seconds from the item's end to the end of the step, for any placement.
  double tail(uint32_t item) const { return tails_[item]; }
  const Value& value(uint32_t v) const { return values_[v]; }
  // Values are numbered in the order of their items: `item` makes first_value(item) up to, but not
  // including, first_value(item + 1).
  uint32_t first_value(uint32_t item) const { return first_value_[item]; }
  std::span<const uint32_t> inputs(uint32_t item) const { return Row(inputs_, item); }
  std::span<const uint32_t> readers(uint32_t v) const { return Row(readers_, v); }  // Ascending.

  const std::vector<Group>& groups() const { return groups_; }
  uint32_t group_of(uint32_t item) const { return group_of_[item]; }
  // Groups that may go to either place, in the order of their first items.
  const std::vector<uint32_t>& free_groups() const { return free_groups_; }
  // The groups that `group` reads from or that read from it; ascending.
  std::span<const uint32_t> neighbours(uint32_t group) const { return Row(neighbours_, group); }

  // Whether some placement may exceed a memory limit.
  bool memory_matters() const { return memory_matters_; }

  // Puts every forced group where it must be, and all others at `place`.
  Places AllAt(uint8_t place) const;

 private:
  // Lists of varying length, stored one behind the other.
  struct Lists {
    std::vector<uint32_t> begin = {0};
    std::vector<uint32_t> items;
  };
  static std::span<const uint32_t> Row(const Lists& lists, uint32_t row) {
    return std::span(lists.items)
        .subspan(lists.begin[row], lists.begin[row + 1] - lists.begin[row]);
  }
  static Lists ListsOf(size_t rows, std::vector<std::pair<uint32_t, uint32_t>> pairs);

  void IndexValues();
  Status IndexGroups();
  Status Force(Group& group) const;
  void FindTails();
  void FindWhetherMemoryMatters();

  PlacementProblem problem_;
  std::vector<PerPlace<double>> durations_;
  std::vector<double> tails_;
  std::vector<Value> values_;
  std::vector<uint32_t> first_value_;
  Lists inputs_, readers_, neighbours_;
  std::vector<Group> groups_;
  std::vector<uint32_t> group_of_, free_groups_;
  bool memory_matters_ = false;
};

}  // namespace dt::scheduler
