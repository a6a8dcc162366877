// Goal: nodes on a GPU compute what the CPU computes, launched one by one or as graphs, however
// late the GPU is; once sizes have settled, no graphs are made and no memory is allocated. Method:
// the small training of training.h on devices made of host threads, which run the real kernels. All
// of them except number 0 are late at random, so that a missing wait is noticed. Also on a GPU if
// there is one.
#include "worker/engine/cuda_runner.h"

#include <algorithm>
#include <map>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/base/mutex.h"
#include "test/support/cuda_on_host/cuda_on_host.h"
#include "test/unit/worker/engine/training.h"
#include "worker/engine/device_kernels.h"

namespace dt::worker {
namespace {

using test::OpenCardOnHost;
using test::TableOnHost;
using test::UseOfCards;
using test::UseOnHost;
using ::testing::HasSubstr;

// Bound for losses and rows after a few steps, relative to 1: sums are in another order.
constexpr double kBound = 2e-5;

Setting On(int32_t card, Setting setting) {
  setting.open = [card] { return OpenCardOnHost(card); };
  return setting;
}
Setting AllOn(int32_t card) { return On(card, RandomPlacement(0)); }

void ExpectNear(const Outcome& got, const Outcome& want) {
  ASSERT_EQ(got.losses.size(), want.losses.size());
  for (size_t s = 0; s < want.losses.size(); ++s) {
    EXPECT_NEAR(got.losses[s], want.losses[s], kBound) << "step " << s;
  }
  ASSERT_EQ(got.tables.size(), want.tables.size());
  for (const auto& [key, row] : want.tables) {
    for (size_t i = 0; i < row.size(); ++i) {
      EXPECT_NEAR(got.tables.at(key)[i], row[i], kBound) << "key " << key.second;
    }
  }
}

void ExpectEqual(const Outcome& got, const Outcome& want) {
  EXPECT_EQ(got.dense, want.dense);
  EXPECT_EQ(got.tables, want.tables);
  EXPECT_EQ(got.losses, want.losses);
}

TEST(CudaRunnerTest, AnyPlacementLearnsWhatTheProcessorLearns) {
  constexpr Step kSteps = 2;  // Each step has several slices, so graphs are made and launched.
  const Outcome one = Train({}, kSteps);
  for (int32_t number = 0; number < 24; ++number) {
    SCOPED_TRACE(fmt::format("placement and card {}", number));
    ExpectNear(Train(On(number, RandomPlacement(static_cast<uint64_t>(number))), kSteps), one);
  }
}

TEST(CudaRunnerTest, ListsAndAttentionToo) {
  const Setting processor = {.nodes = test::TinyDin()};
  Setting card = processor;
  card.place = {{"*", Device::kGpu}};
  ExpectNear(Train(On(5, card), 3), Train(processor, 3));
}

// A value that is copied to the CPU between two casts has half the bytes.
TEST(CudaRunnerTest, Bf16CrossesBetweenCasts) {
  const Attrs narrow = {{"to", "bf16"}}, wide = {{"to", "fp32"}};
  const Setting processor = {
      .nodes = {test::TinyNode("numbers", "dense", {"I*"}, {{"units", int64_t{4}}}, 1),
                test::TinyNode("narrow", "cast", {"numbers"}, narrow, 2),
                test::TinyNode("again", "cast", {"narrow"}, wide, 3),
                test::TinyNode("e", "linear", {"C*"}, {{"table", "wide"}}, 4),
                test::TinyNode("d", "dense", {"again"}, {{"units", int64_t{1}}}, 5),
                test::TinyNode("logit", "sum", {"d", "e"}, {}, 6)}};
  Setting card = processor;
  card.place = {{"numbers", Device::kGpu}, {"narrow", Device::kGpu}};
  card.optimizer = Device::kCpu;
  const Graph graph = TestPlan(card).graph;
  EXPECT_TRUE(std::ranges::any_of(graph.nodes, [&](const Node& node) {
    return node.op == "copy" && graph.value(node.outputs[0]).dtype == DType::kBf16;
  }));
  ExpectNear(Train(On(6, card), 4), Train(processor, 4));
}

// Devices whose kernels are replaced or missing.
using FindKernelOnCard = const CudaKernel* (*)(const char*);
std::unique_ptr<Accelerator> CardWith(FindKernelOnCard find) {
  CudaTable table = TableOnHost();
  table.find_kernel = find;
  return CudaAccelerator::Over(table, {.kind = DeviceKind::kCuda,
                                       .index = 0,
                                       .name = "card on the host",
                                       .memory_bytes = uint64_t{1} << 30});
}

// All kernels, of which only those selected by `captured` may be captured.
template <bool (*captured)(const CudaCall&)>
const CudaKernel* FindCaptured(const char* op) {
  static Mutex mutex;
  static std::map<std::string, CudaKernel> kernels;
  const CudaKernel* const kernel = TableOnHost().find_kernel(op);
  if (kernel == nullptr) return nullptr;
  MutexLock lock(mutex);
  CudaKernel& own = kernels.emplace(op, *kernel).first->second;
  own.can_capture = captured;
  return &own;
}
bool Never(const CudaCall&) { return false; }
bool Sometimes(const CudaCall& call) { return call.input_count % 2 == 0; }

// Kernels in graphs read sizes, seeds and rates from the same memory as single kernels.
TEST(CudaRunnerTest, GraphsGiveTheBitsOfSingleKernels) {
  constexpr Step kSteps = 5;
  const auto launches = [] { return UseOnHost().graph_launches; };
  const auto evaluate = [](Rank& rank, Tables& tables, Step step) {
    const Batch batch = MakeBatch(rank.engine_->plan(), step + 100, 0, 12);
    EXPECT_TRUE(rank.Evaluate(tables, batch).ok());
  };
  const Outcome graphs = Train(AllOn(0), kSteps, evaluate);
  EXPECT_GT(launches(), 0);
  ExpectEqual(Train(AllOn(7), kSteps, evaluate), graphs);
  Setting single = AllOn(0);
  single.open = [] { return CardWith(FindCaptured<Never>); };
  const uint64_t before = launches();
  ExpectEqual(Train(single, kSteps, evaluate), graphs);
  EXPECT_EQ(launches(), before);
  single.open = [] { return CardWith(FindCaptured<Sometimes>); };
  ExpectEqual(Train(single, kSteps, evaluate), graphs);
  EXPECT_GT(launches(), before);
}

// Slices have three sizes, with evaluations between them. A growing number of keys moves memory and
// invalidates graphs, until it settles.
TEST(CudaRunnerTest, ASteadyStateMakesAndAllocatesNothing) {
  const Setting small = {
      .place = {{"*", Device::kGpu}},
      .nodes = {test::TinyNode("numbers", "dense", {"I*"}, {{"units", int64_t{4}}}, 1),
                test::TinyNode("e", "linear", {"C1", "tags"}, {{"table", "wide"}}, 2),
                test::TinyNode("d", "dense", {"numbers"}, {{"units", int64_t{1}}}, 3),
                test::TinyNode("logit", "sum", {"d", "e"}, {}, 4)}};
  Rank rank(On(3, small));
  Tables tables;
  const auto run = [&](Step begin, Step end) {
    for (Step step = begin; step < end; ++step) {
      const auto samples = static_cast<uint32_t>(16 - step % 3 * 5);
      const Batch batch = MakeBatch(rank.engine_->plan(), step, 0, samples);
      ASSERT_TRUE(rank.RunSlice(tables, batch).ok());
      ASSERT_TRUE(rank.engine_->FinishUpdate().ok());
      ASSERT_TRUE(rank.Evaluate(tables, batch).ok());
    }
  };
  run(0, 9);
  EXPECT_GT(rank.engine_->cuda_graphs_made(), 0);
  run(9, 120);
  const uint64_t graphs = rank.engine_->cuda_graphs_made();
  const UseOfCards before = UseOnHost();
  run(120, 180);
  const UseOfCards after = UseOnHost();
  EXPECT_EQ(rank.engine_->cuda_graphs_made(), graphs);
  EXPECT_EQ(after.captures, before.captures);
  EXPECT_EQ(after.allocations, before.allocations);
  EXPECT_EQ(after.waiting_copies, before.waiting_copies);
  EXPECT_GE(after.graph_launches, before.graph_launches + 120);
}

// Memory moves when there are more distinct keys than ever before; graphs are then captured again.
TEST(CudaRunnerTest, GrowthMakesGraphsAgain) {
  Rank rank(AllOn(4)), processor;
  Tables tables, on_processor;
  const auto losses = [](Rank& on, Tables& of, Step step, uint32_t samples) {
    const Batch batch = MakeBatch(on.engine_->plan(), step, 0, samples);
    EXPECT_TRUE(on.RunSlice(of, batch).ok());
    return on.Evaluate(of, batch).value();
  };
  uint64_t graphs = 0;
  for (const uint32_t samples : {2u, 16u, 60u, 2u}) {
    for (Step step = 0; step < 3; ++step) {
      const std::vector<float> got = losses(rank, tables, step, samples);
      const std::vector<float> want = losses(processor, on_processor, step, samples);
      ASSERT_EQ(got.size(), want.size());
      for (size_t i = 0; i < got.size(); ++i) EXPECT_NEAR(got[i], want[i], kBound) << i;
    }
    EXPECT_GT(rank.engine_->cuda_graphs_made(), graphs) << samples;
    graphs = rank.engine_->cuda_graphs_made();
  }
  EXPECT_GT(rank.engine_->device_bytes().arena_growths, 0);
}

Status OpenedOn(FindKernelOnCard find) {
  TaskPool pool(1);
  const std::unique_ptr<Accelerator> card = CardWith(find);
  return Engine::Create(TestPlan(RandomPlacement(0)), {.pool = pool, .accelerator = card.get()})
      .status();
}

TEST(CudaRunnerTest, AnOperatorWithoutAKernelIsNamed) {
  const Status status = OpenedOn([](const char* op) -> const CudaKernel* {
    return std::string_view(op) == "fm" ? nullptr : TableOnHost().find_kernel(op);
  });
  EXPECT_EQ(status.code(), StatusCode::kUnimplemented) << status;
  EXPECT_THAT(ToText(status), HasSubstr("operator fm of node second"));
}

TEST(CudaRunnerTest, OperatorsWithoutAKernelAreListedForThePlanner) {
  CudaTable table = TableOnHost();
  EXPECT_THAT(OperatorsWithoutKernel(table), ::testing::IsEmpty());
  table.find_kernel = [](const char* op) -> const CudaKernel* {
    return std::string_view(op) == "fm" ? nullptr : TableOnHost().find_kernel(op);
  };
  EXPECT_THAT(OperatorsWithoutKernel(table), ::testing::ElementsAre("fm"));
}

TEST(CudaRunnerTest, ALaunchThatFailsNamesTheNode) {
  static const CudaKernel kRefuses = {
      .op = "fm", .launch = [](const CudaCall&) -> CudaError { return "too many resources"; }};
  Setting setting = AllOn(0);
  setting.open = [] {
    return CardWith([](const char* op) -> const CudaKernel* {
      return std::string_view(op) == "fm" ? &kRefuses : TableOnHost().find_kernel(op);
    });
  };
  Rank rank(setting);
  Tables tables;
  const auto grads = rank.RunSlice(tables, MakeBatch(rank.engine_->plan(), 0, 0, 16));
  ASSERT_FALSE(grads.ok());
  EXPECT_THAT(ToText(grads.status()), HasSubstr("CUDA card 0 (card on the host): node \"second"));
  EXPECT_THAT(ToText(grads.status()), HasSubstr("(fm) failed: too many resources"));
}

class RealCardTest : public ::testing::Test {
 protected:
  static Result<std::unique_ptr<CudaAccelerator>> Card() {
    DT_TRY(const CudaLibrary library, CudaLibrary::Open(DT_REAL_CUDA));
    DT_TRY_STATUS(library.CountDevices().status());
    return CudaAccelerator::Open(library, 0);
  }
  void SetUp() override {
    if (const auto card = Card(); !card.ok()) GTEST_SKIP() << "no card here: " << card.status();
  }
  static Setting On(Setting setting) {
    setting.open = [] { return Card().value(); };
    return setting;
  }
};

TEST_F(RealCardTest, AnyPlacementLearnsWhatTheProcessorLearns) {
  const Outcome one = Train({}, 9);
  for (uint64_t number = 0; number < 24; ++number) {
    SCOPED_TRACE(fmt::format("placement {}", number));
    ExpectNear(Train(On(RandomPlacement(number)), 9), one);
  }
}

TEST_F(RealCardTest, ListsAndAttentionToo) {
  const Setting processor = {.nodes = test::TinyDin()};
  Setting card = processor;
  card.place = {{"*", Device::kGpu}};
  ExpectNear(Train(On(card), 9), Train(processor, 9));
}

TEST_F(RealCardTest, TwoRunsAreEqualAndSettle) {
  const Setting all = On(RandomPlacement(0));
  uint64_t graphs = 0, bytes = 0;
  const auto watch = [&](Rank& rank, Tables&, Step step) {
    if (step == 90)
      graphs = rank.engine_->cuda_graphs_made(), bytes = rank.accelerator_->bytes_used();
    if (step < 90) return;
    EXPECT_EQ(rank.engine_->cuda_graphs_made(), graphs);
    EXPECT_EQ(rank.accelerator_->bytes_used(), bytes);
  };
  ExpectEqual(Train(all, 120, watch), Train(all, 120));
  EXPECT_GT(graphs, 0);
}

}  // namespace
}  // namespace dt::worker
