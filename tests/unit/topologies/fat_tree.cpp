// Fat trees: wiring limits, the ways to write one, routing, rails, in-network reduction, refusals.
#include <algorithm>
#include <numeric>
#include <queue>

#include "sim/fluid.hpp"
#include "sim/random.hpp"
#include "tests/unit/topologies/fixtures.hpp"

namespace clustersim::testing {
namespace {

Value tier(Value::Table entries) { return table(std::move(entries)); }

std::vector<std::int64_t> switch_counts(const Cluster& cluster) {
  std::vector<std::int64_t> counts;
  for (const SwitchTier& row : cluster.fabric()->figures().tiers) counts.push_back(row.switches);
  return counts;
}

std::uint32_t endpoints(const Cluster& cluster) { return static_cast<std::uint32_t>(cluster.endpoints().size()); }

/// Every pair, one path, link after link; several hashed sub-flows conserve the transfer.
void check_all_pairs(const Cluster& cluster) {
  for (std::uint32_t from = 0; from < endpoints(cluster); ++from) {
    for (std::uint32_t to = 0; to < endpoints(cluster); ++to) {
      if (from == to) continue;
      const DeviceId source = cluster.endpoints()[from].device;
      const DeviceId destination = cluster.endpoints()[to].device;
      const auto one = fabric_route(cluster, from, to, {.policy = RoutingPolicy::deterministic});
      check_hop_by_hop(cluster.network(), source, destination, one);
      const Routing hashed{.policy = RoutingPolicy::ecmp, .seed = 7, .queue_pairs = 3};
      check_conserved(cluster.network(), source, destination, fabric_route(cluster, from, to, hashed));
    }
  }
}

/// Share of each link when a transfer is split evenly over all shortest paths, by counting those paths.
std::map<std::uint32_t, double> even_split(const Network& network, DeviceId source, DeviceId destination) {
  const auto search = [&](DeviceId root, bool forward) {
    std::vector<int> distance(network.devices().size(), -1);
    std::vector<double> paths(network.devices().size(), 0);
    std::queue<DeviceId> queue;
    distance[root.index()] = 0;
    paths[root.index()] = 1;
    for (queue.push(root); !queue.empty(); queue.pop()) {
      const DeviceId at = queue.front();
      for (const Link& link : network.links()) {
        if (link.kind == LinkKind::pcie || (forward ? link.from : link.to) != at) continue;
        const DeviceId next = forward ? link.to : link.from;
        if (distance[next.index()] < 0) {
          distance[next.index()] = distance[at.index()] + 1;
          queue.push(next);
        }
        if (distance[next.index()] == distance[at.index()] + 1) paths[next.index()] += paths[at.index()];
      }
    }
    return std::pair(distance, paths);
  };
  const auto [from_source, paths_in] = search(source, true);
  const auto [to_destination, paths_out] = search(destination, false);
  const int shortest = from_source[destination.index()];
  std::map<std::uint32_t, double> shares;
  for (std::uint32_t i = 0; i < network.links().size(); ++i) {
    const Link& link = network.link(LinkId(i));
    if (link.kind == LinkKind::pcie || from_source[link.from.index()] < 0 || to_destination[link.to.index()] < 0)
      continue;
    if (from_source[link.from.index()] + 1 + to_destination[link.to.index()] != shortest) continue;
    shares[i] = paths_in[link.from.index()] * paths_out[link.to.index()] / paths_in[destination.index()];
  }
  return shares;
}

const std::vector<Setup>& regular_trees() {
  static const std::vector<Setup> trees{
      {.parameters = {{"k", integer(4)}}, .nodes = 16},
      {.parameters = {{"k", integer(4)}}, .nodes = 11},
      {.parameters = {{"radix", integer(8)}}, .nodes = 16},  // two levels, two cables per leaf and spine
      {.parameters = {{"radix", integer(4)}, {"levels", integer(3)}}, .nodes = 8},
      {.parameters = {{"down", integers({2, 3, 2})}, {"up", integers({2, 2})}, {"parallel", integers({1, 2})}},
       .nodes = 12},
      {.parameters = {{"down", integers({3, 2, 2})}, {"up", integers({2, 1})}, {"parallel", integers({2, 1})}},
       .nodes = 9}};
  return trees;
}

TEST_CASE("spreading through bundles is the even split over all shortest paths, link by link") {
  for (const Setup& setup : regular_trees()) {
    const Cluster cluster = build(setup);
    for (std::uint32_t from = 0; from < endpoints(cluster); ++from) {
      for (std::uint32_t to = 0; to < endpoints(cluster); ++to) {
        if (from == to) continue;
        const DeviceId source = cluster.endpoints()[from].device;
        const DeviceId destination = cluster.endpoints()[to].device;
        const Route route = fabric_route(cluster, from, to, {.policy = RoutingPolicy::spread});
        check_conserved(cluster.network(), source, destination, route);
        const auto split = even_split(cluster.network(), source, destination);
        const auto shares = link_shares(cluster.network(), route);
        // A bundle reaches all top switches of its subtree; those and only those links are on shortest paths.
        REQUIRE(split.size() == shares.size());
        for (const auto& [link, share] : split) REQUIRE(shares.at(link) == Approx(share).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("max-min rates over bundles equal those over their links, also with a slow link") {
  for (const Setup& setup : regular_trees()) {
    Cluster cluster = build(setup);
    Network& network = cluster.network();
    for (const bool degraded : {false, true}) {
      if (degraded) network.set_capacity(LinkId(network.links().size() - 1), gigabits_per_second(50));
      RandomStream random(3, "permutation");
      std::vector<std::uint32_t> partner(endpoints(cluster));
      std::iota(partner.begin(), partner.end(), 0U);
      std::shuffle(partner.begin(), partner.end(), random);
      MaxMinProblem bundled;
      MaxMinProblem explicit_links;
      for (std::uint32_t r = 0; r < network.resources(); ++r) {
        bundled.capacity.push_back(network.resource_capacity(r).value());
        if (r < network.links().size()) explicit_links.capacity.push_back(bundled.capacity.back());
      }
      for (std::uint32_t from = 0; from < partner.size(); ++from) {
        if (partner[from] == from) continue;
        const Route route = fabric_route(cluster, from, partner[from], {.policy = RoutingPolicy::spread});
        std::vector<Use> uses;
        for (const PathShare& share : route.shares) uses.push_back({ResourceId(share.resource), share.share});
        bundled.uses.push_back(uses);
        uses.clear();
        for (const auto& [link, share] : link_shares(network, route)) uses.push_back({ResourceId(link), share});
        explicit_links.uses.push_back(uses);
      }
      const std::vector<double> a = max_min_rates(bundled);
      const std::vector<double> b = max_min_rates(explicit_links);
      REQUIRE(a.size() == b.size());
      for (std::size_t i = 0; i < a.size(); ++i) REQUIRE(a[i] == Approx(b[i]).epsilon(1e-9));
    }
  }
}

TEST_CASE("regular trees connect every pair") {
  for (const Setup& setup : regular_trees()) check_all_pairs(build(setup));
}

TEST_CASE("trees of any size keep within the radix, at the fewest switches, and connect every pair") {
  RandomStream random(11, "fat-tree sizes");
  for (int round = 0; round < 40; ++round) {
    const std::int64_t radix = 4 + 2 * static_cast<std::int64_t>(random.below(4));  // 4, 6, 8, 10
    const std::int64_t most = std::min<std::int64_t>(120, radix * radix * radix / 4);
    const std::int64_t nodes = 2 + static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(most - 1)));
    INFO("radix " << radix << ", " << nodes << " endpoints");
    const Cluster cluster = build({.parameters = {{"radix", integer(radix)}}, .nodes = nodes});
    // Closed forms of non-blocking trees: ceil(2E/R) leaves (and spines), ceil(E/R) on top.
    const std::int64_t leaves = (2 * nodes + radix - 1) / radix;
    const std::int64_t top = (nodes + radix - 1) / radix;
    if (nodes <= radix) {
      REQUIRE(switch_counts(cluster) == std::vector<std::int64_t>{1});
    } else if (nodes <= radix * radix / 2) {
      REQUIRE(switch_counts(cluster) == std::vector<std::int64_t>{leaves, top});
    } else {
      REQUIRE(switch_counts(cluster) == std::vector<std::int64_t>{leaves, leaves, top});
    }
    std::vector<std::int64_t> ports(cluster.network().devices().size(), 0);
    for (const Link& link : cluster.network().links()) ++ports[link.from.index()];
    for (std::size_t i = 0; i < ports.size(); ++i) {
      if (cluster.network().devices()[i].kind == DeviceKind::network_switch) REQUIRE(ports[i] <= radix);
    }
    check_all_pairs(cluster);
    const MeasuredFigures measured = measure_hops(cluster);
    REQUIRE(cluster.fabric()->figures().mean_hops == Approx(measured.mean_hops).epsilon(1e-12));
    REQUIRE(cluster.fabric()->figures().diameter_hops == static_cast<double>(measured.diameter_hops));
  }
}

TEST_CASE("oversubscribed trees of any size connect every pair and say what they achieve") {
  RandomStream random(12, "oversubscribed sizes");
  for (int round = 0; round < 25; ++round) {
    const std::vector<double> ratios{1 + 0.5 * static_cast<double>(random.below(7)),
                                     1 + static_cast<double>(random.below(5))};
    const auto nodes = static_cast<std::int64_t>(2 + random.below(110));
    INFO(ratios[0] << " " << ratios[1] << " " << nodes);
    const Cluster cluster =
        build({.parameters = {{"radix", integer(12)}, {"oversubscription", numbers(ratios)}}, .nodes = nodes});
    check_all_pairs(cluster);
    const FabricFigures figures = cluster.fabric()->figures();
    REQUIRE(figures.tiers.size() == 3);
    for (std::size_t t = 0; t < 2; ++t) {
      const SwitchTier& row = figures.tiers[t];
      REQUIRE(row.ports_down + row.ports_up == 12);
      REQUIRE(row.oversubscription == Approx(static_cast<double>(row.ports_down) / static_cast<double>(row.ports_up)));
      // Twelve ports cannot split in every ratio; no other split comes nearer in ports.
      REQUIRE(std::abs(12 / (1 + ratios[t]) - static_cast<double>(row.ports_up)) <= 0.5);
    }
    REQUIRE(figures.mean_hops == Approx(measure_hops(cluster).mean_hops).epsilon(1e-12));
  }
}

TEST_CASE("the same tree in three ways of writing") {
  const Cluster by_k = build({.parameters = {{"k", integer(4)}}, .nodes = 16});
  const Cluster by_arrays =
      build({.parameters = {{"down", integers({2, 2, 4})}, {"up", integers({2, 2})}}, .nodes = 16});
  const Cluster by_tiers = build(
      {.parameters = {{"tiers", array({tier({{"down", integer(2)}, {"up", integer(2)}}),
                                       tier({{"down", integer(2)}, {"oversubscription", number(1)}}), tier({})})}},
       .nodes = 16});
  const Cluster by_radix = build({.parameters = {{"radix", integer(4)}}, .nodes = 16});
  for (const Cluster* other : {&by_arrays, &by_tiers, &by_radix}) {
    REQUIRE(other->network().links().size() == by_k.network().links().size());
    for (std::uint32_t i = 0; i < by_k.network().links().size(); ++i) {
      REQUIRE(other->network().link_name(LinkId(i)) == by_k.network().link_name(LinkId(i)));
    }
  }
}

TEST_CASE("tier rates, latencies and rounding of the oversubscription") {
  // Pods of 4 leaves x 4 endpoints; 16 spines' worth of down capacity at 7:1: 4 down cables / 7 -> 1 cable up (at
  // least).
  const Setup setup{.parameters = {{"tiers", array({tier({{"down", integer(4)},
                                                          {"up", integer(4)},
                                                          {"link_rate", text("800 Gb/s")},
                                                          {"link_latency", text("1 us")}}),
                                                    tier({{"down", integer(4)},
                                                          {"oversubscription", number(3)},
                                                          {"link_rate", text("400 Gb/s")}}),
                                                    tier({{"down", integer(2)}})})}},
                    .nodes = 32};
  const Cluster cluster = build(setup);
  const FabricFigures figures = cluster.fabric()->figures();
  // Leaf: 4 x 400 down, 4 x 800 up. Spine: 4 x 800 down; / 3 / 400 = 2.67, rounded to 3 cables of 400 up.
  CHECK(figures.tiers[0].oversubscription == Approx(0.5));
  CHECK(figures.tiers[1].ports_up == 3);
  CHECK(figures.tiers[1].oversubscription == Approx(4 * 800.0 / (3 * 400.0)));
  CHECK(figures.tiers[2].oversubscription == 1);
  // 2 pods x 4 spines x 3 cables = 24; half of them across the middle, against 16 endpoint cables.
  CHECK(figures.bisection_links == 12);
  CHECK(figures.bisection == gigabits_per_second(12 * 400));
  CHECK(figures.cables == 32 + 8 * 4 + 24);
  for (const RoutingPolicy policy : {RoutingPolicy::spread, RoutingPolicy::deterministic, RoutingPolicy::ecmp}) {
    CHECK(fabric_route(cluster, 0, 1, {.policy = policy}).latency == Picoseconds(2 * 600'000));
    CHECK(fabric_route(cluster, 0, 5, {.policy = policy}).latency == Picoseconds(2 * 1'600'000));
    CHECK(fabric_route(cluster, 0, 31, {.policy = policy}).latency == Picoseconds(2 * 2'200'000));
    CHECK(fabric_route(cluster, 0, 31, {.policy = policy}).hops == 6);
  }
}

TEST_CASE("D-mod-k: the destination's digits choose the up-ports, and it comes down one way") {
  const std::uint32_t m = 4;  // k = 8: host h is under leaf h / m; up-port h % m at the leaf, (h / m) % m above
  const Cluster cluster = build({.parameters = {{"k", integer(2 * m)}}, .nodes = 128});
  const Network& network = cluster.network();
  const auto device_index = [&](const Route& route, std::size_t hop) {
    return network.device(network.link(LinkId(route.shares[hop].resource)).to).index;
  };
  for (std::uint32_t to = 0; to < 128; ++to) {
    for (std::uint32_t from = (to + 16) % 128; from != to; from = (from + 5) % 128) {
      const Route route = fabric_route(cluster, from, to, {.policy = RoutingPolicy::deterministic});
      if (route.hops != 6) continue;
      REQUIRE(device_index(route, 0) == from / m);
      REQUIRE(device_index(route, 1) == from / (m * m) * m + to % m);
      REQUIRE(device_index(route, 2) == to % m * m + to / m % m);
      REQUIRE(device_index(route, 3) == to / (m * m) * m + to % m);
      REQUIRE(device_index(route, 4) == to / m);
    }
  }
}

TEST_CASE("D-mod-k is free of contention for shifts on complete trees (Zahavi 2012)") {
  for (const Setup& setup : {Setup{.parameters = {{"k", integer(4)}}, .nodes = 16},
                             Setup{.parameters = {{"radix", integer(8)}}, .nodes = 32},
                             Setup{.parameters = {{"radix", integer(8)}}, .nodes = 64},
                             Setup{.parameters = {{"radix", integer(8)}, {"levels", integer(2)}}, .nodes = 16}}) {
    const Cluster cluster = build(setup);
    const std::uint32_t count = endpoints(cluster);
    for (std::uint32_t shift = 1; shift < count; ++shift) {
      std::map<std::uint32_t, int> flows;
      for (std::uint32_t from = 0; from < count; ++from) {
        const auto route =
            fabric_route(cluster, from, (from + shift) % count, {.policy = RoutingPolicy::deterministic});
        for (const PathShare& hop : route.shares) ++flows[hop.resource];
      }
      for (const auto& [link, crossing] : flows) REQUIRE(crossing == 1);
    }
  }
}

TEST_CASE("ECMP draws depend on seed, pair and queue pair, and fill the links evenly in the mean") {
  const Cluster cluster = build({.parameters = {{"radix", integer(16)}}, .nodes = 128});
  const auto draw = [&](std::uint64_t seed) {
    return fabric_route(cluster, 0, 100, {.policy = RoutingPolicy::ecmp, .seed = seed, .queue_pairs = 1})
        .shares[1]
        .resource;
  };
  std::map<std::uint32_t, int> by_link;
  constexpr int kDraws = 4000;
  for (int seed = 0; seed < kDraws; ++seed) ++by_link[draw(static_cast<std::uint64_t>(seed))];
  CHECK(draw(5) == draw(5));
  REQUIRE(by_link.size() == 8);
  // 4000 draws over 8 links: 500 each, standard deviation 21; five of them as tolerance.
  for (const auto& [link, count] : by_link) CHECK(std::abs(count - kDraws / 8) < 105);
  const Route many = fabric_route(cluster, 0, 100, {.policy = RoutingPolicy::ecmp, .seed = 1, .queue_pairs = 64});
  CHECK(link_shares(cluster.network(), many).size() > 10);
}

TEST_CASE("rails: optimized puts a rail of a group of nodes on one leaf, and all rails meet above") {
  Setup setup{
      .parameters = {{"radix", integer(8)}, {"rails", text("optimized")}}, .nodes = 8, .shape = small_node(4, 4)};
  const Cluster cluster = build(setup);
  // Groups of 4 nodes x 4 rails: 8 leaves of 4 ports down; 8 x 4 up-links on 4 spines of 8 ports.
  CHECK(switch_counts(cluster) == std::vector<std::int64_t>{8, 4});
  const auto hops = [&](std::uint32_t a, std::uint32_t b) { return fabric_route(cluster, a, b, {}).hops; };
  const auto nic = [](std::uint32_t node, std::uint32_t rail) { return node * 4 + rail; };
  CHECK(hops(nic(0, 2), nic(3, 2)) == 2);
  CHECK(hops(nic(0, 2), nic(4, 2)) == 4);
  CHECK(hops(nic(0, 1), nic(0, 2)) == 4);
  check_all_pairs(cluster);
  SECTION("against node order, where a node's own NICs share a leaf") {
    setup.parameters.back().second = text("none");
    const Cluster plain = build(setup);
    CHECK(fabric_route(plain, nic(0, 1), nic(0, 2), {}).hops == 2);
    CHECK(fabric_route(plain, nic(0, 2), nic(3, 2), {}).hops == 4);
  }
  SECTION("with a group that is not full") {
    setup.nodes = 6;
    const Cluster partial = build(setup);
    CHECK(switch_counts(partial) == std::vector<std::int64_t>{8, 4});
    check_all_pairs(partial);
    CHECK(partial.fabric()->figures().mean_hops == Approx(measure_hops(partial).mean_hops).epsilon(1e-12));
  }
}

TEST_CASE("rails: only makes separate fabrics with no way between them") {
  const Cluster cluster =
      build({.parameters = {{"radix", integer(4)}, {"rails", text("only")}}, .nodes = 8, .shape = small_node(2, 2)});
  // Two planes of 8 endpoints on 4-port switches: 4 leaves and 2 spines each.
  CHECK(switch_counts(cluster) == std::vector<std::int64_t>{8, 4});
  for (std::uint32_t from = 0; from < 16; ++from) {
    for (std::uint32_t to = 0; to < 16; ++to) {
      if (from == to) continue;
      for (const RoutingPolicy policy : {RoutingPolicy::spread, RoutingPolicy::deterministic, RoutingPolicy::ecmp}) {
        if (from % 2 == to % 2) {
          check_conserved(cluster.network(), cluster.endpoints()[from].device, cluster.endpoints()[to].device,
                          fabric_route(cluster, from, to, {.policy = policy}));
        } else {
          Route route;
          REQUIRE_THROWS_AS(cluster.fabric()->route(from, to, {.policy = policy}, route), Infeasible);
        }
      }
    }
  }
  const std::string message = message_of<Infeasible>([&] { fabric_route(cluster, 0, 3, {}); });
  CHECK(contains(message, "rail 0"));
  CHECK(contains(message, "rail 1"));
  CHECK(contains(message, "NVLink"));
  CHECK(contains(message, "rails = \"optimized\""));
  // Breadth-first search sees the same separation: pairs across rails do not count.
  CHECK(cluster.fabric()->figures().mean_hops == Approx(measure_hops(cluster).mean_hops).epsilon(1e-12));
}

TEST_CASE("in-network reduction: one stream up and one down per link of the tree") {
  const Cluster cluster = build({.parameters = {{"k", integer(4)}}, .nodes = 16, .in_network_reduction = true});
  const auto tree = [&](std::vector<std::uint32_t> members) {
    Route route;
    REQUIRE(cluster.fabric()->reduction_tree(members, route));
    return route;
  };
  const std::size_t links = cluster.network().links().size();
  const auto bundles = [&](const Route& route) {
    return std::count_if(route.shares.begin(), route.shares.end(),
                         [&](const PathShare& s) { return s.resource >= links; });
  };
  const Route under_leaf = tree({0, 1});
  CHECK(under_leaf.shares.size() == 4);  // two endpoints, up and down
  CHECK(under_leaf.hops == 2);
  const Route in_pod = tree({0, 1, 2});
  CHECK(in_pod.shares.size() == 6 + 4);  // and two leaves, up and down
  CHECK(bundles(in_pod) == 4);
  CHECK(in_pod.hops == 4);
  std::vector<std::uint32_t> everyone(16);
  std::iota(everyone.begin(), everyone.end(), 0U);
  const Route all = tree(everyone);
  CHECK(bundles(all) == 2 * (8 + 4));  // eight leaves, four pods
  CHECK(all.hops == 6);
  CHECK(all.latency == Picoseconds(6 * 600'000));
  for (const PathShare& share : all.shares) CHECK(share.share == 1.0);
  Route none;
  CHECK_FALSE(cluster.fabric()->reduction_tree(std::vector<std::uint32_t>{3}, none));
  CHECK_FALSE(build({}).fabric()->reduction_tree(everyone, none));
  CHECK(none.shares.empty());
}

TEST_CASE("fat trees that cannot be are refused with key, value and what works") {
  const auto refusal = [](Value::Table parameters, std::int64_t nodes = 16) {
    return message_of<BadInput>([&] { return build({.parameters = std::move(parameters), .nodes = nodes}).nodes(); });
  };
  const auto too_many = [](Value::Table parameters, std::int64_t nodes) {
    return message_of<Infeasible>([&] { return build({.parameters = std::move(parameters), .nodes = nodes}).nodes(); });
  };
  CHECK(contains(refusal({{"k", integer(5)}}), "did you mean 6"));
  CHECK(contains(refusal({{"k", integer(4)}, {"radix", integer(8)}}), "radix"));
  CHECK(contains(refusal({{"k", integer(4)}, {"down", integers({4})}}), "whole tree"));
  CHECK(contains(refusal({{"up", integers({4})}}), "write down as well"));
  CHECK(contains(refusal({{"down", integers({4, 4})}, {"up", integers({4, 4})}}), "expected 1"));
  CHECK(contains(refusal({{"down", integers({4, 4})}, {"up", integers({4})}, {"oversubscription", numbers({2})}}),
                 "not both"));
  CHECK(contains(refusal({{"levels", integer(2)}, {"oversubscription", numbers({1, 7})}}), "at most 1"));
  CHECK(contains(refusal({{"tiers", array({})}}), "at least one"));
  CHECK(contains(refusal({{"tiers", array({tier({}), tier({})})}}), "missing"));
  CHECK(contains(refusal({{"tiers", array({tier({{"down", integer(4)}}), tier({{"up", integer(4)}})})}}),
                 "nothing above"));
  CHECK(contains(
      refusal({{"tiers",
                array({tier({{"down", integer(4)}, {"up", integer(2)}, {"oversubscription", number(2)}}), tier({})})}}),
      "not both"));
  CHECK(contains(refusal({{"radixx", integer(8)}}), "radix"));
  CHECK(contains(refusal({{"rails", text("optimised")}}), "optimized"));
  CHECK(contains(too_many({{"radix", integer(4)}}, 17), "at most 16 endpoints"));
  CHECK(contains(too_many({{"radix", integer(8)}, {"levels", integer(2)}}, 33), "at most 32 endpoints"));
  CHECK(contains(too_many({{"k", integer(4)}}, 17), "down of the last tier"));
  CHECK(contains(
      too_many({{"down", integers({2, 2})}, {"up", integers({1'000'000})}, {"parallel", integers({1'000'000})}}, 4),
      "cables"));
}

}  // namespace
}  // namespace clustersim::testing
