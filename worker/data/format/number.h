// Numbers and cells from text. Pure; any thread.
#pragma once

#include <charconv>
#include <cstdint>
#include <string>
#include <string_view>

namespace dt::worker {

// Removes blanks around a number.
std::string_view Trimmed(std::string_view text);

// Takes decimal digits only, and is exact; false for anything else, or more than 64 bits.
bool ParseU64(std::string_view text, uint64_t& out);
// Like ParseU64, with an optional sign.
bool ParseI64(std::string_view text, int64_t& out);
// Takes a finite number that fits 32 bits; "+1" and "1e-3" are fine, "nan" and "inf" are not.
bool ParseFloat(std::string_view text, float& out);

// sign(x) · log(1 + |x|), the usual scale for counts.
float SignedLog(float x);

// `text` in quotes, cut to 40 bytes, with control and non-ASCII bytes as \xNN; "an empty cell" if
// it is empty.
std::string Quoted(std::string_view text);

// `column "x": FOUND found, EXPECTED expected`
std::string CellError(std::string_view column, std::string_view found, std::string_view expected);

}  // namespace dt::worker
