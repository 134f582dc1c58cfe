// GPUs joined by NVSwitches: every GPU spreads its links evenly over all switch planes, so the planes act as one
// switch.
#include "topologies/node.hpp"

namespace clustersim {
namespace {

void add(NodeTemplate& node, std::span<const std::uint32_t> gpu_devices, const NodeShape& shape) {
  const std::uint32_t nvswitch = node.add_device(DeviceKind::nvswitch, 0);
  for (const std::uint32_t gpu : gpu_devices) {
    node.add_cable(gpu, nvswitch, shape.gpu_link, shape.gpu_link_latency, LinkKind::nvlink);
  }
}

}  // namespace

extern constinit const NodeInterconnect kNvswitch{
    "nvswitch", "every GPU spreads its links over all NVSwitches: full rate to any GPU", add};

}  // namespace clustersim
