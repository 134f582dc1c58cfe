// The inside of a node: GPUs, their scale-up interconnect, PCIe, CPUs and NICs, as one template used for many nodes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "topologies/network.hpp"
#include "topologies/routing.hpp"

namespace clustersim {

/// Everything a node builder needs; the catalog fills it in.
struct NodeShape {
  std::string name;
  std::uint32_t gpus = 8;
  std::string interconnect = "nvswitch";  // one of node_interconnects()
  Rate gpu_link{0};                       // scale-up, all links of one GPU, per direction
  Picoseconds gpu_link_latency{0};        // of one link: GPU to NVSwitch, NVSwitch to GPU, or GPU to GPU
  bool in_network_reduction = false;      // NVLS: the NVSwitches reduce and multicast
  std::uint32_t nics = 8;                 // 0: the fabric attaches to the GPUs themselves
  Rate nic_rate{0};                       // per direction
  Picoseconds nic_latency{0};             // one way through the adapter
  std::uint32_t cpus = 2;
  std::uint32_t pcie_switches = 0;        // 0: GPUs and NICs hang on the CPUs' root ports
  Rate pcie_rate{0};                      // x16 slot, per direction
  Picoseconds pcie_latency{0};            // of one PCIe or socket-to-socket link
  Rate cpu_link{0};                       // between any two sockets, per direction; 0: not joined
  std::vector<std::uint32_t> nic_of_gpu;  // nearest NIC; empty = spread evenly (gpu x nics / gpus)
};

/// A node's wiring, built once per shape and laid into the network once per node.
/// Local link numbers are relative to the first link of the node.
class NodeTemplate {
 public:
  struct LocalHop {
    std::uint32_t link;
    Picoseconds latency;
  };
  using LocalPath = std::vector<LocalHop>;

  explicit NodeTemplate(NodeShape shape);
  [[nodiscard]] const NodeShape& shape() const { return shape_; }
  [[nodiscard]] std::uint32_t links() const { return static_cast<std::uint32_t>(links_.size()); }
  [[nodiscard]] std::uint32_t devices() const { return static_cast<std::uint32_t>(devices_.size()); }

  /// Adds the node's devices and links to the network. GPUs come first, then NICs, then the rest.
  void lay(Network& network, std::uint32_t node) const;

  // Paths inside the node; a GPU's or NIC's local index. PCIe between GPU and NIC, the scale-up links between GPUs.
  [[nodiscard]] const LocalPath& gpu_to_gpu(std::uint32_t from, std::uint32_t to) const;
  [[nodiscard]] const LocalPath& gpu_to_nic(std::uint32_t gpu, std::uint32_t nic) const;
  [[nodiscard]] const LocalPath& nic_to_gpu(std::uint32_t nic, std::uint32_t gpu) const;
  [[nodiscard]] const LocalPath& gpu_to_cpu(std::uint32_t gpu) const;  // nearest socket
  /// Link into and out of the NVSwitches, for in-network reduction. Empty when there is no switch.
  [[nodiscard]] const LocalPath& gpu_to_switch(std::uint32_t gpu) const;
  [[nodiscard]] const LocalPath& switch_to_gpu(std::uint32_t gpu) const;
  [[nodiscard]] std::uint32_t nearest_nic(std::uint32_t gpu) const { return nic_of_gpu_[gpu]; }

  /// True when the two GPUs reach each other over scale-up links, without PCIe.
  [[nodiscard]] bool joined_by_scale_up(std::uint32_t from, std::uint32_t to) const;

  // For interconnect builders (one file each): local device numbers as laid.
  std::uint32_t add_device(DeviceKind kind, std::uint32_t index);
  std::uint32_t add_cable(std::uint32_t a, std::uint32_t b, Rate rate, Picoseconds latency, LinkKind kind);

 private:
  struct LocalLink {
    std::uint32_t from;
    std::uint32_t to;
    Rate rate;
    Picoseconds latency;
    LinkKind kind;
  };
  class PathSearch;
  void add_host_links();
  void find_paths();
  [[nodiscard]] std::uint32_t nearest_cpu(std::uint32_t gpu) const;
  void check_nic_way(std::uint32_t gpu, std::uint32_t nic) const;

  NodeShape shape_;
  std::vector<Device> devices_;
  std::vector<LocalLink> links_;
  std::vector<std::uint32_t> nic_of_gpu_;
  std::vector<LocalPath> gpu_gpu_, gpu_nic_, nic_gpu_, gpu_cpu_, gpu_switch_, switch_gpu_;
  std::vector<bool> scale_up_;  // per pair of GPUs
};

/// How the GPUs of a node are joined: nvswitch, full-mesh, hybrid-cube-mesh, pcie. One file each.
struct NodeInterconnect {
  std::string_view name;
  std::string_view help;
  void (*add)(NodeTemplate& node, std::span<const std::uint32_t> gpu_devices, const NodeShape& shape);
};
std::span<const NodeInterconnect> node_interconnects();

}  // namespace clustersim
