// A small training for tests of the engine: the planner's plan of a small DeepFM, a map instead of
// servers, and ranks in threads over the in-memory mesh.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/device/accelerator.h"
#include "scheduler/plan/plan.h"
#include "test/support/tiny_model.h"
#include "worker/collective/mesh.h"
#include "worker/engine/engine.h"
#include "worker/lookup/lookup_planner.h"

namespace dt::worker {

inline constexpr uint32_t kSlices = 3;
inline constexpr uint32_t kSliceSamples = 16;

std::unique_ptr<Accelerator> SmallEmulated();

struct Setting {
  // These options may change between runs of Train without changing a bit of the result.
  uint32_t ranks = 1, threads = 1;
  bool overlap = true;
  std::vector<PlaceRule> place = {};
  Device optimizer = Device::kAuto;
  std::optional<DeviceProfile> automatic = {};  // Profile by which nodes without a rule are placed.
  // These options change the result.
  std::vector<NodeConfig> nodes = test::TinyDeepFm();
  // Opens the accelerator of one rank.
  std::function<std::unique_ptr<Accelerator>()> open = SmallEmulated;
};

// Fills in `report` if it is not null.
Plan TestPlan(const Setting& setting = {}, scheduler::PlacementReport* report = nullptr);
// Number 0 places all nodes on the accelerator; others place random nodes or random whole layers.
// The optimizer is where the planner chooses.
Setting RandomPlacement(uint64_t number);

// All tables of the graph, as one server would hold them. Gradients are applied by plain gradient
// descent.
struct Tables {
  std::map<std::pair<uint32_t, Key>, std::vector<float>> rows;

  std::vector<float> Pull(const Graph& graph, uint32_t table, std::span<const Key> keys);
  void Push(uint32_t table, std::span<const Key> keys, std::span<const float> gradients);
};

Batch MakeBatch(const Plan& plan, Step step, SliceIndex slice, uint32_t samples);

// One rank's engine and its surroundings.
class Rank {
 public:
  // `rank` is its place among `mesh->size()`.
  explicit Rank(std::unique_ptr<Mesh> mesh, const Setting& setting = {});
  explicit Rank(const Setting& setting = {});  // The only rank of a job.

  RunInfo Info(Step step) const;
  void BeginStep(Step step, std::span<const uint32_t> owner);
  // Without BeginStep, a slice alone, of a step that does not end. Returns gradients by table;
  // `made_` holds the plan until the next call.
  Result<RowSpans> RunSlice(Tables& tables, Batch batch);
  // Returns the scores of the loss.
  Result<std::vector<float>> Evaluate(Tables& tables, Batch batch);

  TaskPool pool_;
  TeamLink team_;
  const std::unique_ptr<Accelerator> accelerator_;
  const std::unique_ptr<Engine> engine_;
  LookupPlanner planner_;
  LookupPlan made_;
  std::vector<std::vector<float>> rows_;

 private:
  std::vector<std::span<const float>> PullRows(Tables& tables);

  size_t slices_left_ = 0;  // Own slices that have not begun in the current step.
};

struct Outcome {
  std::string dense;  // Checksum of the parameters and their optimizer state.
  std::map<std::string, std::vector<float>> parameters;
  std::map<std::pair<uint32_t, Key>, std::vector<float>> tables;
  std::vector<double> losses;
};

// Trains all slices of each step on `ranks` ranks; the last slice has fewer samples, in some steps
// none. `after` is called after each step with the first rank.
Outcome Train(const Setting& setting, Step steps,
              const std::function<void(Rank&, Tables&, Step)>& after = nullptr);

}  // namespace dt::worker
