// Tori and meshes: the way round, ties, spreading, uneven sides, routers, refusals.
#include "tests/unit/topologies/fixtures.hpp"

namespace clustersim::testing {
namespace {

Setup torus(std::vector<std::int64_t> dims, Value::Table more = {}) {
  std::int64_t nodes = 1;
  for (const std::int64_t side : dims) nodes *= side;
  Setup setup{.topology = "torus", .parameters = {{"dims", integers(dims)}}, .nodes = nodes};
  for (auto& entry : more) setup.parameters.push_back(std::move(entry));
  return setup;
}

/// Positions visited, the start included, on the one deterministic path.
std::vector<std::uint32_t> visited(const Cluster& cluster, std::uint32_t from, std::uint32_t to) {
  const Route route = fabric_route(cluster, from, to, {.policy = RoutingPolicy::deterministic});
  std::vector<std::uint32_t> nodes{from};
  for (const PathShare& hop : route.shares) {
    nodes.push_back(cluster.network().device(cluster.network().link(LinkId(hop.resource)).to).node);
  }
  return nodes;
}

void check_all_pairs(const Cluster& cluster) {
  const auto count = static_cast<std::uint32_t>(cluster.endpoints().size());
  for (std::uint32_t from = 0; from < count; ++from) {
    for (std::uint32_t to = 0; to < count; ++to) {
      if (from == to) continue;
      const DeviceId a = cluster.endpoints()[from].device;
      const DeviceId b = cluster.endpoints()[to].device;
      check_hop_by_hop(cluster.network(), a, b,
                       fabric_route(cluster, from, to, {.policy = RoutingPolicy::deterministic}));
      check_conserved(cluster.network(), a, b,
                      fabric_route(cluster, from, to, {.policy = RoutingPolicy::ecmp, .seed = 3, .queue_pairs = 3}));
      check_conserved(cluster.network(), a, b, fabric_route(cluster, from, to, {.policy = RoutingPolicy::spread}));
    }
  }
}

TEST_CASE("the shorter way round; half way round the rising way, but the falling one to coordinate 0") {
  using Path = std::vector<std::uint32_t>;
  const Cluster ring = build(torus({6}));
  CHECK(visited(ring, 0, 2) == Path{0, 1, 2});
  CHECK(visited(ring, 0, 5) == Path{0, 5});
  CHECK(visited(ring, 5, 1) == Path{5, 0, 1});
  CHECK(visited(ring, 0, 3) == Path{0, 1, 2, 3});
  CHECK(visited(ring, 4, 1) == Path{4, 5, 0, 1});
  CHECK(visited(ring, 3, 0) == Path{3, 2, 1, 0});
  const Cluster two = build(torus({2}));
  CHECK(visited(two, 0, 1) == Path{0, 1});
  CHECK(visited(two, 1, 0) == Path{1, 0});
}

TEST_CASE("the first dimension varies fastest and is crossed first") {
  const Cluster cluster = build(torus({4, 3, 2}));
  // From (0, 0, 0) to (1, 1, 1) = 1 + 4 + 12.
  CHECK(visited(cluster, 0, 17) == std::vector<std::uint32_t>{0, 1, 5, 17});
  CHECK(visited(cluster, 17, 0) == std::vector<std::uint32_t>{17, 16, 12, 0});
}

TEST_CASE("tori and meshes of many shapes connect every pair, by paths as short as search finds") {
  const std::vector<Setup> setups{
      torus({4, 4, 4}),
      torus({5, 3}),
      torus({2, 2, 2, 2}),
      torus({7}),
      torus({1, 6}),
      torus({4, 4}, {{"wrap", boolean(false)}}),
      torus({4, 5}, {{"wrap", array({boolean(true), boolean(false)})}}),
      {.topology = "torus", .parameters = {{"dims", integers({3, 4})}, {"concentration", integer(3)}}, .nodes = 36},
      {.topology = "torus", .nodes = 30}};
  for (const Setup& setup : setups) {
    const Cluster cluster = build(setup);
    check_all_pairs(cluster);
    const FabricFigures figures = cluster.fabric()->figures();
    const MeasuredFigures measured = measure_hops(cluster);
    CHECK_FALSE(measured.sampled);
    CHECK(figures.mean_hops == Approx(measured.mean_hops).epsilon(1e-12));
    CHECK(figures.diameter_hops == static_cast<double>(measured.diameter_hops));
    std::size_t fabric_links = 0;
    for (const Link& link : cluster.network().links()) fabric_links += link.kind == LinkKind::infiniband ? 1 : 0;
    CHECK(static_cast<std::size_t>(figures.cables) * 2 == fabric_links);
  }
}

TEST_CASE("default sides are as equal as they can be") {
  const Cluster cluster = build({.topology = "torus", .nodes = 24});  // 4 x 3 x 2 has the shortest diameter of 24
  CHECK(cluster.fabric()->figures().diameter_hops == 2 + 1 + 1);
}

TEST_CASE("spreading halves ties and takes each order of dimensions equally") {
  const Cluster cluster = build(torus({4, 3}));
  const auto& network = cluster.network();
  const auto share = [&](const Route& route, const std::string& link) {
    const auto shares = link_shares(network, route);
    const auto found = shares.find(network.find_link(link).value().value());
    return found == shares.end() ? 0.0 : found->second;
  };
  // (0, 0) to (2, 1): half way round the first side (both ways), one step on the second; two orders.
  const Route route = fabric_route(cluster, 0, 6, {.policy = RoutingPolicy::spread});
  CHECK(share(route, "node0/nic0 -> node1/nic0") == Approx(0.25));
  CHECK(share(route, "node0/nic0 -> node3/nic0") == Approx(0.25));
  CHECK(share(route, "node0/nic0 -> node4/nic0") == Approx(0.5));
  CHECK(share(route, "node2/nic0 -> node6/nic0") == Approx(0.5));
  CHECK(share(route, "node5/nic0 -> node6/nic0") == Approx(0.25));
  CHECK(route.hops == 3);
  // One straight line stays one path.
  CHECK(fabric_route(cluster, 0, 1, {.policy = RoutingPolicy::spread}).shares.size() == 1);
}

TEST_CASE("a torus of GPUs without NICs joins them directly, inside a node too") {
  Setup setup = torus({2, 2, 2});
  setup.nodes = 2;
  setup.shape = small_node(4, 0);
  setup.shape.interconnect = "pcie";
  setup.routing.policy = RoutingPolicy::deterministic;
  const Cluster cluster = build(setup);
  REQUIRE(cluster.endpoints().size() == 8);
  for (std::uint32_t from = 0; from < 8; ++from) {
    for (std::uint32_t to = 0; to < 8; ++to) {
      if (from == to) continue;
      const Route route = route_between(cluster, from, to);
      check_hop_by_hop(cluster.network(), device_of(cluster, GpuId(from)), device_of(cluster, GpuId(to)), route);
      for (const PathShare& hop : route.shares)
        CHECK(cluster.network().resource_kind(hop.resource) == LinkKind::infiniband);
    }
  }
  CHECK(route_between(cluster, 0, 7).hops == 3);
}

TEST_CASE("routers and the rate of what is attached") {
  const Cluster cluster = build(
      {.topology = "torus",
       .parameters = {{"dims", integers({3, 3})}, {"concentration", integer(2)}, {"attach_rate", text("200 Gb/s")}},
       .nodes = 18});
  const Network& network = cluster.network();
  CHECK(network.link(network.find_link("node5/nic0 -> router2").value()).capacity == gigabits_per_second(200));
  CHECK(network.link(network.find_link("router0 -> router1").value()).capacity == gigabits_per_second(400));
  CHECK(fabric_route(cluster, 0, 1, {}).hops == 2);
  CHECK(fabric_route(cluster, 0, 2, {}).hops == 3);
  CHECK(fabric_route(cluster, 0, 2, {}).latency == Picoseconds(3 * 600'000));
}

TEST_CASE("tori that cannot be are refused") {
  const auto refusal = [](Value::Table parameters, std::int64_t nodes) {
    return message_of<BadInput>(
        [&] { return build({.topology = "torus", .parameters = std::move(parameters), .nodes = nodes}).nodes(); });
  };
  CHECK(contains(refusal({{"dims", integers({4, 4})}}, 12), "did you mean [4, 3]"));
  CHECK(contains(refusal({{"dims", integers({})}}, 12), "dims"));
  CHECK(contains(refusal({{"dims", integers({2, 2, 2, 2, 2, 2, 2})}}, 128), "1 to 6"));
  CHECK(contains(refusal({{"dims", integers({0, 4})}}, 12), "dims"));
  CHECK(contains(refusal({{"dims", integers({4, 3})}, {"wrap", array({boolean(true)})}}, 12), "array of 2"));
  CHECK(contains(refusal({{"dims", integers({4, 3})}, {"wrap", text("yes")}}, 12), "wrap"));
  CHECK(contains(refusal({{"dims", integers({4, 3})}, {"wrap", array({boolean(true), integer(1)})}}, 12), "not 1"));
  CHECK(contains(refusal({{"concentration", integer(8)}}, 12), "did you mean 4"));
  CHECK(contains(refusal({{"attach_rate", text("200 Gb/s")}}, 12), "concentration"));
}

}  // namespace
}  // namespace clustersim::testing
