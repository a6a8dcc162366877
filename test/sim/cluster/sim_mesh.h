// The connections between the workers of a simulation: in order and without loss, as TCP makes
// them, until one of the two ends.
#pragma once

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "test/sim/cluster/wires.h"
#include "worker/collective/mesh.h"

namespace dt::sim {

// What a rank of a mesh needs of its process.
struct MeshHost {
  Node node = 0;
  // Waits until then, or until something has arrived. Not OK: the process is to end.
  std::function<Status(TimePoint until)> wait;
  std::function<void()> wake;  // On the world's thread.
};

// All meshes of a simulation, by name: every rank that connects under a name is part of one mesh.
class MeshHub {
 public:
  MeshHub(World& world, Wires& wires) : world_(world), wires_(wires) {}

  std::unique_ptr<worker::Mesh> Connect(const std::string& name, uint32_t rank, uint32_t size,
                                        const worker::MeshLimits& limits, MeshHost host);
  // The process at `node` has ended: its peers notice.
  void Break(Node node);

 private:
  friend class SimMesh;
  struct Rank {
    std::optional<MeshHost> host;  // Absent before it has connected, and behind its end.
    bool broken = false;
    // By sender and slot.
    std::map<std::pair<uint32_t, uint64_t>, std::deque<std::vector<std::byte>>> arrived;
  };
  struct Group {
    std::vector<Rank> ranks;
  };

  World& world_;
  Wires& wires_;
  std::map<std::string, std::shared_ptr<Group>> groups_;
};

}  // namespace dt::sim
