// The graph: names and their inverses, bundles as resources, contracts.
#include "topologies/network.hpp"
#include "topologies/graph.hpp"

#include "tests/unit/topologies/fixtures.hpp"

namespace clustersim::testing {
namespace {

TEST_CASE("every device and link is found again under its own name") {
  NodeShape shape = small_node(4, 2);
  shape.cpus = 2;
  shape.pcie_switches = 2;
  const Cluster cluster = build({.parameters = {{"k", integer(4)}}, .nodes = 8, .shape = shape});
  const Network& network = cluster.network();
  for (std::size_t i = 0; i < network.devices().size(); ++i) {
    REQUIRE(network.find_device(network.device_name(DeviceId(i))) == DeviceId(i));
  }
  for (std::size_t i = 0; i < network.links().size(); ++i) {
    REQUIRE(network.find_link(network.link_name(LinkId(i))) == LinkId(i));  // no parallel cables in this tree
  }
  CHECK(network.device_name(network.find_device("node3/gpu2").value()) == "node3/gpu2");
  CHECK(network.find_link("node3/nic1 -> leaf3").has_value());
  CHECK(network.find_link("  node3/nic1->leaf3 ").has_value());
}

TEST_CASE("names in the documented forms") {
  Network network;
  const auto in_node = [&](DeviceKind kind, std::uint32_t index) {
    return network.device_name(network.add_device({.kind = kind, .tier = 0, .node = 3, .index = index}));
  };
  CHECK(in_node(DeviceKind::gpu, 2) == "node3/gpu2");
  CHECK(in_node(DeviceKind::nic, 0) == "node3/nic0");
  CHECK(in_node(DeviceKind::nvswitch, 0) == "node3/nvswitch0");
  CHECK(in_node(DeviceKind::cpu, 1) == "node3/cpu1");
  CHECK(in_node(DeviceKind::pcie_switch, 0) == "node3/pcie0");
  const std::string expected[] = {"router5", "leaf5", "spine5", "core5", "tier4-5", "tier9-5"};
  const std::uint8_t tiers[] = {0, 1, 2, 3, 4, 9};
  for (std::size_t i = 0; i < std::size(tiers); ++i) {
    const Device device{.kind = DeviceKind::network_switch, .tier = tiers[i], .node = ~0U, .index = 5};
    const DeviceId id = network.add_device(device);
    CHECK(network.device_name(id) == expected[i]);
    CHECK(network.find_device(expected[i]) == id);
  }
}

TEST_CASE("what is no name finds nothing") {
  const Cluster cluster = build({});
  const Network& network = cluster.network();
  for (const char* name :
       {"", "node0", "node0/", "/gpu0", "node0/gpu", "node0/gpu0x", "node0/gpu-1", "node9/gpu0", "node0/gpu7", "leaf",
        "leaf99", "leaf0 ", "tier4", "tier2-0", "tier999-0", "nodeX/gpu0", "node99999999999/gpu0"}) {
    INFO(name);
    CHECK_FALSE(network.find_device(name).has_value());
  }
  for (const char* name : {"", "->", "node0/nic0", "node0/nic0 -> spine0", "node0/nic0 -> ", "leaf0 -> leaf0"}) {
    INFO(name);
    CHECK_FALSE(network.find_link(name).has_value());
  }
}

TEST_CASE("a bundle is as fast as its members at the pace of the slowest") {
  Network network;
  const DeviceId a = network.add_device({});
  const DeviceId b = network.add_device({});
  const auto rate = gigabits_per_second(400);
  const LinkId first = network.add_cable(a, b, rate, Picoseconds(7), LinkKind::ethernet);
  const LinkId second = network.add_cable(a, b, rate, Picoseconds(7), LinkKind::ethernet);
  const BundleId bundle = network.add_bundle("both", {first, second});
  const std::uint32_t resource = network.resource(bundle);
  CHECK(network.resources() == 5);
  CHECK(network.resource_capacity(resource) == rate * 2.0);
  CHECK(network.resource_kind(resource) == LinkKind::ethernet);
  CHECK(network.resource_name(resource) == "both (2 x 400 Gb/s)");
  // An even split gives each member half of the traffic, so one member at half rate halves the whole.
  network.set_capacity(second, rate / 2.0);
  CHECK(network.resource_capacity(resource) == rate);
  CHECK(network.resource_capacity(network.resource(first)) == rate);
  CHECK(network.link(LinkId(first.value() + 1)).from == b);
}

TEST_CASE("contracts of the graph hold in release builds") {
  Network network;
  const DeviceId a = network.add_device({});
  const DeviceId b = network.add_device({});
  CHECK_THROWS_AS(network.add_link({a, DeviceId(7U), Rate(1), Picoseconds(0), LinkKind::pcie}), BrokenContract);
  CHECK_THROWS_AS(network.add_link({a, b, Rate(-1), Picoseconds(0), LinkKind::pcie}), BrokenContract);
  CHECK_THROWS_AS(network.add_bundle("none", {}), BrokenContract);
  const LinkId link = network.add_cable(a, b, Rate(1), Picoseconds(0), LinkKind::pcie);
  CHECK_THROWS_AS(network.add_bundle("unknown", {LinkId(9U)}), BrokenContract);
  network.add_bundle("one", {link});
  // Resource numbers count links first: a link after a bundle would renumber the bundle.
  CHECK_THROWS_AS(network.add_cable(a, b, Rate(1), Picoseconds(0), LinkKind::pcie), BrokenContract);
}

TEST_CASE("the Boost graph has the same vertices and edges") {
  const Cluster cluster = build({.nodes = 6});
  const Network& network = cluster.network();
  const NetworkGraph graph = make_graph(network);
  REQUIRE(boost::num_vertices(graph) == network.devices().size());
  REQUIRE(boost::num_edges(graph) == network.links().size());
  for (const auto edge : boost::make_iterator_range(boost::edges(graph))) {
    const Link& link = network.link(graph[edge]);
    REQUIRE(boost::source(edge, graph) == link.from.index());
    REQUIRE(boost::target(edge, graph) == link.to.index());
  }
}

}  // namespace
}  // namespace clustersim::testing
