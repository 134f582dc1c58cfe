// Where a group of GPUs sits, written without absolute positions: groups that sit alike have equal footprints.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <vector>

#include "sim/first_seen.hpp"
#include "topologies/cluster.hpp"

namespace clustersim {

/// Resources that are numbered together: all links of a node and the cables of its endpoints, or the two bundles of a
/// group of the fabric, or simply all of the network. In places of one kind, resources of equal offset have equal
/// capacity and look.
struct Place {
  std::uint32_t first = 0;  // resources first .. first + count - 1, then those from first_cable on
  std::uint32_t count = 0;
  std::uint32_t first_cable = 0;
  std::uint32_t cables = 0;
  std::uint32_t kind = 0;
  [[nodiscard]] std::uint32_t size() const { return count + cables; }
  [[nodiscard]] std::uint32_t resource(std::uint32_t offset) const {
    return offset < count ? first + offset : first_cable + (offset - count);
  }
};

/// All that ways between the members can cross lies in one of the places. Two groups of equal form have equal ways,
/// read place for place: the same latency, and the same share of the resource at each offset.
struct Footprint {
  std::vector<std::uint64_t> form;
  std::vector<std::uint32_t> places;  // numbers of Footprints::places()
};

/// Finds footprints on one cluster, whose capacities must not change meanwhile.
class Footprints {
 public:
  explicit Footprints(const Cluster& cluster);
  /// False where ways depend on absolute positions: on tori, and between leaves when routes are hashed or follow
  /// digits. The only place is then the whole network, and the form says nothing.
  [[nodiscard]] bool find(std::span<const GpuId> gpus, Footprint& out);
  [[nodiscard]] std::uint32_t place_of_node(std::uint32_t node);
  [[nodiscard]] const std::vector<Place>& places() const { return places_; }

 private:
  [[nodiscard]] std::uint32_t place_of_group(std::size_t level, std::uint32_t group);
  [[nodiscard]] std::uint32_t place_of_network();
  [[nodiscard]] bool describe(std::span<const GpuId> gpus, Footprint& out);
  [[nodiscard]] bool describe_fabric(Footprint& out);
  std::uint32_t add_place(Place place, std::vector<std::uint64_t> key);

  const Cluster& cluster_;
  FabricGroups fabric_;
  std::vector<Place> places_;
  std::uint32_t network_place_;
  std::vector<std::uint32_t> node_place_;                // kNone before it was asked for
  std::vector<std::vector<std::uint32_t>> group_place_;  // per level and group
  std::map<std::vector<std::uint64_t>, std::uint32_t> kinds_;
  FirstSeen nodes_;
  std::vector<FirstSeen> groups_;  // per level
};

}  // namespace clustersim
