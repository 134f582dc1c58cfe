// Plans: amounts and coefficients, what bounds their rate, and how the cheapest algorithm is found.
#include <chrono>

#include "models/collectives/collective.hpp"
#include "tests/catch.hpp"
#include "tests/collective_clusters.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

NodeShape hopper_like() {
  NodeShape shape = switched_node(8, Rate(450e9), 8, Rate(50e9));
  shape.in_network_reduction = true;
  return shape;
}

double bus_bandwidth(const Group& group, const CommunicationModel& model, Collective collective, Bytes size) {
  return static_cast<double>(size.value()) / planned_seconds(group, model, collective, size) *
         bus_bandwidth_factor(collective, group.size()) / 1e9;
}

}  // namespace

TEST_CASE("the amount is what the busiest edge carries", "[collectives]") {
  // Ring over 4 nodes of one GPU: every edge 2(p-1)/p n, every link on its way exactly that much.
  const auto cluster = make_cluster(one_gpu_node(Rate(50e9)), 4);
  const std::vector<GpuId> gpus = all_gpus(*cluster);
  const CollectivePlan plan =
      plan_collective({*cluster, gpus}, alpha_only(Picoseconds{0}, "ring"), Collective::all_reduce, Bytes(1'000'000));
  CHECK(plan.amount == 1'500'000);
  for (const PlanUse& use : plan.uses) CHECK(use.coefficient == 1);
  // Out of the GPU and into the NIC and the switch, and back: 6 links a node.
  CHECK(plan.uses.size() == 24);
}

TEST_CASE("equal places get equal coefficients", "[collectives]") {
  // All NIC cables play the same part in an all-to-all; sums of 1/96 in different orders must not differ.
  const auto cluster = make_cluster(hopper_like(), 12);
  const std::vector<GpuId> gpus = all_gpus(*cluster);
  CommunicationModel model;
  const CollectivePlan plan = plan_collective({*cluster, gpus}, model, Collective::all_to_all, mebibytes(64));
  double nic = 0;
  for (const PlanUse& use : plan.uses) {
    if (cluster->network().resource_kind(use.resource) != LinkKind::infiniband) continue;
    if (nic == 0) nic = use.coefficient;
    CHECK(use.coefficient == nic);
  }
  CHECK(nic > 0);
}

TEST_CASE("reduction in NVSwitches", "[collectives]") {
  // Each link carries n (1 + 1/p) each way, where a ring has 2(p-1)/p n: 1.125 against 1.75 on eight GPUs.
  const auto cluster = make_cluster(hopper_like(), 1);
  const std::vector<GpuId> gpus = all_gpus(*cluster);
  const Group group{*cluster, gpus};
  CommunicationModel model = alpha_only(Picoseconds{0}, "nvls");
  const double n = 1e9;
  CHECK(planned_seconds(group, model, Collective::all_reduce, Bytes(1'000'000'000)) == Approx(1.125 * n / 450e9));
  CHECK(planned_seconds(group, model, Collective::all_gather, Bytes(1'000'000'000)) == Approx(n / 450e9));
  CHECK(planned_seconds(group, model, Collective::reduce_scatter, Bytes(1'000'000'000)) == Approx(n / 450e9));
  model.nvls_efficiency = 0.5;
  CHECK(planned_seconds(group, model, Collective::all_reduce, Bytes(1'000'000'000)) == Approx(2.25 * n / 450e9));
}

TEST_CASE("reduction in the fabric", "[collectives]") {
  // One GPU per node: n up and n down each cable, whatever the number of nodes.
  const auto cluster = make_cluster(one_gpu_node(Rate(50e9)), 16, "single-switch", table({}), {}, Picoseconds{0}, true);
  const std::vector<GpuId> gpus = all_gpus(*cluster);
  CHECK(planned_seconds({*cluster, gpus}, alpha_only(Picoseconds{0}, "sharp"), Collective::all_reduce,
                        Bytes(1'000'000'000)) == Approx(1e9 / 50e9));
  // Switches that do not reduce: not offered.
  const auto plain = make_cluster(one_gpu_node(Rate(50e9)), 16);
  CHECK_FALSE(find_algorithm("sharp").supports(Collective::all_reduce, {*plain, gpus}));
}

TEST_CASE("published plateaus with the default constants", "[collectives]") {
  // Plateaus of nccl-tests all-reduce, GB/s of bus bandwidth. 8 x H100 NVLS 480 and ring 370: NVIDIA GTC24 S62129; 4
  // nodes DGX H100 357 (read from a plot, +-8): arXiv 2411.13055; two nodes 467: Nebius; 4 nodes DGX A100 192: GTC24
  // S62129.
  const CommunicationModel model;
  const Bytes size = gibibytes(8);
  const auto on_nodes = [&](const NodeShape& shape, std::int64_t nodes, const char* algorithm) {
    const auto cluster = make_cluster(shape, nodes);
    const std::vector<GpuId> gpus = all_gpus(*cluster);
    CommunicationModel chosen = model;
    chosen.algorithm = algorithm;
    return bus_bandwidth({*cluster, gpus}, chosen, Collective::all_reduce, size);
  };
  CHECK(on_nodes(hopper_like(), 1, "auto") == Approx(480).epsilon(0.05));
  CHECK(on_nodes(hopper_like(), 1, "ring") == Approx(370).epsilon(0.05));
  CHECK(on_nodes(hopper_like(), 2, "auto") == Approx(467).epsilon(0.05));
  CHECK(on_nodes(hopper_like(), 4, "auto") == Approx(357).epsilon(0.05));
  CHECK(on_nodes(switched_node(8, Rate(300e9), 8, Rate(25e9)), 4, "auto") == Approx(192).epsilon(0.05));
}

TEST_CASE("rails without a way between them are relayed inside the node", "[collectives]") {
  // Three nodes on a rail-only fabric: the rings' closing edges cross rails, which only NVLink can.
  NodeShape shape = switched_node(4, Rate(450e9), 4, Rate(50e9));
  const auto cluster = make_cluster(shape, 3, "fat-tree", table({{"rails", Value{std::string("only"), {}}}}));
  const std::vector<GpuId> gpus = all_gpus(*cluster);
  const Group group{*cluster, gpus};
  for (const Collective collective : {Collective::all_reduce, Collective::all_to_all}) {
    CHECK(bus_bandwidth(group, CommunicationModel(), collective, gibibytes(1)) > 40);
  }
}

TEST_CASE("a large ring is planned in milliseconds", "[collectives]") {
  // 1,024 members, 8 channels: 8,192 routes. The bound leaves room for slow machines and unoptimized builds.
  const auto cluster = make_cluster(hopper_like(), 128, "fat-tree");
  const std::vector<GpuId> gpus = all_gpus(*cluster);
  CommunicationModel model;
  model.algorithm = "ring";
  const auto begin = std::chrono::steady_clock::now();
  const CollectivePlan plan = plan_collective({*cluster, gpus}, model, Collective::all_reduce, gibibytes(1));
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  CAPTURE(seconds);
  CHECK(plan.uses.size() > 8192);
  CHECK(seconds < 1.0);
}
