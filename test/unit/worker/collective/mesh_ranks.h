// Ranks on threads of one process, over a mesh in memory, Gloo's, or that of processes of one host.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "test/support/hash_rendezvous.h"
#include "worker/collective/mesh.h"

namespace dt::worker {

// Cards are no mesh: see card_ranks.h.
enum class MeshKind { kMemory, kGloo, kShared, kCardsOnHost, kRealCards };
struct MeshCase {
  MeshKind kind;
  uint32_t ranks;
};
inline std::string NameOfCase(const ::testing::TestParamInfo<MeshCase>& test) {
  const char* const kinds[] = {"Memory", "Gloo", "Shared", "CardsOnHost", "RealCards"};
  return kinds[static_cast<size_t>(test.param.kind)] + std::to_string(test.param.ranks);
}

// Runs `body` with every rank's mesh on its own thread.
inline void OnMeshes(const MeshCase& c, const MeshLimits& limits,
                     const std::function<void(std::unique_ptr<Mesh>)>& body) {
  std::vector<std::unique_ptr<Mesh>> memory = MakeMemoryMesh(c.ranks, limits);
  HashRendezvous rendezvous;
  std::vector<std::jthread> threads;
  for (uint32_t r = 0; r < c.ranks; ++r) {
    threads.emplace_back([&, r] {
      std::unique_ptr<Mesh> mesh = std::move(memory[r]);
      if (c.kind != MeshKind::kMemory) {
        const MeshOptions options = {.rank = r, .size = c.ranks, .prefix = "g0", .limits = limits};
        // All ranks are on this host.
        auto connected = c.kind == MeshKind::kShared ? ConnectMesh(rendezvous, options)
                                                     : ConnectGlooMesh(rendezvous, options);
        ASSERT_TRUE(connected.ok()) << ToText(connected.status());
        mesh = *std::move(connected);
      }
      body(std::move(mesh));
    });
  }
}

}  // namespace dt::worker
