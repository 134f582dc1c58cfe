// The graph of a cluster: devices, directed links between them, and bundles of links that share load evenly.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/ids.hpp"
#include "sim/units.hpp"

namespace clustersim {

using DeviceId = Id<struct DeviceTag>;
using LinkId = Id<struct LinkTag>;
using BundleId = Id<struct BundleTag>;

enum class DeviceKind : std::uint8_t { gpu, cpu, pcie_switch, nic, nvswitch, network_switch };
enum class LinkKind : std::uint8_t { nvlink, pcie, cpu_interconnect, infiniband, ethernet, torus_link };
std::string_view name(DeviceKind kind);
std::string_view name(LinkKind kind);

struct Device {
  DeviceKind kind = DeviceKind::gpu;
  std::uint8_t tier = 0;     // switches: 1 = leaf, 2 = spine, 3 = core; 0 otherwise
  std::uint32_t node = ~0U;  // which node it sits in; ~0 for switches of the fabric
  std::uint32_t index = 0;   // within its node and kind, or within its tier
};

/// One direction of a cable or trace. Capacity is the line rate; protocol efficiency belongs to the communication
/// model.
struct Link {
  DeviceId from;
  DeviceId to;
  Rate capacity{0};
  Picoseconds latency{0};  // propagation plus the forwarding delay of the device it enters
  LinkKind kind = LinkKind::nvlink;
};

/// What a route takes a share of: first all links, then all bundles, in one numbering (see Network::resources()).
/// A bundle is a set of links over which routing always spreads evenly, so the set acts as one resource whose
/// capacity is members x the slowest member.
class Network {
 public:
  DeviceId add_device(const Device& device);
  LinkId add_link(const Link& link);
  /// Two links, a to b and then b to a; returns the first, the second has the next id.
  LinkId add_cable(DeviceId a, DeviceId b, Rate capacity_per_direction, Picoseconds latency, LinkKind kind);
  BundleId add_bundle(std::string name, std::vector<LinkId> members);
  void reserve(std::size_t devices, std::size_t links);

  [[nodiscard]] std::span<const Device> devices() const { return devices_; }
  [[nodiscard]] std::span<const Link> links() const { return links_; }
  [[nodiscard]] const Device& device(DeviceId id) const { return devices_[id.index()]; }
  [[nodiscard]] const Link& link(LinkId id) const { return links_[id.index()]; }
  [[nodiscard]] std::size_t bundles() const { return bundles_.size(); }
  [[nodiscard]] std::span<const LinkId> members(BundleId id) const { return bundles_[id.index()].members; }

  /// Degrades or repairs a link: its line rate becomes `capacity`.
  void set_capacity(LinkId id, Rate capacity);

  // Resources: links 0..links-1, then bundles.
  [[nodiscard]] std::uint32_t resources() const { return static_cast<std::uint32_t>(links_.size() + bundles_.size()); }
  [[nodiscard]] std::uint32_t resource(LinkId id) const { return id.value(); }
  [[nodiscard]] std::uint32_t resource(BundleId id) const {
    return static_cast<std::uint32_t>(links_.size()) + id.value();
  }
  [[nodiscard]] Rate resource_capacity(std::uint32_t resource) const;
  [[nodiscard]] LinkKind resource_kind(std::uint32_t resource) const;
  [[nodiscard]] std::string resource_name(
      std::uint32_t resource) const;  // "node3/nic2 -> leaf5", "pod 1 uplinks (3072 x 400 Gb/s)"

  [[nodiscard]] std::string device_name(DeviceId id) const;  // "node3/gpu2", "node3/nic0", "leaf5", "spine12", "core3"
  [[nodiscard]] std::string link_name(LinkId id) const;      // "node3/nic2 -> leaf5"
  [[nodiscard]] std::optional<LinkId> find_link(std::string_view name) const;  // first of parallel links
  [[nodiscard]] std::optional<DeviceId> find_device(std::string_view name) const;

 private:
  struct Bundle {
    std::string name;
    std::vector<LinkId> members;
    Rate slowest{0};
  };
  [[nodiscard]] Rate slowest(const std::vector<LinkId>& members) const;

  std::vector<Device> devices_;
  std::vector<Link> links_;
  std::vector<Bundle> bundles_;
};

}  // namespace clustersim
