// Counts, distances and ceilings of fat trees and tori against their closed forms.
#include "sim/fluid.hpp"
#include "tests/unit/topologies/fixtures.hpp"

namespace clustersim::testing {
namespace {

std::vector<std::int64_t> switch_counts(const Cluster& cluster) {
  std::vector<std::int64_t> counts;
  for (const SwitchTier& row : cluster.fabric()->figures().tiers) counts.push_back(row.switches);
  return counts;
}

/// Smallest node: for large counts the inside of a node is not the subject.
Cluster fabric_of(std::string topology, Value::Table parameters, std::int64_t endpoints) {
  return build({.topology = std::move(topology), .parameters = std::move(parameters), .nodes = endpoints});
}

Cluster torus(const std::vector<std::int64_t>& dims, bool wrap, Rate rate = gigabits_per_second(400)) {
  Setup setup{.topology = "torus", .parameters = {{"dims", integers(dims)}, {"wrap", boolean(wrap)}}, .nodes = 1};
  for (const std::int64_t side : dims) setup.nodes *= side;
  setup.shape.nic_rate = rate;
  setup.link_rate = rate;
  return build(setup);
}

TEST_CASE("k-ary fat tree: k^3/4 hosts, k^2 edge and aggregation, k^2/4 core switches, k^3/4 cables per tier") {
  for (const std::int64_t k : {4, 8, 64}) {
    const std::int64_t hosts = k * k * k / 4;
    INFO("k = " << k);
    const Cluster cluster = fabric_of("fat-tree", {{"k", integer(k)}}, hosts);
    const FabricFigures figures = cluster.fabric()->figures();
    CHECK(switch_counts(cluster) == std::vector<std::int64_t>{k * k / 2, k * k / 2, k * k / 4});
    for (const SwitchTier& row : figures.tiers) CHECK(row.cables_down == hosts);
    CHECK(figures.cables == 3 * hosts);
    // Counted on the graph as well.
    std::map<std::uint8_t, std::int64_t> devices;
    for (const Device& device : cluster.network().devices()) devices[device.tier] += device.node == ~0U ? 1 : 0;
    CHECK(devices[1] + devices[2] == k * k);
    CHECK(devices[3] == k * k / 4);
    // Bisection: half of the k^3/4 cables between aggregation and core, k^3/8 = hosts/2: full bisection.
    CHECK(figures.bisection_links == k * k * k / 8);
    CHECK(figures.bisection == gigabits_per_second(400.0 * static_cast<double>(hosts) / 2));
    // Mean over distinct pairs. From one host: k/2 - 1 others under its edge switch at 2 links, (k/2)^2 - k/2 more in
    // its pod at 4, the remaining hosts at 6.
    const double h = static_cast<double>(k) / 2;
    const double others = static_cast<double>(hosts) - 1;
    const double mean = (2 * (h - 1) + 4 * (h * h - h) + 6 * (static_cast<double>(hosts) - h * h)) / others;
    CHECK(figures.mean_hops == Approx(mean).epsilon(1e-12));
    CHECK(figures.diameter_hops == 6);
    const MeasuredFigures measured = measure_hops(cluster, 16);
    CHECK(measured.mean_hops == Approx(mean).epsilon(1e-12));  // every host sees the same, so a sample is exact
    CHECK(measured.diameter_hops == 6);
  }
  CHECK(fabric_of("fat-tree", {{"k", integer(4)}}, 16).fabric()->figures().mean_hops == Approx(5.46667).epsilon(1e-6));
}

TEST_CASE("two-level non-blocking: ceil(2E/R) leaves and ceil(E/R) spines") {
  for (const auto& [endpoints, leaves, spines] : {std::array{512, 16, 8}, {1024, 32, 16}, {2048, 64, 32}}) {
    const Cluster cluster = fabric_of("fat-tree", {{"levels", integer(2)}}, endpoints);
    CHECK(switch_counts(cluster) == std::vector<std::int64_t>{leaves, spines});
    for (const SwitchTier& row : cluster.fabric()->figures().tiers) CHECK(row.cables_down == endpoints);
  }
}

TEST_CASE("three-level non-blocking: ceil(2E/R) leaves, as many spines, ceil(E/R) cores") {
  for (const auto& [endpoints, leaves, cores] : {std::array{4096, 128, 64}, {8192, 256, 128}, {16384, 512, 256}}) {
    const Cluster cluster = fabric_of("fat-tree", {{"levels", integer(3)}}, endpoints);
    CHECK(switch_counts(cluster) == std::vector<std::int64_t>{leaves, leaves, cores});
    for (const SwitchTier& row : cluster.fabric()->figures().tiers) CHECK(row.cables_down == endpoints);
  }
}

TEST_CASE("the most endpoints of radix R: R^2/2 on two levels, R^3/4 on three") {
  for (const std::int64_t radix : {4, 8, 64}) {
    for (const auto& [levels, most] : {std::pair{2L, radix * radix / 2}, {3L, radix * radix * radix / 4}}) {
      const Value::Table parameters{{"levels", integer(levels)}, {"radix", integer(radix)}};
      INFO("radix " << radix << ", " << levels << " levels");
      CHECK(fabric_of("fat-tree", parameters, most).endpoints().size() == static_cast<std::size_t>(most));
      const std::string message =
          message_of<Infeasible>([&] { return fabric_of("fat-tree", parameters, most + 1).nodes(); });
      CHECK(contains(message, fmt::format("at most {} endpoints", most)));
    }
  }
}

TEST_CASE("oversubscription o:1 caps traffic across pods at B/o per host") {
  // Every host sends evenly to all hosts of other leaves. A leaf of 14 hosts has 2 up-links: 14 r <= 2 B, r = B/7.
  const auto host_rate = [](Value::Table parameters, std::uint32_t hosts, std::uint32_t pod) {
    const Cluster cluster = fabric_of("fat-tree", std::move(parameters), hosts);
    const Network& network = cluster.network();
    MaxMinProblem problem;
    for (std::uint32_t r = 0; r < network.resources(); ++r) {
      problem.capacity.push_back(network.resource_capacity(r).value());
    }
    for (std::uint32_t from = 0; from < hosts; ++from) {
      std::vector<Use> uses;
      for (std::uint32_t to = 0; to < hosts; ++to) {
        if (from / pod == to / pod) continue;
        for (const PathShare& share : fabric_route(cluster, from, to, {.policy = RoutingPolicy::spread}).shares) {
          uses.push_back({ResourceId(share.resource), share.share / (hosts - pod)});
        }
      }
      problem.uses.push_back(std::move(uses));
    }
    const std::vector<double> rates = max_min_rates(problem);
    for (const double rate : rates) REQUIRE(rate == Approx(rates.front()).epsilon(1e-9));
    return rates.front();
  };
  const double expected = gigabits_per_second(400).value() / 7;  // 57.1429 Gb/s
  CHECK(expected * 8 / 1e9 == Approx(57.1429).epsilon(1e-6));
  CHECK(host_rate({{"down", integers({14, 4})}, {"up", integers({2})}}, 56, 14) == Approx(expected).epsilon(1e-9));
  // At the second tier: pods of 2 leaves x 7 hosts, 7 spines with 2 down and 2/7... written as 14 down and 2 up.
  CHECK(host_rate({{"tiers", array({table({{"down", integer(2)}, {"up", integer(2)}}),
                                    table({{"down", integer(7)}, {"oversubscription", number(7)}}),
                                    table({{"down", integer(3)}})})}},
                  42, 14) == Approx(expected).epsilon(1e-9));
  // Non-blocking: the host's own cable.
  CHECK(host_rate({{"k", integer(4)}}, 16, 4) == Approx(expected * 7).epsilon(1e-9));
}

TEST_CASE("torus: mean and largest distance, and links across the middle") {
  struct Row {
    std::vector<std::int64_t> dims;
    double mean_with_self;
    double mean_distinct;
    double diameter;
    std::int64_t bisection;
  };
  // Per ring: k/4 for even k, (k^2 - 1)/4k for odd k; bisection 2N/k for the longest even side.
  const std::vector<Row> rows{{{8, 8}, 4.0, 4.0635, 8, 16},
                              {{4, 4, 4}, 3.0, 3.0476, 6, 32},
                              {{16, 16, 16}, 12.0, 12.0029, 24, 512},
                              {{5, 5, 5}, 3.6, 3.6290, 6, -1}};
  for (const Row& row : rows) {
    const Cluster cluster = torus(row.dims, true);
    const auto count = static_cast<double>(cluster.endpoints().size());
    const FabricFigures figures = cluster.fabric()->figures();
    CHECK(figures.mean_hops == Approx(row.mean_with_self * count / (count - 1)).epsilon(1e-12));
    CHECK(figures.mean_hops == Approx(row.mean_distinct).epsilon(2e-5));
    CHECK(figures.diameter_hops == row.diameter);
    CHECK(figures.bisection_links == row.bisection);
    const MeasuredFigures measured = measure_hops(cluster, 64);
    CHECK(measured.mean_hops == Approx(figures.mean_hops).epsilon(1e-12));
    CHECK(static_cast<double>(measured.diameter_hops) == row.diameter);
    if (row.bisection < 0) continue;
    // Counted on the graph: links from the lower to the upper half of the last (longest) side.
    std::int64_t crossing = 0;
    for (const Link& link : cluster.network().links()) {
      if (link.kind != LinkKind::infiniband) continue;
      const std::uint32_t half = cluster.nodes() / 2;
      if (cluster.network().device(link.from).node < half && cluster.network().device(link.to).node >= half) ++crossing;
    }
    CHECK(crossing == row.bisection);
  }
}

TEST_CASE("mesh 8x8: mean distance (k - 1/k)/3 per side, 5.25 in all, half the torus's bisection") {
  const Cluster cluster = torus({8, 8}, false);
  const FabricFigures figures = cluster.fabric()->figures();
  CHECK(figures.mean_hops * 63 / 64 == Approx(5.25).epsilon(1e-12));
  CHECK(measure_hops(cluster).mean_hops * 63 / 64 == Approx(5.25).epsilon(1e-12));
  CHECK(figures.bisection_links == 8);
  CHECK(figures.diameter_hops == 14);
}

/// Largest load on a link when every node sends one unit, spread evenly over all nodes (itself included).
double heaviest_load(const Cluster& cluster, std::uint32_t sources) {
  const auto count = static_cast<std::uint32_t>(cluster.endpoints().size());
  std::map<std::uint32_t, double> load;
  for (std::uint32_t from = 0; from < sources; ++from) {
    for (std::uint32_t to = 0; to < count; ++to) {
      if (from == to) continue;
      for (const PathShare& share : fabric_route(cluster, from, to, {.policy = RoutingPolicy::spread}).shares) {
        load[share.resource] += share.share / count;
      }
    }
  }
  double heaviest = 0;
  for (const auto& [link, amount] : load) heaviest = std::max(heaviest, amount);
  return heaviest;
}

TEST_CASE("uniform traffic on a k-ary torus: at most 8b/k per node") {
  // Per side a node's traffic goes k/4 hops on average, over two links per node: load k/8 per unit sent.
  for (const auto& [dims, k] : {std::pair{std::vector<std::int64_t>{8, 8}, 8.0}, {{4, 4, 4}, 4.0}}) {
    const Cluster cluster = torus(dims, true);
    CHECK(heaviest_load(cluster, cluster.nodes()) == Approx(k / 8).epsilon(1e-9));
  }
  // 16^3 at 50 GB/s: 25 GB/s. All nodes are alike, so the loads that one source puts on all links of one side and
  // direction, summed, are what all sources together put on each of them.
  const Rate rate = gigabytes_per_second(50);
  const Cluster cluster = torus({16, 16, 16}, true, rate);
  std::array<double, 6> load{};
  for (std::uint32_t to = 1; to < 4096; ++to) {
    for (const PathShare& share : fabric_route(cluster, 0, to, {.policy = RoutingPolicy::spread}).shares) {
      const Link& link = cluster.network().link(LinkId(share.resource));
      const std::int64_t from_node = cluster.network().device(link.from).node;
      const std::int64_t step = (std::int64_t{cluster.network().device(link.to).node} - from_node + 4096) % 4096;
      // A step of the side with stride s changes the number by +s or -s, or by 15 s where the ring closes.
      for (std::size_t side = 0; side < 3; ++side) {
        const std::int64_t stride = std::int64_t{1} << (4 * side);
        if (step == stride || step == 4096 - 15 * stride) load[2 * side] += share.share / 4096;
        if (step == 4096 - stride || step == 15 * stride) load[2 * side + 1] += share.share / 4096;
      }
    }
  }
  for (const double each : load) CHECK(rate.value() / each == Approx(25e9).epsilon(1e-9));
}

TEST_CASE("Little's law: mean load of a port is injection x mean hops / ports") {
  // 4^3 at 100 GB/s injected per node, uniform with self: 100 x 3.0 / 6 = 50 GB/s on each of the six ports.
  const Cluster cluster = torus({4, 4, 4}, true);
  double crossings = 0;
  for (std::uint32_t from = 0; from < 64; ++from) {
    for (std::uint32_t to = 0; to < 64; ++to) {
      if (from == to) continue;
      for (const PathShare& share : fabric_route(cluster, from, to, {.policy = RoutingPolicy::deterministic}).shares) {
        crossings += share.share;
      }
    }
  }
  const double ports = 64 * 6;
  const double load = 100e9 / 64 * crossings / ports;
  CHECK(load == Approx(50e9).epsilon(1e-12));
  const double mean_with_self = cluster.fabric()->figures().mean_hops * 63 / 64;
  CHECK(load == Approx(100e9 * mean_with_self / 6).epsilon(1e-12));
}

}  // namespace
}  // namespace clustersim::testing
