#include "scheduler/plan/pass_list.h"

#include "scheduler/passes/autodiff/autodiff.h"
#include "scheduler/passes/frontend/frontend.h"
#include "scheduler/passes/lowering/lowering.h"
#include "scheduler/passes/placement/placement.h"

namespace dt::scheduler {
namespace {

constexpr GraphPass kGraphPasses[] = {{"expand", Expand},
                                      {kInferPass, InferShapes},
                                      {kDifferentiatePass, Differentiate},
                                      {"add_optimizer", AddOptimizer},
                                      {kPlacePass, PlaceNodes},
                                      {"fuse", Fuse},
                                      {"bf16_activations", StoreActivationsInBf16},
                                      {"copies", InsertCopies}};

}  // namespace

std::span<const GraphPass> GraphPasses() { return kGraphPasses; }

}  // namespace dt::scheduler
