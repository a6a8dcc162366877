// How the samples of a slice are divided among the devices of a team.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "common/layout/layout.h"

namespace dt {

// The part of a device, as pairs of a number of parts k and a stride s: its number is
// device / s mod k. The first pair is the outer one; without pairs it is the whole.
using SamplePart = std::vector<int64_t>;

// The device's part of n samples. Samples are divided in units of 1 / devices of their number,
// rounded up: a part among k has devices / k units, the last parts what is left. So a part of a
// part is a part, whatever the number of samples is, which plans do not know. REQUIRES: the parts
// are as the layout of a team of this size makes them.
Range SamplesOf(const SamplePart& part, int64_t n, uint32_t devices, DeviceIndex device);

// Whether every device of a team has its own part of the samples, which are dimension 0, and all of
// the other dimensions. It may have more samples.
bool HasOwnSamples(const Layout& layout);
// The layout of a value with this many dimensions of which each device has its own samples only.
Layout SamplesInOrder(uint32_t devices, size_t dims);

// The symbol for their number in a graph: "B/4s2" for the pair (4, 2), "B" for the whole.
std::string SymbolOf(const SamplePart& part);
// The reverse. Empty for other symbols.
SamplePart SamplePartOf(std::string_view symbol);

}  // namespace dt
