// Eight GPUs with six links each in the hybrid cube mesh of the DGX-1V and its kin.
#include <array>

#include "sim/errors.hpp"
#include "topologies/node.hpp"

namespace clustersim {
namespace {

constexpr std::size_t kGpus = 8;
constexpr double kLinksPerGpu = 6;

/// Links between two GPUs, as `nvidia-smi topo -m` prints them on a DGX-1V (NV1 = 1, NV2 = 2, SYS = 0); also Li et al.,
/// "Evaluating Modern GPU Interconnect", IEEE TPDS 31(1), 2020. Every row sums to six.
constexpr std::array<std::array<int, kGpus>, kGpus> kLinks{{{0, 1, 1, 2, 2, 0, 0, 0},
                                                            {1, 0, 2, 1, 0, 2, 0, 0},
                                                            {1, 2, 0, 2, 0, 0, 1, 0},
                                                            {2, 1, 2, 0, 0, 0, 0, 1},
                                                            {2, 0, 0, 0, 0, 1, 1, 2},
                                                            {0, 2, 0, 0, 1, 0, 2, 1},
                                                            {0, 0, 1, 0, 1, 2, 0, 2},
                                                            {0, 0, 0, 1, 2, 1, 2, 0}}};

void add(NodeTemplate& node, std::span<const std::uint32_t> gpu_devices, const NodeShape& shape) {
  if (gpu_devices.size() != kGpus) {
    bad_input("node {}: gpus = {}: the hybrid-cube-mesh joins exactly {} GPUs; nvswitch and full-mesh join any number",
              shape.name, gpu_devices.size(), kGpus);
  }
  const Rate link = shape.gpu_link / kLinksPerGpu;
  for (std::size_t a = 0; a < kGpus; ++a) {
    for (std::size_t b = a + 1; b < kGpus; ++b) {
      if (kLinks[a][b] == 0) continue;
      node.add_cable(gpu_devices[a], gpu_devices[b], link * kLinks[a][b], shape.gpu_link_latency, LinkKind::nvlink);
    }
  }
}

}  // namespace

extern constinit const NodeInterconnect kHybridCubeMesh{
    "hybrid-cube-mesh", "eight GPUs with six links each, none, one or two per pair (DGX-1V)", add};

}  // namespace clustersim
