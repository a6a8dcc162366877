// Goal: matrix products and their epilogues are right at every edge of tiles, blocks and panels,
// and their bits depend neither on the number of threads nor on how the work is divided. Method:
// numbers of few bits, whose sums are exact, are compared with plain loops; random floats are
// compared between two divisions.
#include <algorithm>
#include <cmath>

#include <gtest/gtest.h>

#include "common/base/philox.h"
#include "ops/gemm/compiled_product_cpu.h"
#include "ops/gemm/gemm_tiles_cpu.h"
#include "ops/gemm/panel_product_cpu.h"

namespace dt {
namespace {

// The types in which the factors are passed.
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

enum class Way { kOfProcessor, kNarrowPanels, kWidePanels, kCompiled };
constexpr Way kWays[] = {Way::kOfProcessor, Way::kNarrowPanels, Way::kWidePanels, Way::kCompiled};
// Whether this processor can multiply so; `bf16`: products of bf16, or results in bf16.
bool Has(Way way, bool bf16) {
  if (way == Way::kWidePanels) return bf16 ? MultipliesBf16() : HasAvx512();
  return way != Way::kCompiled || (bf16 && MultipliesBf16());
}

struct How {
  bool bf16 = false;
  Given given = Given::kFloats;
  bool workspace = true, rows_vary = false;
  Way way = Way::kOfProcessor;
  uint32_t threads = 1;
};

// Computes the task's product of these factors.
void Multiply(GemmTask<float> task, const Factors& factors, const How& how) {
  task.a = factors.a.data();
  task.b = factors.b.data();
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
  if (!how.workspace) task.workspace = nullptr;
  TaskPool pool(how.threads);
  if (how.way == Way::kOfProcessor) return Gemm(pool, task);
  const bool panels = how.way != Way::kCompiled;
  const PanelProduct& by = how.way == Way::kWidePanels ? kAvx512Product : kAvx2Product;
  std::vector<PackedLine> workspace(
      (panels ? PanelWorkspace(task, by) : CompiledWorkspace(task)) / sizeof(PackedLine) + 1);
  task.workspace =
      how.workspace || !panels ? reinterpret_cast<std::byte*>(workspace.data()) : nullptr;
  if (panels) PanelTiles(pool, task, by);
  if (!panels) CompiledTiles(pool, task);
}

std::vector<float> Product(const GemmShape& shape, const Factors& factors, const How& how) {
  std::vector<float> c(shape.m * shape.n, -1);
  Multiply({.shape = shape, .c = c.data()}, factors, how);
  return c;
}

// Multiples of 1/8 from -1 to 1.
std::vector<float> FewBits(uint64_t stream, size_t count) {
  std::vector<float> values(count);
  FillNormal(stream, 0, values);
  for (float& x : values) x = std::clamp(std::round(x * 8), -8.0f, 8.0f) / 8;
  return values;
}

class GemmTest : public ::testing::TestWithParam<GemmShape> {};

std::vector<float> ByPlainLoops(const GemmShape& shape, const Factors& factors) {
  std::vector<float> c(shape.m * shape.n);
  for (size_t k = 0; k < shape.k; ++k) {
    for (size_t i = 0; i < shape.m; ++i) {
      const float a = factors.a[shape.transpose_a ? k * shape.m + i : i * shape.k + k];
      for (size_t j = 0; j < shape.n; ++j) {
        const float b = factors.b[shape.transpose_b ? j * shape.k + k : k * shape.n + j];
        c[i * shape.n + j] += a * b;
      }
    }
  }
  return c;
}

TEST_P(GemmTest, EqualsPlainLoops) {
  const GemmShape shape = GetParam();
  const Factors factors(FewBits(1, shape.k * shape.m), FewBits(2, shape.k * shape.n));
  const std::vector<float> expected = ByPlainLoops(shape, factors);
  const bool may_vary = !shape.transpose_a || !shape.transpose_b;
  for (const Way way : kWays) {
    if (Has(way, false)) {
      EXPECT_EQ(Product(shape, factors, {.way = way}), expected);
      EXPECT_EQ(Product(shape, factors, {.workspace = false, .rows_vary = may_vary, .way = way}),
                expected);
    }
    for (const Given given : {Given::kFloats, Given::kFirstInBf16, Given::kBothInBf16}) {
      if (!Has(way, true)) continue;
      EXPECT_EQ(Product(shape, factors, {.bf16 = true, .given = given, .way = way}), expected);
      const How how{.bf16 = true, .given = given, .workspace = way == Way::kCompiled, .way = way};
      EXPECT_EQ(Product(shape, factors, how), expected);
    }
  }
}

// The epilogues of a ReLU layer and of its gradient, with results in floats, in bf16, or in both.
class GemmEpilogueTest : public ::testing::TestWithParam<GemmShape> {};

TEST_P(GemmEpilogueTest, EqualsPlainLoops) {
  constexpr float kScale = 1.25f;
  const GemmShape shape = GetParam();
  const size_t size = shape.m * shape.n;
  const Factors factors(FewBits(1, shape.k * shape.m), FewBits(2, shape.k * shape.n));
  const std::vector<float> bias = FewBits(3, shape.n), layer = FewBits(4, size);
  std::vector<uint16_t> bf16_layer(size);
  StoreBf16(layer, bf16_layer.data());
  const std::vector<float> product = ByPlainLoops(shape, factors);
  std::vector<float> forward(size), back(size), sums(RowSums<float>::Pieces(shape.m) * shape.n);
  for (size_t at = 0; at < size; ++at) {
    const size_t col = at % shape.n, row = at / shape.n;
    forward[at] = std::max(product[at] + bias[col], 0.0f);
    back[at] = layer[at] > 0 ? product[at] * kScale : 0.0f;
    sums[row / kSumRows * shape.n + col] += back[at];
  }
  const auto expect = [&](GemmTask<float> task, const std::vector<float>& expected, How how,
                          bool wide, bool narrow) {
    std::vector<float> c(size, -1);
    std::vector<uint16_t> bf16_c(size, 1), expected_bf16(size);
    StoreBf16(expected, expected_bf16.data());
    task.shape = shape;
    if (wide) task.c = c.data();
    if (narrow) task.epilogue.bf16_c = bf16_c.data();
    Multiply(task, factors, how);
    EXPECT_EQ(c, wide ? expected : std::vector<float>(size, -1));
    EXPECT_EQ(bf16_c, narrow ? expected_bf16 : std::vector<uint16_t>(size, 1));
  };
  const auto expect_all = [&](How how, bool wide, bool narrow) {
    expect({.epilogue = {.bias = bias.data(), .relu = true}}, forward, how, wide, narrow);
    for (const bool of_bf16 : {false, true}) {
      std::vector<float> got(sums.size(), -1);
      GemmTask<float> task;
      task.epilogue.above0 = of_bf16 ? nullptr : layer.data();
      task.epilogue.bf16_above0 = of_bf16 ? bf16_layer.data() : nullptr;
      task.epilogue.scale = kScale;
      task.epilogue.sums = {got.data(), shape.m, shape.n};
      expect(task, back, how, wide, narrow);
      EXPECT_EQ(got, sums);
    }
  };
  for (const Way way : kWays) {
    if (Has(way, false)) {
      expect_all({.way = way, .threads = 2}, true, false);
      expect_all({.workspace = false, .rows_vary = true, .way = way}, true, false);
    }
    if (!Has(way, true)) continue;
    if (way != Way::kCompiled) expect_all({.way = way}, false, true);
    for (const Given given : {Given::kFloats, Given::kBothInBf16}) {
      expect_all({.bf16 = true, .given = given, .way = way}, true, true);
      expect_all({.bf16 = true, .given = given, .way = way, .threads = 2}, false, true);
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
  EXPECT_EQ(Product(shape, factors, {.workspace = false}), once);
  EXPECT_EQ(Product(shape, factors, {.threads = 3}), once);
  const std::vector<float> bf16 = Product(shape, factors, {.bf16 = true});
  EXPECT_EQ(Product(shape, factors, {.bf16 = true, .given = Given::kBothInBf16}), bf16);
  EXPECT_EQ(Product(shape, factors, {.bf16 = true, .threads = 3}), bf16);
}

// Every element of C is in one tile, tiles are taken from large to small, and rows begin at
// multiples of a step.
TEST(Tiles, CoverTheProductAndEndSmall) {
  const TileSize tall{
      .rows = 128, .cols = 512, .least_rows = 64, .least_cols = 128, .row_step = 64};
  const TileSize blocks{
      .rows = 48, .cols = 512, .least_rows = 12, .least_cols = 512, .row_step = 6};
  for (const TileSize& size : {tall, blocks, TileSize{.rows = 64, .cols = 96}}) {
    for (const size_t m : {1, 63, 64, 367, 2048}) {
      for (const size_t threads : {1, 2, 16}) {
        const GemmShape shape{.m = m, .n = 700, .k = 1};
        std::vector<int> times(shape.m * shape.n);
        size_t largest = size.rows * size.cols;
        const PooledVector<TileArea> tiles = TilesOf(shape, size, threads);
        for (const TileArea& tile : tiles) {
          EXPECT_EQ(tile.row % size.row_step, 0u);
          largest = std::min(largest, tile.rows * size.cols);
          EXPECT_LE(tile.rows * tile.cols, largest);
          for (size_t at = 0; at < tile.rows * tile.cols; ++at)
            ++times[(tile.row + at / tile.cols) * shape.n + tile.col + at % tile.cols];
        }
        EXPECT_TRUE(std::ranges::all_of(times, [](int n) { return n == 1; }));
        if (m < 2048 || threads < 2 || size.least_rows == 0) continue;
        EXPECT_LE(tiles.back().rows * tiles.back().cols, size.least_rows * size.least_cols);
      }
    }
  }
}

TEST(GemmOfNoRows, NeedsNoResult) {
  TaskPool pool(1);
  Gemm(pool, GemmTask<float>{.shape = {.m = 0, .n = 5, .k = 3}});
  Gemm(pool, GemmTask<double>{.shape = {.m = 0, .n = 5, .k = 3}});
}

TEST(GemmOfNoTerms, GivesTheEpilogueOfZeros) {
  TaskPool pool(1);
  const std::vector<float> bias = {1, -2, 3};
  std::vector<float> c(6, -1);
  GemmTask<float> task{.shape = {.m = 2, .n = 3, .k = 0}, .c = c.data()};
  Gemm(pool, task);
  EXPECT_EQ(c, std::vector<float>(6, 0));
  task.epilogue.bias = bias.data();
  task.epilogue.relu = true;
  Gemm(pool, task);
  EXPECT_EQ(c, (std::vector<float>{1, 0, 3, 1, 0, 3}));
}

std::vector<GemmShape> Shapes(std::vector<bool> transpose_a) {
  std::vector<GemmShape> shapes;
  const auto add = [&](size_t m, size_t n, size_t k) {
    for (const bool a : transpose_a) {
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
  add(64, 32, 700);
  add(200, 31, 530);
  add(300, 33, 100);
  add(1100, 20, 70);
  add(40, 1700, 600);
  add(3, 5, 0);
  return shapes;
}
std::string NameOf(const ::testing::TestParamInfo<GemmShape>& test) {
  const GemmShape& s = test.param;
  return "m" + std::to_string(s.m) + "n" + std::to_string(s.n) + "k" + std::to_string(s.k) +
         (s.transpose_a ? "At" : "A") + (s.transpose_b ? "Bt" : "B");
}
INSTANTIATE_TEST_SUITE_P(Shapes, GemmTest, ::testing::ValuesIn(Shapes({false, true})), NameOf);
INSTANTIATE_TEST_SUITE_P(Shapes, GemmEpilogueTest, ::testing::ValuesIn(Shapes({false})), NameOf);

}  // namespace
}  // namespace dt
