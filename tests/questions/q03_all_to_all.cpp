// What all-to-all bandwidth to plan for as nodes are added, and why is it above one NIC at small scale?
// (https://github.com/NVIDIA/nccl-tests/issues/267)
#include "models/catalog/catalog.hpp"
#include "models/collectives/collective.hpp"
#include "tests/catch.hpp"
#include "tests/collective_clusters.hpp"

using namespace clustersim;
using namespace clustersim::testing;

TEST_CASE("all-to-all bus bandwidth falls to one NIC's as nodes are added", "[questions]") {
  // Of the (p-1)/p n that a rank sends, (p-8)/p n leave the node through its one 400 Gb/s NIC, which gives 48.5 GB/s:
  // busbw = (p-1)/(p-8) x 48.5.
  const NodeSpec node = Catalog::built_in().node("dgx-h100");
  const CommunicationModel model;
  for (const auto& [nodes, expected] : {std::pair{2, 90.9}, {4, 62.6}, {6, 57.0}, {8, 54.6}}) {
    const auto cluster = make_cluster(node.shape, nodes, "fat-tree", table({}), {}, Picoseconds{600'000});
    const std::vector<GpuId> gpus = all_gpus(*cluster);
    const Group group{*cluster, gpus};
    const Bytes size = gibibytes(8);
    const CollectivePlan plan = plan_collective(group, model, Collective::all_to_all, size);
    const double seconds = to_seconds(uncontended_time(plan, cluster->network(), model));
    const double bandwidth =
        static_cast<double>(size.value()) / seconds * bus_bandwidth_factor(Collective::all_to_all, group.size()) / 1e9;
    CHECK(bandwidth == Approx(expected).epsilon(0.03));
  }
}
