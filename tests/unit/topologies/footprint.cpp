// Footprints: groups of equal form have equal ways, and equal places of the network do have equal forms.
#include "topologies/footprint.hpp"

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "fixtures.hpp"
#include "tests/catch.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

Value tier(std::int64_t down, std::int64_t up) { return table({{"down", integer(down)}, {"up", integer(up)}}); }

/// 16 nodes: 2 endpoints (rails: 2 nodes) a leaf, 2 leaves a pod, a thin top.
Setup tree(Routing routing, std::string rails = "none") {
  return {.parameters = {{"tiers", array({tier(2, 2), tier(2, 1), table({})})}, {"rails", text(std::move(rails))}},
          .nodes = 16,
          .shape = small_node(2, 2),
          .routing = routing};
}

/// A way in terms of a footprint: latency, and per place and offset the share and the capacity.
using Way = std::pair<std::int64_t, std::map<std::pair<std::size_t, std::uint32_t>, std::pair<double, double>>>;

Way relative_way(const Cluster& cluster, const Footprints& footprints, const Footprint& footprint, GpuId from,
                 GpuId to) {
  Route route;
  cluster.route(from, to, route);
  Way way{route.latency.count(), {}};
  for (const PathShare& share : route.shares) {
    bool found = false;
    for (std::size_t p = 0; p < footprint.places.size(); ++p) {
      const Place& place = footprints.places()[footprint.places[p]];
      for (std::uint32_t offset = 0; offset < place.size(); ++offset) {
        if (place.resource(offset) != share.resource) continue;
        REQUIRE_FALSE(found);  // places do not overlap
        found = true;
        auto& [amount, capacity] = way.second[{p, offset}];
        amount += share.share;
        capacity = cluster.network().resource_capacity(share.resource).value();
      }
    }
    REQUIRE(found);
  }
  return way;
}

/// Checks all ordered pairs of GPUs whose ways are known by form; returns how many pairs and how many forms there were.
std::pair<std::size_t, std::size_t> check_pairs(const Cluster& cluster) {
  Footprints footprints(cluster);
  Footprint footprint;
  std::map<std::vector<std::uint64_t>, Way> known;
  std::size_t pairs = 0;
  for (std::uint32_t from = 0; from < cluster.gpus(); ++from) {
    for (std::uint32_t to = 0; to < cluster.gpus(); ++to) {
      const std::vector<GpuId> gpus{GpuId(from), GpuId(to)};
      if (from == to || !footprints.find(gpus, footprint)) continue;
      ++pairs;
      Way way = relative_way(cluster, footprints, footprint, gpus[0], gpus[1]);
      const auto [entry, added] = known.try_emplace(footprint.form, way);
      REQUIRE(entry->second == way);
    }
  }
  return {pairs, known.size()};
}

}  // namespace

TEST_CASE("pairs of equal form have equal ways in a fat tree") {
  Cluster cluster = build(tree({.policy = RoutingPolicy::spread}));
  // Inside a node: 2 orders. Two nodes have their own leaf each here: 4 choices of GPUs for pod and for beyond.
  CHECK(check_pairs(cluster) == std::pair<std::size_t, std::size_t>(32 * 31, 2 + 4 * 2));
  // A slower NIC cable and a slower up-link, whose bundle and pod then differ from all others.
  cluster.network().set_capacity(*cluster.network().find_link("node3/nic1 -> leaf3"), gigabits_per_second(100));
  cluster.network().set_capacity(*cluster.network().find_link("leaf8 -> spine8"), gigabits_per_second(100));
  const auto [pairs, forms] = check_pairs(cluster);
  CHECK(pairs == 32 * 31);
  CHECK(forms > 10);
  CHECK(forms < 60);
}

TEST_CASE("pairs of equal form have equal ways when leaves serve one rail each") {
  const auto [pairs, forms] = check_pairs(build(tree({.policy = RoutingPolicy::spread}, "optimized")));
  CHECK(pairs == 32 * 31);
  CHECK(forms < 30);
}

TEST_CASE("hashed ways are known by form below one leaf only, and not at all on a torus") {
  Setup setup = tree({.policy = RoutingPolicy::ecmp, .queue_pairs = 2});
  CHECK(check_pairs(build(setup)).first == 16 * 2);  // inside a node
  setup.shape = small_node(1, 1);
  CHECK(check_pairs(build(setup)) == std::pair<std::size_t, std::size_t>(16, 1));  // two nodes a leaf
  setup.topology = "torus";
  setup.parameters = {};
  CHECK(check_pairs(build(setup)).first == 0);
}

TEST_CASE("one switch: all pairs of nodes are alike") {
  Setup setup;
  setup.topology = "single-switch";
  CHECK(check_pairs(build(setup)) == std::pair<std::size_t, std::size_t>(12, 1));
}

TEST_CASE("the form of a larger group says who shares a leaf and a pod") {
  const Cluster cluster = build(tree({.policy = RoutingPolicy::spread}));
  Footprints footprints(cluster);
  const auto form = [&](const std::vector<std::uint32_t>& nodes) {
    std::vector<GpuId> gpus;
    for (const std::uint32_t node : nodes) gpus.push_back(cluster.gpu(node, 0));
    Footprint footprint;
    REQUIRE(footprints.find(gpus, footprint));
    return footprint.form;
  };
  CHECK(form({0, 2, 4}) == form({6, 8, 10}));  // three pods
  CHECK(form({0, 1, 4}) == form({7, 6, 15}));  // two in one pod
  CHECK(form({0, 1, 4}) != form({0, 2, 4}));
  CHECK(form({0, 1, 4}) != form({0, 4, 1}));  // members have their order
}
