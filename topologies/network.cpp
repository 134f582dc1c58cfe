// The graph of a cluster: adding devices and links, names computed on demand, bundles as resources.
#include "topologies/network.hpp"

#include <algorithm>
#include <charconv>
#include <limits>

#include "sim/errors.hpp"
#include "sim/text.hpp"

namespace clustersim {
namespace {

/// "gpu", "nic": the part of a device's name before its number.
std::string_view prefix_in_node(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::gpu:
      return "gpu";
    case DeviceKind::cpu:
      return "cpu";
    case DeviceKind::pcie_switch:
      return "pcie";
    case DeviceKind::nic:
      return "nic";
    case DeviceKind::nvswitch:
      return "nvswitch";
    case DeviceKind::network_switch:
      return "switch";
  }
  throw BrokenContract("unknown device kind");
}

std::optional<std::uint32_t> parse_number(std::string_view text) {
  std::uint32_t value = 0;
  const char* const begin = text.data();
  const char* const end = begin + text.size();
  const auto [last, error] = std::from_chars(begin, end, value);
  if (error != std::errc{} || last != end) return std::nullopt;
  return value;
}

/// The number after `prefix`, when `text` is exactly the two together.
std::optional<std::uint32_t> number_after(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  return parse_number(text.substr(prefix.size()));
}

std::optional<Device> parse_node_device(std::string_view node_part, std::string_view device_part) {
  const auto node = number_after(node_part, "node");
  if (!node) return std::nullopt;
  for (const DeviceKind kind :
       {DeviceKind::gpu, DeviceKind::cpu, DeviceKind::pcie_switch, DeviceKind::nic, DeviceKind::nvswitch}) {
    if (const auto index = number_after(device_part, prefix_in_node(kind))) {
      return Device{.kind = kind, .tier = 0, .node = *node, .index = *index};
    }
  }
  return std::nullopt;
}

constexpr std::string_view kTierNames[] = {"router", "leaf", "spine", "core"};

std::optional<Device> parse_switch(std::string_view name) {
  for (std::size_t tier = 0; tier < std::size(kTierNames); ++tier) {
    if (const auto index = number_after(name, kTierNames[tier])) {
      return Device{.kind = DeviceKind::network_switch, .tier = static_cast<std::uint8_t>(tier), .index = *index};
    }
  }
  const std::size_t dash = name.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto tier = number_after(name.substr(0, dash), "tier");
  const auto index = parse_number(name.substr(dash + 1));
  if (!tier || !index || *tier < std::size(kTierNames) || *tier > std::numeric_limits<std::uint8_t>::max()) {
    return std::nullopt;
  }
  return Device{.kind = DeviceKind::network_switch, .tier = static_cast<std::uint8_t>(*tier), .index = *index};
}

}  // namespace

std::string_view name(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::gpu:
      return "gpu";
    case DeviceKind::cpu:
      return "cpu";
    case DeviceKind::pcie_switch:
      return "pcie-switch";
    case DeviceKind::nic:
      return "nic";
    case DeviceKind::nvswitch:
      return "nvswitch";
    case DeviceKind::network_switch:
      return "network-switch";
  }
  throw BrokenContract("unknown device kind");
}

std::string_view name(LinkKind kind) {
  switch (kind) {
    case LinkKind::nvlink:
      return "nvlink";
    case LinkKind::pcie:
      return "pcie";
    case LinkKind::cpu_interconnect:
      return "cpu-interconnect";
    case LinkKind::infiniband:
      return "infiniband";
    case LinkKind::ethernet:
      return "ethernet";
    case LinkKind::torus_link:
      return "torus-link";
  }
  throw BrokenContract("unknown link kind");
}

DeviceId Network::add_device(const Device& device) {
  devices_.push_back(device);
  return DeviceId(devices_.size() - 1);
}

LinkId Network::add_link(const Link& link) {
  ensure(bundles_.empty(), "a link was added after a bundle: resource numbers already given out would shift");
  ensure(link.from.index() < devices_.size() && link.to.index() < devices_.size(), "a link ends at an unknown device");
  ensure(link.capacity >= Rate(0) && link.latency >= Picoseconds(0), "a link has a negative capacity or latency");
  links_.push_back(link);
  return LinkId(links_.size() - 1);
}

