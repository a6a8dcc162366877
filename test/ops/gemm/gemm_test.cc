// Goal: products are right in both ways to their tiles, at every edge of blocks, panels and pieces,
// and their bits depend neither on the threads nor on how they are cut. Method: numbers of few
// bits, whose sums are exact, against plain loops; made-up floats, cut in two ways.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "ops/gemm/compiled_product_cpu.h"
#include "ops/gemm/gemm_tiles_cpu.h"
#include "ops/gemm/panel_product_cpu.h"

namespace dt {
namespace {

// How the factors are given.
enum class Given { kFloats, kFirstInBf16, kBothInBf16 };

struct Factors {
  std::vector<float> a, b;
  std::vector<uint16_t> bf16_a, bf16_b;

  Factors(std::vector<float> of_a, std::vector<float> of_b)
      : a(std::move(of_a)), b(std::move(of_b)), bf16_a(a.size()), bf16_b(b.size()) {
    StoreBf16(a, bf16_a.data());
    StoreBf16(b, bf16_b.data());
  }
};

enum class Way { kOfProcessor, kPanels, kCompiled };
bool Has(Way way, bool bf16) {
  return way != Way::kPanels || (bf16 ? MultipliesBf16() : HasAvx512());
}

struct How {
  bool bf16 = false;
  Given given = Given::kFloats;
  bool room = true, rows_vary = false;
  Way way = Way::kOfProcessor;
  uint32_t threads = 1;
};

std::vector<float> Product(const GemmShape& shape, const Factors& factors, const How& how) {
  std::vector<float> c(shape.m * shape.n, -1);
  GemmTask<float> task{.shape = shape, .a = factors.a.data(), .b = factors.b.data()};
  task.c = c.data();
  task.rows_vary = how.rows_vary;
  if (how.given != Given::kFloats) {
    task.a = nullptr;
    task.bf16_a = factors.bf16_a.data();
  }
  if (how.given == Given::kBothInBf16) {
    task.b = nullptr;
    task.bf16_b = factors.bf16_b.data();
  }
  Attrs attrs;
  if (how.bf16) attrs["math"] = std::string("bf16");
  std::vector<std::byte> scratch;
  UseMath(attrs, task, scratch, 0);
  if (!how.room) task.room = nullptr;
  TaskPool pool(how.threads);
  if (how.way == Way::kOfProcessor) {
    Gemm(pool, task);
    return c;
  }
  const bool panels = how.way == Way::kPanels;
  std::vector<PackedLine> room(
      (panels ? PanelRoom(task) : CompiledRoom(task)) / sizeof(PackedLine) + 1);
  task.room = how.room || !panels ? reinterpret_cast<std::byte*>(room.data()) : nullptr;
  const auto then = [](const GemmTile<float>&) {};
  if (panels) PanelTiles(pool, task, then);
  if (!panels) CompiledTiles(pool, task, then);
  return c;
}

// Eighths from -1 to 1.
std::vector<float> FewBits(uint64_t stream, size_t count) {
  std::vector<float> values(count);
  FillNormal(stream, 0, values);
  for (float& x : values) x = std::clamp(std::round(x * 8), -8.0f, 8.0f) / 8;
  return values;
}

class GemmTest : public ::testing::TestWithParam<GemmShape> {};

TEST_P(GemmTest, EqualsPlainLoops) {
  const GemmShape shape = GetParam();
  const Factors factors(FewBits(1, shape.k * shape.m), FewBits(2, shape.k * shape.n));
  std::vector<float> expected(shape.m * shape.n);
  for (size_t k = 0; k < shape.k; ++k) {
    for (size_t i = 0; i < shape.m; ++i) {
      const float a = factors.a[shape.transpose_a ? k * shape.m + i : i * shape.k + k];
      for (size_t j = 0; j < shape.n; ++j) {
        const float b = factors.b[shape.transpose_b ? j * shape.k + k : k * shape.n + j];
        expected[i * shape.n + j] += a * b;
      }
    }
  }
  const bool may_vary = !shape.transpose_a || !shape.transpose_b;
  for (const Way way : {Way::kOfProcessor, Way::kPanels, Way::kCompiled}) {
    if (!Has(way, false)) continue;
    EXPECT_EQ(Product(shape, factors, {.way = way}), expected);
    EXPECT_EQ(Product(shape, factors, {.room = false, .rows_vary = may_vary, .way = way}),
              expected);
    for (const Given given : {Given::kFloats, Given::kFirstInBf16, Given::kBothInBf16}) {
      if (!Has(way, true)) continue;
      EXPECT_EQ(Product(shape, factors, {.bf16 = true, .given = given, .way = way}), expected);
      const How how{.bf16 = true, .given = given, .room = way != Way::kPanels, .way = way};
      EXPECT_EQ(Product(shape, factors, how), expected);
    }
  }
}

TEST_P(GemmTest, BitsDependNeitherOnThreadsNorOnTiles) {
  const GemmShape shape = GetParam();
  std::vector<float> a(shape.k * shape.m), b(shape.k * shape.n);
  FillNormal(3, 0, a);
  FillNormal(4, 0, b);
  const Factors factors(std::move(a), std::move(b));
  const std::vector<float> once = Product(shape, factors, {});
  EXPECT_EQ(Product(shape, factors, {.room = false}), once);
  EXPECT_EQ(Product(shape, factors, {.threads = 3}), once);
  const std::vector<float> bf16 = Product(shape, factors, {.bf16 = true});
  EXPECT_EQ(Product(shape, factors, {.bf16 = true, .given = Given::kBothInBf16}), bf16);
  EXPECT_EQ(Product(shape, factors, {.bf16 = true, .threads = 3}), bf16);
}

std::vector<GemmShape> Shapes() {
  std::vector<GemmShape> shapes;
  const auto add = [&](size_t m, size_t n, size_t k) {
    for (const bool a : {false, true}) {
      for (const bool b : {false, true}) shapes.push_back({m, n, k, a, b});
    }
  };
  add(1, 1, 1);
  add(6, 64, 256);
  add(7, 65, 257);
  add(7, 17, 3);
  add(13, 200, 513);
  add(63, 1, 511);
  add(64, 47, 1024);
  add(130, 96, 1025);
  add(70, 800, 40);
  add(300, 33, 100);
  add(1100, 20, 70);
  add(40, 1700, 600);
  add(3, 5, 0);
  return shapes;
}
INSTANTIATE_TEST_SUITE_P(Shapes, GemmTest, ::testing::ValuesIn(Shapes()), [](const auto& test) {
  const GemmShape& s = test.param;
  return "m" + std::to_string(s.m) + "n" + std::to_string(s.n) + "k" + std::to_string(s.k) +
         (s.transpose_a ? "At" : "A") + (s.transpose_b ? "Bt" : "B");
});

}  // namespace
}  // namespace dt
