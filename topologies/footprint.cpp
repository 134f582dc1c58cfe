// Writes down the form of a group: members by node, kinds of nodes, and who shares which group of the fabric.
#include "topologies/footprint.hpp"

#include <bit>
#include <utility>

namespace clustersim {
namespace {

constexpr std::uint32_t kNone = ~0U;

std::uint64_t capacity_bits(const Network& network, std::uint32_t resource) {
  return std::bit_cast<std::uint64_t>(network.resource_capacity(resource).value());
}

}  // namespace

Footprints::Footprints(const Cluster& cluster)
    : cluster_(cluster), network_place_(kNone), node_place_(cluster.nodes(), kNone), nodes_(cluster.nodes()) {
  if (cluster.fabric() == nullptr) return;
  fabric_ = cluster.fabric()->groups(cluster.routing());
  for (const FabricGroups::Level& level : fabric_.levels) {
    groups_.emplace_back(level.groups);
    group_place_.emplace_back(level.groups, kNone);
  }
}

bool Footprints::find(std::span<const GpuId> gpus, Footprint& out) {
  out.form.clear();
  out.places.clear();
  if (describe(gpus, out)) return true;
  out.places = {place_of_network()};
  return false;
}

bool Footprints::describe(std::span<const GpuId> gpus, Footprint& out) {
  // Algorithms that follow the wiring of a torus look at positions even inside a node.
  if (cluster_.fabric() != nullptr && !cluster_.fabric()->torus_sides().empty()) return false;
  nodes_.clear();
  out.form.push_back(gpus.size());
  for (const GpuId gpu : gpus) {
    const std::uint64_t node = nodes_.number(cluster_.node_of(gpu));
    out.form.push_back(node << 32U | cluster_.local_index(gpu));
  }
  for (const std::uint32_t node : nodes_.seen()) {
    out.places.push_back(place_of_node(node));
    out.form.push_back(places_[out.places.back()].kind);
  }
  // Inside a node ways stay off the fabric, unless the fabric is what joins its GPUs.
  const bool may_leave = nodes_.seen().size() > 1 || cluster_.node(nodes_.seen().front()).shape().nics == 0;
  return cluster_.fabric() == nullptr || !may_leave || describe_fabric(out);
}

/// All endpoints of the members' nodes are described, since a way may leave through any NIC of a node.
bool Footprints::describe_fabric(Footprint& out) {
  if (fabric_.levels.empty()) return false;
  for (FirstSeen& groups : groups_) groups.clear();
  for (const std::uint32_t node : nodes_.seen()) {
    const std::uint32_t first = cluster_.first_endpoint(node);
    for (std::uint32_t endpoint = first; endpoint < cluster_.first_endpoint(node + 1); ++endpoint) {
      const std::uint32_t group = fabric_.group_of[endpoint];
      const bool repeats = endpoint > first && group == fabric_.group_of[endpoint - 1];  // the node's kind says so
      if (!repeats) out.form.push_back(groups_.front().number(group));
    }
  }
  for (std::size_t l = 0; l + 1 < fabric_.levels.size(); ++l) {
    for (const std::uint32_t group : groups_[l].seen()) {
      out.places.push_back(place_of_group(l, group));
      out.form.push_back(places_[out.places.back()].kind);
      out.form.push_back(groups_[l + 1].number(fabric_.levels[l].parent[group]));
    }
  }
  return fabric_.relative_throughout || groups_.back().seen().size() == 1;
}

/// Nodes of a kind have equal links and, where the fabric shows its groups, equal cables, and share groups alike among
/// their endpoints.
std::uint32_t Footprints::place_of_node(std::uint32_t node) {
  if (node_place_[node] != kNone) return node_place_[node];
  const Network& network = cluster_.network();
  Place place{.first = cluster_.first_link(node), .count = cluster_.node(node).links()};
  std::vector<std::uint64_t> key{0, cluster_.template_of(node)};
  if (!fabric_.levels.empty()) {
    const std::uint32_t first = cluster_.first_endpoint(node);
    const std::uint32_t end = cluster_.first_endpoint(node + 1);
    place.first_cable = fabric_.first_link + 2 * first;
    place.cables = 2 * (end - first);
    for (std::uint32_t endpoint = first + 1; endpoint < end; ++endpoint) {
      key.push_back(fabric_.group_of[endpoint] == fabric_.group_of[endpoint - 1] ? 1 : 0);
    }
  }
  for (std::uint32_t i = 0; i < place.size(); ++i) key.push_back(capacity_bits(network, place.resource(i)));
  node_place_[node] = add_place(place, std::move(key));
  return node_place_[node];
}

std::uint32_t Footprints::place_of_network() {
  if (network_place_ == kNone) network_place_ = add_place({.count = cluster_.network().resources()}, {2});
  return network_place_;
}

std::uint32_t Footprints::place_of_group(std::size_t level, std::uint32_t group) {
  std::uint32_t& number = group_place_[level][group];
  if (number != kNone) return number;
  const Place place{.first = fabric_.levels[level].first_resource + 2 * group, .count = 2};
  number = add_place(place, {1, level, capacity_bits(cluster_.network(), place.first),
                             capacity_bits(cluster_.network(), place.first + 1)});
  return number;
}

std::uint32_t Footprints::add_place(Place place, std::vector<std::uint64_t> key) {
  place.kind = kinds_.try_emplace(std::move(key), static_cast<std::uint32_t>(kinds_.size())).first->second;
  places_.push_back(place);
  return static_cast<std::uint32_t>(places_.size() - 1);
}

}  // namespace clustersim
