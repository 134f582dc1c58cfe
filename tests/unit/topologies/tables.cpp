// The table of topologies: every entry explains itself, builds with its defaults, routes, and rejects what it does not
// know.
#include <set>

#include "tests/unit/topologies/fixtures.hpp"

namespace clustersim::testing {
namespace {

TEST_CASE("every topology has help for itself and each parameter, and a name of its own") {
  std::set<std::string_view> names;
  REQUIRE(fabrics().size() >= 3);
  for (const FabricEntry& entry : fabrics()) {
    INFO(entry.name);
    CHECK_FALSE(entry.name.empty());
    CHECK_FALSE(entry.help.empty());
    CHECK(names.insert(entry.name).second);
    CHECK(find_fabric(entry.name).name == entry.name);
    for (const Parameter& parameter : entry.schema) {
      INFO(parameter.name);
      CHECK_FALSE(parameter.help.empty());
      for (const Parameter& nested : parameter.nested) CHECK_FALSE(nested.help.empty());
    }
  }
}

TEST_CASE("every topology builds with its defaults, connects every pair, and matches its closed forms") {
  for (const FabricEntry& entry : fabrics()) {
    INFO(entry.name);
    for (const std::int64_t nodes : {1, 2, 3, 12}) {
      const Cluster cluster = build({.topology = std::string(entry.name), .nodes = nodes, .shape = small_node(4, 2)});
      const auto count = static_cast<std::uint32_t>(cluster.endpoints().size());
      REQUIRE(count == nodes * 2);
      for (std::uint32_t from = 0; from < count; ++from) {
        for (std::uint32_t to = 0; to < count; ++to) {
          if (from == to) continue;
          const DeviceId a = cluster.endpoints()[from].device;
          const DeviceId b = cluster.endpoints()[to].device;
          const Network& network = cluster.network();
          check_hop_by_hop(network, a, b, fabric_route(cluster, from, to, {.policy = RoutingPolicy::deterministic}));
          check_hop_by_hop(network, a, b,
                           fabric_route(cluster, from, to, {.policy = RoutingPolicy::ecmp, .queue_pairs = 1}));
          check_conserved(network, a, b,
                          fabric_route(cluster, from, to, {.policy = RoutingPolicy::ecmp, .queue_pairs = 5}));
          check_conserved(network, a, b, fabric_route(cluster, from, to, {.policy = RoutingPolicy::spread}));
        }
      }
      const FabricFigures figures = cluster.fabric()->figures();
      const MeasuredFigures measured = measure_hops(cluster);
      CHECK(figures.mean_hops == Approx(measured.mean_hops).epsilon(1e-12));
      CHECK(figures.diameter_hops == static_cast<double>(measured.diameter_hops));
    }
  }
}

TEST_CASE("routes are functions of their arguments and are appended") {
  for (const FabricEntry& entry : fabrics()) {
    INFO(entry.name);
    const Cluster cluster = build({.topology = std::string(entry.name), .nodes = 12});
    for (const RoutingPolicy policy : {RoutingPolicy::spread, RoutingPolicy::deterministic, RoutingPolicy::ecmp}) {
      const Routing routing{.policy = policy, .seed = 9, .queue_pairs = 2};
      const Route once = fabric_route(cluster, 2, 7, routing);
      Route twice = fabric_route(cluster, 2, 7, routing);
      cluster.fabric()->route(2, 7, routing, twice);
      REQUIRE(twice.shares.size() == 2 * once.shares.size());
      CHECK(twice.latency == 2 * once.latency);
      CHECK(twice.hops == 2 * once.hops);
      for (std::size_t i = 0; i < once.shares.size(); ++i) {
        CHECK(twice.shares[i].resource == once.shares[i].resource);
        CHECK(twice.shares[once.shares.size() + i].resource == once.shares[i].resource);
      }
    }
  }
}

TEST_CASE("every topology rejects an unknown key, and the table an unknown name") {
  for (const FabricEntry& entry : fabrics()) {
    const std::string message = message_of<BadInput>(
        [&] { return build({.topology = std::string(entry.name), .parameters = {{"colour", text("red")}}}).nodes(); });
    CHECK(contains(message, "colour"));
  }
  const std::string message = message_of<BadInput>([] { return find_fabric("fat_tre", {"a.toml", 7}).name; });
  CHECK(contains(message, "a.toml:7"));
  CHECK(contains(message, "did you mean \"fat-tree\""));
}

TEST_CASE("a single switch has the ports it is given") {
  const Cluster cluster =
      build({.topology = "single-switch", .parameters = {{"ports", integer(4)}}, .in_network_reduction = true});
  CHECK(cluster.fabric()->figures().bisection == gigabits_per_second(2 * 400));
  Route tree;
  REQUIRE(cluster.fabric()->reduction_tree(std::vector<std::uint32_t>{0, 1, 3}, tree));
  CHECK(tree.shares.size() == 6);
  CHECK(tree.latency == Picoseconds(1'200'000));
  const std::string message = message_of<BadInput>(
      [] { return build({.topology = "single-switch", .parameters = {{"ports", integer(3)}}}).nodes(); });
  CHECK(contains(message, "too few for the 4 endpoints"));
}

}  // namespace
}  // namespace clustersim::testing
