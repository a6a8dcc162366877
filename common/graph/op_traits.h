// The properties of an operator for code that orders, places, checks and runs nodes without knowing
// what they compute. They are part of the operator's specification (ops/op_spec.h); no code decides
// by an operator's name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string_view>

namespace dt {

// A set of a node's inputs, by their positions.
class InputSet {
 public:
  constexpr InputSet() = default;
  constexpr InputSet(std::initializer_list<size_t> inputs) {
    for (const size_t input : inputs) bits_ |= uint64_t{1} << input;
  }
  static constexpr InputSet AllBut(size_t input) {
    InputSet set;
    set.bits_ = ~(uint64_t{1} << input);
    return set;
  }

  // Only the first 64 inputs can be in a set.
  constexpr bool Has(size_t input) const { return input < 64 && (bits_ >> input & 1) != 0; }
  constexpr bool empty() const { return bits_ == 0; }

 private:
  uint64_t bits_ = 0;
};

enum class OpKind : uint8_t {
  kCompute,        // A kernel computes the outputs from the inputs.
  kUpdate,         // A kernel changes values in place that outlive the step.
  kCopy,           // The executor moves input 0 to the node's device.
  kCommunication,  // A stream of its own runs a collective with other workers.
};

struct OpTraits {
  OpKind kind = OpKind::kCompute;
  InputSet writes = {};     // The inputs that a node changes in place.
  bool same_bytes = false;  // The only output is input 0 in another shape.

  bool has_kernel() const { return kind == OpKind::kCompute || kind == OpKind::kUpdate; }
};

// The traits of the operator with this name.
using TraitsLookup = OpTraits (*)(std::string_view op);

}  // namespace dt
