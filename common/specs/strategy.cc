#include "common/specs/strategy.h"

#include <charconv>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace dt {
namespace {

// Reads a text from left to right; every function says whether it found what it reads.
class StrategyText {
 public:
  explicit StrategyText(std::string_view text) {
    for (const char c : text) {
      if (c != ' ') text_ += c;
    }
  }

  std::optional<Strategy> Read() {
    Strategy strategy;
    const bool read = List('(', ')', strategy, [this](std::vector<DimParts>& dims) {
      return List('(', ')', dims, [this](DimParts& parts) { return Dim(parts); });
    });
    if (!read || at_ != text_.size()) return std::nullopt;
    return strategy;
  }

 private:
  bool Take(char c) {
    if (at_ >= text_.size() || text_[at_] != c) return false;
    ++at_;
    return true;
  }
  // Items between brackets, with commas between them; the last comma may be followed by none.
  template <class Item>
  bool List(char open, char close, std::vector<Item>& items, const auto& read) {
    if (!Take(open)) return false;
    while (!Take(close)) {
      if (!items.empty() && !Take(',')) return false;
      if (!items.empty() && Take(close)) return true;
      if (!read(items.emplace_back())) return false;
    }
    return true;
  }
  bool Dim(DimParts& parts) {
    const auto number = [this](uint32_t& to) { return Number(to); };
    if (at_ < text_.size() && text_[at_] == '[') {
      return List('[', ']', parts, number) && !parts.empty();
    }
    return Number(parts.emplace_back());
  }
  bool Number(uint32_t& to) {
    const char* const begin = text_.data() + at_;
    const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), to);
    if (error != std::errc() || to == 0) return false;
    at_ += static_cast<size_t>(end - begin);
    return true;
  }

  std::string text_;
  size_t at_ = 0;
};

}  // namespace

std::string TextOf(const Strategy& strategy) {
  std::string text;
  for (const auto& dims : strategy) {
    text += text.empty() ? "(" : ",(";
    for (size_t d = 0; d < dims.size(); ++d) {
      if (d > 0) text += ',';
      text += dims[d].size() == 1 ? fmt::format("{}", dims[d][0])
                                  : fmt::format("[{}]", fmt::join(dims[d], ","));
    }
    text += ')';
  }
  return "(" + text + ")";
}

std::optional<Strategy> ParseStrategy(std::string_view text) { return StrategyText(text).Read(); }

}  // namespace dt