LinkId Network::add_cable(DeviceId a, DeviceId b, Rate capacity_per_direction, Picoseconds latency, LinkKind kind) {
  const LinkId there = add_link({a, b, capacity_per_direction, latency, kind});
  add_link({b, a, capacity_per_direction, latency, kind});
  return there;
}

BundleId Network::add_bundle(std::string bundle_name, std::vector<LinkId> members) {
  ensure(!members.empty(), "bundle {} has no members", bundle_name);
  for (const LinkId member : members) {
    ensure(member.index() < links_.size(), "bundle {} has an unknown member", bundle_name);
  }
  members.shrink_to_fit();
  const Rate capacity = slowest(members);
  bundles_.push_back({std::move(bundle_name), std::move(members), capacity});
  return BundleId(bundles_.size() - 1);
}

void Network::reserve(std::size_t devices, std::size_t links) {
  devices_.reserve(devices);
  links_.reserve(links);
}

Rate Network::slowest(const std::vector<LinkId>& members) const {
  Rate result = link(members.front()).capacity;
  for (const LinkId member : members) result = std::min(result, link(member).capacity);
  return result;
}

void Network::set_capacity(LinkId id, Rate capacity) {
  links_[id.index()].capacity = capacity;
  for (Bundle& bundle : bundles_) {
    const bool has_it = std::find(bundle.members.begin(), bundle.members.end(), id) != bundle.members.end();
    if (has_it) bundle.slowest = slowest(bundle.members);
  }
}

Rate Network::resource_capacity(std::uint32_t resource) const {
  if (resource < links_.size()) return links_[resource].capacity;
  // Traffic is split evenly over the members, so the slowest member is full when it carries its 1/n of the total.
  const Bundle& bundle = bundles_.at(resource - links_.size());
  return bundle.slowest * static_cast<double>(bundle.members.size());
}

LinkKind Network::resource_kind(std::uint32_t resource) const {
  if (resource < links_.size()) return links_[resource].kind;
  return link(bundles_.at(resource - links_.size()).members.front()).kind;
}

std::string Network::resource_name(std::uint32_t resource) const {
  if (resource < links_.size()) return link_name(LinkId(resource));
  const Bundle& bundle = bundles_.at(resource - links_.size());
  const double members = static_cast<double>(bundle.members.size());
  return fmt::format("{} ({} x {})", bundle.name, bundle.members.size(),
                     format_bits(resource_capacity(resource) / members));
}

std::string Network::device_name(DeviceId id) const {
  const Device& found = device(id);
  if (found.kind != DeviceKind::network_switch) {
    return fmt::format("node{}/{}{}", found.node, prefix_in_node(found.kind), found.index);
  }
  if (found.tier < std::size(kTierNames)) return fmt::format("{}{}", kTierNames[found.tier], found.index);
  return fmt::format("tier{}-{}", found.tier, found.index);
}

std::string Network::link_name(LinkId id) const {
  return fmt::format("{} -> {}", device_name(link(id).from), device_name(link(id).to));
}

std::optional<LinkId> Network::find_link(std::string_view link_text) const {
  const std::size_t arrow = link_text.find("->");
  if (arrow == std::string_view::npos) return std::nullopt;
  const auto from = find_device(trimmed(link_text.substr(0, arrow)));
  const auto to = find_device(trimmed(link_text.substr(arrow + 2)));
  if (!from || !to) return std::nullopt;
  const auto found =
      std::find_if(links_.begin(), links_.end(), [&](const Link& l) { return l.from == *from && l.to == *to; });
  if (found == links_.end()) return std::nullopt;
  return LinkId(static_cast<std::size_t>(found - links_.begin()));
}

std::optional<DeviceId> Network::find_device(std::string_view device_text) const {
  const std::size_t slash = device_text.find('/');
  const auto wanted = slash == std::string_view::npos
                          ? parse_switch(device_text)
                          : parse_node_device(device_text.substr(0, slash), device_text.substr(slash + 1));
  if (!wanted) return std::nullopt;
  const auto found = std::find_if(devices_.begin(), devices_.end(), [&](const Device& d) {
    return d.kind == wanted->kind && d.tier == wanted->tier && d.node == wanted->node && d.index == wanted->index;
  });
  if (found == devices_.end()) return std::nullopt;
  return DeviceId(static_cast<std::size_t>(found - devices_.begin()));
}

}  // namespace clustersim
