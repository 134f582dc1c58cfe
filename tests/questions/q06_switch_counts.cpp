// Question: how many 64-port switches and cables for 512 nodes of 8 NICs, non-blocking?
// Published: NVIDIA DGX SuperPOD reference architecture (B200), compute fabric table,
// https://docs.nvidia.com/dgx-superpod/reference-architecture-scalable-infrastructure-b200/latest/dgx-superpod-architecture.html
// (64 to 2048 nodes; 320 switches for 512), against 192 on a public price sheet for as many nodes on separate rails,
// https://substack.tech-talk-cto.com/p/h100-freakonomics-the-economical
#include "tests/unit/topologies/fixtures.hpp"

namespace clustersim::testing {
namespace {

Cluster superpod(std::int64_t nodes, const std::string& rails) {
  return build(
      {.parameters = {{"radix", integer(64)}, {"rails", text(rails)}}, .nodes = nodes, .shape = small_node(8, 8)});
}

struct Row {
  std::int64_t nodes;
  std::int64_t leaves;
  std::int64_t spines;
  std::int64_t cores;
};

TEST_CASE("all six rows of the published table, and as many cables per tier as GPUs") {
  const std::array rows{Row{64, 16, 8, 0},      Row{128, 32, 16, 0},      Row{256, 64, 32, 0},
                        Row{512, 128, 128, 64}, Row{1024, 256, 256, 128}, Row{2048, 512, 512, 256}};
  for (const Row& row : rows) {
    for (const char* rails : {"optimized", "none"}) {
      INFO(row.nodes << " nodes, rails = " << rails);
      const Cluster cluster = superpod(row.nodes, rails);
      const FabricFigures figures = cluster.fabric()->figures();
      REQUIRE(figures.tiers.size() == (row.cores > 0 ? 3 : 2));
      CHECK(figures.tiers[0].switches == row.leaves);
      CHECK(figures.tiers[1].switches == row.spines);
      if (row.cores > 0) CHECK(figures.tiers[2].switches == row.cores);
      for (const SwitchTier& tier : figures.tiers) {
        CHECK(tier.cables_down == cluster.gpus());
        CHECK(tier.oversubscription == 1);
      }
      // Non-blocking: half the GPUs can send to the other half at full rate.
      CHECK(figures.bisection_links == cluster.gpus() / 2);
      // No switch uses more than its 64 ports, counted on the graph.
      std::vector<std::int64_t> ports(cluster.network().devices().size(), 0);
      for (const Link& link : cluster.network().links()) ++ports[link.from.index()];
      for (std::size_t i = 0; i < ports.size(); ++i) {
        if (cluster.network().devices()[i].kind == DeviceKind::network_switch) REQUIRE(ports[i] <= 64);
      }
    }
  }
}

std::int64_t all_switches(const Cluster& cluster) {
  std::int64_t sum = 0;
  for (const SwitchTier& tier : cluster.fabric()->figures().tiers) sum += tier.switches;
  return sum;
}

TEST_CASE("512 nodes: 320 switches with a shared core, 192 as eight separate rails") {
  const Cluster shared = superpod(512, "optimized");
  CHECK(all_switches(shared) == 320);
  CHECK(shared.fabric()->figures().cables == 3 * 4096);
  const Cluster separate = superpod(512, "only");
  CHECK(all_switches(separate) == 192);  // 8 x (16 leaves + 8 spines)
  CHECK(separate.fabric()->figures().cables == 2 * 4096);
  // The saving has a price: from one rail to another there is no way but through NVLink.
  CHECK(fabric_route(shared, 0, 8 * 511 + 1, {}).hops == 6);
  CHECK(fabric_route(separate, 1, 8 * 511 + 1, {}).hops == 4);
  const std::string message = message_of<Infeasible>([&] { fabric_route(separate, 0, 8 * 511 + 1, {}); });
  CHECK(contains(message, "rail 0"));
  CHECK(contains(message, "rail 1"));
  CHECK(contains(message, "NVLink"));
  // GPU to GPU the same holds when each leaves through its nearest NIC; choosing the peer's rail is the way out.
  Route route;
  CHECK_THROWS_AS(separate.route(GpuId(0U), GpuId(8U * 511U + 1U), route), Infeasible);
  route.clear();
  separate.route(GpuId(0U), GpuId(8U * 511U + 1U), route, 1, 1);
  CHECK(route.hops == 2 + 4 + 2);
}

}  // namespace
}  // namespace clustersim::testing
