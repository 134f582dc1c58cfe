// GPUs joined directly, each to every other, with its scale-up rate split evenly over its neighbours.
#include "topologies/node.hpp"

namespace clustersim {
namespace {

void add(NodeTemplate& node, std::span<const std::uint32_t> gpu_devices, const NodeShape& shape) {
  if (gpu_devices.size() < 2) return;
  const Rate per_pair = shape.gpu_link / static_cast<double>(gpu_devices.size() - 1);
  for (std::size_t a = 0; a < gpu_devices.size(); ++a) {
    for (std::size_t b = a + 1; b < gpu_devices.size(); ++b) {
      node.add_cable(gpu_devices[a], gpu_devices[b], per_pair, shape.gpu_link_latency, LinkKind::nvlink);
    }
  }
}

}  // namespace

extern constinit const NodeInterconnect kFullMesh{
    "full-mesh", "every GPU is wired to every other with an equal part of its rate", add};

}  // namespace clustersim
