// Small clusters for tests, and the checks that every route must pass.
#pragma once

#include <cmath>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tests/catch.hpp"
#include "tests/support.hpp"
#include "topologies/cluster.hpp"

namespace clustersim::testing {

template <class T>
Value value(T written) {
  return Value{std::move(written), {}};
}
inline Value integer(std::int64_t written) { return value(written); }
inline Value number(double written) { return value(written); }
inline Value text(std::string written) { return value(std::move(written)); }
inline Value boolean(bool written) { return value(written); }
inline Value table(Value::Table written) { return value(std::move(written)); }
inline Value array(Value::Array written) { return value(std::move(written)); }
inline Value integers(const std::vector<std::int64_t>& written) {
  Value::Array elements;
  for (const std::int64_t each : written) elements.push_back(integer(each));
  return array(std::move(elements));
}
inline Value numbers(const std::vector<double>& written) {
  Value::Array elements;
  for (const double each : written) elements.push_back(number(each));
  return array(std::move(elements));
}

inline NodeShape small_node(std::uint32_t gpus = 1, std::uint32_t nics = 1) {
  NodeShape shape;
  shape.name = "test-node";
  shape.gpus = gpus;
  shape.gpu_link = gigabytes_per_second(450);
  shape.gpu_link_latency = Picoseconds(100'000);
  shape.nics = nics;
  shape.nic_rate = gigabits_per_second(400);
  shape.nic_latency = Picoseconds(300'000);
  shape.cpus = 1;
  shape.pcie_rate = gigabytes_per_second(64);
  shape.pcie_latency = Picoseconds(150'000);
  shape.cpu_link = gigabytes_per_second(60);
  return shape;
}

struct Setup {
  std::string topology = "fat-tree";
  Value::Table parameters{};
  std::int64_t nodes = 4;
  NodeShape shape = small_node();
  Routing routing{};
  Rate link_rate = gigabits_per_second(400);
  Picoseconds link_latency{600'000};
  bool in_network_reduction = false;
};

inline Cluster build(const Setup& setup) {
  const FabricEntry& entry = find_fabric(setup.topology);
  const Settings settings = check_settings(table(setup.parameters), entry.schema, "cluster.network");
  ClusterSpec spec;
  spec.nodes = {{setup.shape, setup.nodes}};
  spec.fabric = &entry;
  spec.fabric_settings = &settings;
  spec.link_rate = setup.link_rate;
  spec.link_latency = setup.link_latency;
  spec.in_network_reduction = setup.in_network_reduction;
  spec.routing = setup.routing;
  return Cluster(spec);
}

/// Share of the transfer on every link, bundles dealt evenly over their members.
inline std::map<std::uint32_t, double> link_shares(const Network& network, const Route& route) {
  std::map<std::uint32_t, double> result;
  for (const PathShare& share : route.shares) {
    if (share.resource < network.links().size()) {
      result[share.resource] += share.share;
      continue;
    }
    const auto members = network.members(BundleId(share.resource - network.links().size()));
    for (const LinkId member : members) result[member.value()] += share.share / static_cast<double>(members.size());
  }
  return result;
}

/// What flows into each device is what flows out, but for the source (out 1) and the destination (in 1); no link more
/// than once, and as many link crossings as hops.
inline void check_conserved(const Network& network, DeviceId source, DeviceId destination, const Route& route) {
  std::map<std::uint32_t, double> surplus;
  double crossings = 0;
  for (const auto& [link, share] : link_shares(network, route)) {
    REQUIRE(share > 0);
    REQUIRE(share <= 1 + 1e-12);
    surplus[network.link(LinkId(link)).from.value()] += share;
    surplus[network.link(LinkId(link)).to.value()] -= share;
    crossings += share;
  }
  surplus[source.value()] -= 1;
  surplus[destination.value()] += 1;
  double worst = 0;
  for (const auto& [device, amount] : surplus) worst = std::max(worst, std::abs(amount));
  REQUIRE(worst < 1e-9);
  REQUIRE(crossings == Approx(route.hops).epsilon(1e-9));
}

/// A single path, link after link.
inline void check_hop_by_hop(const Network& network, DeviceId source, DeviceId destination, const Route& route) {
  REQUIRE(route.shares.size() == route.hops);
  DeviceId at = source;
  Picoseconds latency{0};
  for (const PathShare& hop : route.shares) {
    REQUIRE(hop.share == 1.0);
    REQUIRE(hop.resource < network.links().size());
    const Link& link = network.link(LinkId(hop.resource));
    REQUIRE(link.from == at);
    at = link.to;
    latency += link.latency;
  }
  REQUIRE(at == destination);
  REQUIRE(latency == route.latency);
}

inline DeviceId device_of(const Cluster& cluster, GpuId gpu) {
  const auto name = "node" + std::to_string(cluster.node_of(gpu)) + "/gpu" + std::to_string(cluster.local_index(gpu));
  return cluster.network().find_device(name).value();
}

inline Route route_between(const Cluster& cluster, std::uint32_t from, std::uint32_t to) {
  Route route;
  cluster.route(GpuId(from), GpuId(to), route);
  return route;
}

inline Route fabric_route(const Cluster& cluster, std::uint32_t from, std::uint32_t to, const Routing& routing) {
  Route route;
  cluster.fabric()->route(from, to, routing, route);
  return route;
}

}  // namespace clustersim::testing
