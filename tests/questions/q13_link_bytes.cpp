// How to get bytes per link and total traffic? (https://github.com/astra-sim/astra-sim/issues/298)
#include <numeric>

#include "models/collectives/collective.hpp"
#include "tests/catch.hpp"
#include "tests/collective_clusters.hpp"

using namespace clustersim;
using namespace clustersim::testing;

TEST_CASE("bytes per link of a ring all-reduce", "[questions]") {
  // p = 8 on a ring of 8 links per direction, n = 1 GB: each of the 8 clockwise links carries 2(p-1)/p n = 1.75 GB.
  constexpr std::int64_t kBytes = 1'000'000'000;
  const auto cluster = make_cluster(one_gpu_node(Rate(50e9)), 8, "torus", table({{"dims", integers({8})}}));
  const std::vector<GpuId> gpus = all_gpus(*cluster);
  const Group group{*cluster, gpus};
  const CommunicationModel model = alpha_only(Picoseconds{0}, "ring");
  const StepByStepResult run =
      run_step_by_step(group, model, Collective::all_reduce, Bytes(kBytes), StepSynchronization::dependency);

  const Network& network = cluster->network();
  int used = 0;
  double over_links = 0;
  for (std::uint32_t i = 0; i < network.links().size(); ++i) {
    over_links += run.carried[i];
    const Link& link = network.links()[i];
    if (link.kind == LinkKind::pcie || run.carried[i] == 0) continue;
    ++used;
    CHECK(run.carried[i] == 1.75e9);
  }
  CHECK(used == 8);

  // Bytes summed over links = bytes x hops summed over flows.
  double over_flows = 0;
  for (std::uint32_t member = 0; member < 8; ++member) {
    Route route;
    append_route(group, {member, (member + 1) % 8, 1.0}, route);
    over_flows += 2.0 * 7 / 8 * static_cast<double>(kBytes) * route.hops;
  }
  CHECK(over_links == over_flows);

  // The plan of the pipelined form carries the same bytes over the same links.
  const CollectivePlan plan = plan_collective(group, model, Collective::all_reduce, Bytes(kBytes));
  for (const PlanUse& use : plan.uses) CHECK(use.coefficient * plan.amount == run.carried[use.resource]);
}
