// Nodes and fabric together: numbering, routes from GPU to GPU, shared NICs, limits.
#include "topologies/cluster.hpp"

#include "tests/unit/topologies/fixtures.hpp"

namespace clustersim::testing {
namespace {

TEST_CASE("GPUs, nodes and endpoints are numbered node by node, also over groups of different nodes") {
  NodeShape big = small_node(8, 4);
  big.nic_rate = gigabits_per_second(200);
  ClusterSpec spec;
  spec.nodes = {{big, 2}, {small_node(2, 1), 3}};
  spec.fabric = &find_fabric("single-switch");
  const Cluster cluster(spec);
  CHECK(cluster.nodes() == 5);
  CHECK(cluster.gpus() == 22);
  CHECK(cluster.endpoints().size() == 11);
  CHECK(cluster.node_of(GpuId(15U)) == 1);
  CHECK(cluster.node_of(GpuId(16U)) == 2);
  CHECK(cluster.local_index(GpuId(19U)) == 1);
  CHECK(cluster.gpu(3, 1) == GpuId(19U));
  CHECK(cluster.endpoints()[8].node == 2);
  CHECK(cluster.endpoints()[7].rail == 3);
  for (std::uint32_t a = 0; a < cluster.gpus(); ++a) {
    for (std::uint32_t b = 0; b < cluster.gpus(); ++b) {
      if (a == b) continue;
      check_hop_by_hop(cluster.network(), device_of(cluster, GpuId(a)), device_of(cluster, GpuId(b)),
                       route_between(cluster, a, b));
    }
  }
  // No link rate given: the fastest NIC's; a slower NIC holds its own cable back.
  const Network& network = cluster.network();
  CHECK(network.link(network.find_link("node2/nic0 -> leaf0").value()).capacity == gigabits_per_second(400));
  CHECK(network.link(network.find_link("leaf0 -> node1/nic3").value()).capacity == gigabits_per_second(200));
}

TEST_CASE("between nodes: GPU to NIC over PCIe, the fabric, NIC to GPU; latencies add up") {
  const Cluster cluster = build({.nodes = 4, .shape = small_node(2, 2)});
  const Route route = route_between(cluster, 1, 6);
  check_conserved(cluster.network(), device_of(cluster, GpuId(1U)), device_of(cluster, GpuId(6U)), route);
  CHECK(route.hops == 2 + 2 + 2);
  // PCIe 4 x 150 ns, adapters 2 x 300 ns, cables 2 x 600 ns.
  CHECK(route.latency == Picoseconds(4 * 150'000 + 2 * 300'000 + 2 * 600'000));
  CHECK(cluster.network().resource_name(route.shares[2].resource) == "node0/nic1 -> leaf0");
  CHECK(cluster.network().resource_name(route.shares[3].resource) == "leaf0 -> node3/nic0");
  SECTION("through named NICs") {
    Route named;
    cluster.route(GpuId(1U), GpuId(6U), named, 0, 1);
    check_conserved(cluster.network(), device_of(cluster, GpuId(1U)), device_of(cluster, GpuId(6U)), named);
    CHECK(cluster.network().resource_name(named.shares[2].resource) == "node0/nic0 -> leaf0");
    CHECK(cluster.network().resource_name(named.shares[3].resource) == "leaf0 -> node3/nic1");
    Route wrong;
    CHECK_THROWS_AS(cluster.route(GpuId(1U), GpuId(6U), wrong, 2, 0), BrokenContract);
    CHECK_THROWS_AS(cluster.route(GpuId(1U), GpuId(1U), wrong), BrokenContract);
    CHECK_THROWS_AS(cluster.route(GpuId(1U), GpuId(99U), wrong), BrokenContract);
  }
}

TEST_CASE("inside a node NVLink carries it, and no NIC is touched") {
  const Cluster cluster = build({.nodes = 2, .shape = small_node(4, 4)});
  const Route route = route_between(cluster, 0, 3);
  CHECK(route.hops == 2);
  CHECK(route.latency == Picoseconds(200'000));
  for (const PathShare& hop : route.shares) CHECK(cluster.network().resource_kind(hop.resource) == LinkKind::nvlink);
}

TEST_CASE("GPUs that share a NIC share its slot and its cable") {
  const Cluster cluster = build({.nodes = 2, .shape = small_node(4, 1)});
  const Route a = route_between(cluster, 0, 4);
  const Route b = route_between(cluster, 3, 7);
  CHECK(a.shares[0].resource != b.shares[0].resource);
  for (std::size_t hop = 1; hop + 1 < a.shares.size(); ++hop) CHECK(a.shares[hop].resource == b.shares[hop].resource);
}

TEST_CASE("in-network reduction: NVSwitch ports and the tree over the nearest NICs") {
  const Cluster cluster =
      build({.parameters = {{"k", integer(4)}}, .nodes = 8, .shape = small_node(4, 2), .in_network_reduction = true});
  Route in_node;
  REQUIRE(cluster.route_to_nvswitch(GpuId(5U), in_node));
  REQUIRE(cluster.route_from_nvswitch(GpuId(5U), in_node));
  REQUIRE(in_node.shares.size() == 2);
  CHECK(cluster.network().resource_name(in_node.shares[0].resource) == "node1/gpu1 -> node1/nvswitch0");
  CHECK(cluster.network().resource_name(in_node.shares[1].resource) == "node1/nvswitch0 -> node1/gpu1");
  // GPUs 0 and 1 have NIC 0 in common: its cable carries one stream, their own slots one each.
  const std::vector<GpuId> members{GpuId(0U), GpuId(1U), GpuId(4U)};
  Route tree;
  REQUIRE(cluster.reduction_tree(members, tree));
  std::map<std::string, double> load;
  for (const PathShare& share : tree.shares) load[cluster.network().resource_name(share.resource)] += share.share;
  CHECK(load.at("node0/nic0 -> leaf0") == 1);
  CHECK(load.at("leaf0 -> node0/nic0") == 1);
  CHECK(load.at("node0/gpu0 -> node0/cpu0") == 1);
  CHECK(load.at("node0/gpu1 -> node0/cpu0") == 1);
  CHECK(load.at("leaf0 uplinks (2 x 400 Gb/s)") == 1);
  CHECK(load.at("leaf1 downlinks (2 x 400 Gb/s)") == 1);
  const Cluster plain = build({.nodes = 2});
  Route none;
  CHECK_FALSE(plain.reduction_tree(std::vector<GpuId>{GpuId(0U), GpuId(1U)}, none));
  CHECK_FALSE(build({.nodes = 2,
                     .shape =
                         [] {
                           NodeShape shape = small_node(4, 1);
                           shape.interconnect = "full-mesh";
                           return shape;
                         }()})
                  .route_to_nvswitch(GpuId(0U), none));
  CHECK(none.shares.empty());
}

TEST_CASE("one node needs no network; more do") {
  ClusterSpec spec;
  spec.nodes = {{small_node(8, 8), 1}};
  const Cluster alone(spec);
  CHECK(alone.fabric() == nullptr);
  CHECK(route_between(alone, 0, 7).hops == 2);
  CHECK(measure_hops(alone).mean_hops == 0);
  CHECK_FALSE(alone.reduction_tree(std::vector<GpuId>{GpuId(0U)}, *std::make_unique<Route>()));
  spec.nodes.front().count = 2;
  CHECK(contains(message_of<BadInput>([&] { return Cluster(spec).nodes(); }), "2 nodes need a network"));
}

TEST_CASE("clusters that cannot be are refused before anything is built") {
  ClusterSpec spec;
  spec.fabric = &find_fabric("fat-tree");
  const auto bad = [&] { return message_of<BadInput>([&] { return Cluster(spec).nodes(); }); };
  const auto impossible = [&] { return message_of<Infeasible>([&] { return Cluster(spec).nodes(); }); };
  CHECK(contains(bad(), "no nodes"));
  spec.nodes = {{small_node(), 0}};
  CHECK(contains(bad(), "at least 1"));
  spec.nodes = {{small_node(4, 0), 2}};
  CHECK(contains(bad(), "link_rate is missing"));
  spec.nodes = {{small_node(8, 8), 1'000'000}};
  CHECK(contains(impossible(), "500000 such nodes"));
  spec.nodes = {{small_node(8, 8), std::int64_t{1} << 60}};
  CHECK(contains(impossible(), "limit is 4000000 GPUs"));
  NodeShape mesh = small_node(256, 1);
  mesh.interconnect = "full-mesh";
  spec.nodes = {{mesh, 2000}};
  CHECK(contains(impossible(), "limit is 100000000"));
  spec.nodes = {{small_node(), 2}};
  spec.routing.queue_pairs = 0;
  CHECK(contains(bad(), "queue_pairs"));
}

TEST_CASE("a moved cluster still routes") {
  Cluster first = build({.parameters = {{"k", integer(4)}}, .nodes = 16});
  const Route before = route_between(first, 0, 15);
  const Cluster second = std::move(first);
  const Route after = route_between(second, 0, 15);
  REQUIRE(before.shares.size() == after.shares.size());
  for (std::size_t i = 0; i < after.shares.size(); ++i) {
    CHECK(before.shares[i].resource == after.shares[i].resource);
    CHECK(second.network().resource_capacity(after.shares[i].resource) > Rate(0));
  }
}

TEST_CASE("131,072 GPUs on a three-tier tree: numbers and routes hold at full size") {
  NodeShape shape = small_node(8, 8);
  shape.cpus = 2;
  shape.pcie_switches = 4;
  const Cluster cluster = build({.parameters = {{"radix", integer(128)}}, .nodes = 16'384, .shape = shape});
  CHECK(cluster.gpus() == 131'072);
  const FabricFigures figures = cluster.fabric()->figures();
  REQUIRE(figures.tiers.size() == 3);
  CHECK(figures.tiers[0].switches == 2048);
  CHECK(figures.tiers[1].switches == 2048);
  CHECK(figures.tiers[2].switches == 1024);
  CHECK(figures.cables == 3 * 131'072);
  const Route route = route_between(cluster, 0, 131'071);
  check_conserved(cluster.network(), device_of(cluster, GpuId(0U)), device_of(cluster, GpuId(131'071U)), route);
  // The closed form against breadth-first search from a sample of endpoints: all alike in a complete tree.
  const MeasuredFigures measured = measure_hops(cluster, 4);
  CHECK(measured.sampled);
  CHECK(figures.mean_hops == Approx(measured.mean_hops).epsilon(1e-12));
}

}  // namespace
}  // namespace clustersim::testing
