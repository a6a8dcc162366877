// How a node is cut over the devices of a team, as users write it: for each input the number of
// parts of each dimension, ((2,4),(4,1)).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace dt {

// The parts into which a dimension is cut: one number, or one for each factor of a dimension that
// is a product, the outer one first.
using DimParts = std::vector<uint32_t>;
// By input, by dimension. Later inputs may be missing: they follow from the others.
using Strategy = std::vector<std::vector<DimParts>>;

// "((2,4),(4,1))"; several numbers for a dimension are "[2,3]".
std::string TextOf(const Strategy& strategy);
// The reverse; spaces do not count. Nothing if the text is no strategy, or a number is 0.
std::optional<Strategy> ParseStrategy(std::string_view text);

}  // namespace dt
