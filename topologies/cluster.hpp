// Nodes joined by a fabric: which GPU sits where, and the way between any two GPUs.
#pragma once

#include <cstdint>
#include <iosfwd>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "topologies/fabric.hpp"
#include "topologies/node.hpp"

namespace clustersim {

using GpuId = Id<struct GpuTag>;  // global GPU number, node-major

struct NodeGroup {
  NodeShape shape;
  std::int64_t count = 1;
};

struct ClusterSpec {
  std::vector<NodeGroup> nodes;         // node numbers run through the groups in order
  const FabricEntry* fabric = nullptr;  // may be null when there is one node only
  const Settings* fabric_settings = nullptr;
  Rate link_rate{0};  // 0 = the NICs' rate
  Picoseconds link_latency{0};
  LinkKind link_kind = LinkKind::infiniband;
  bool in_network_reduction = false;  // switches can reduce (SHARP)
  Routing routing;
};

class Cluster {
 public:
  explicit Cluster(const ClusterSpec& spec);

  [[nodiscard]] Network& network() { return network_; }
  [[nodiscard]] const Network& network() const { return network_; }
  [[nodiscard]] const Fabric* fabric() const { return fabric_.get(); }
  [[nodiscard]] const Routing& routing() const { return routing_; }
  [[nodiscard]] std::uint32_t nodes() const { return static_cast<std::uint32_t>(template_of_node_.size()); }
  [[nodiscard]] std::uint32_t gpus() const { return first_gpu_.back(); }
  [[nodiscard]] std::uint32_t node_of(GpuId gpu) const { return node_of_gpu_[gpu.index()]; }
  [[nodiscard]] std::uint32_t local_index(GpuId gpu) const { return gpu.value() - first_gpu_[node_of(gpu)]; }
  [[nodiscard]] GpuId gpu(std::uint32_t node, std::uint32_t local) const { return GpuId(first_gpu_[node] + local); }
  [[nodiscard]] const NodeTemplate& node(std::uint32_t node) const { return *templates_[template_of_node_[node]]; }
  [[nodiscard]] std::uint32_t template_of(std::uint32_t node) const { return template_of_node_[node]; }
  /// A node's links are numbered in the template's order from here on.
  [[nodiscard]] std::uint32_t first_link(std::uint32_t node) const { return first_link_[node]; }
  [[nodiscard]] std::span<const Endpoint> endpoints() const { return endpoints_; }
  /// A node's endpoints: from here to first_endpoint(node + 1).
  [[nodiscard]] std::uint32_t first_endpoint(std::uint32_t node) const { return first_endpoint_[node]; }

  /// Appends the way from one GPU to another (from != to). Between nodes it leaves through `from_nic` and arrives
  /// through `to_nic` (local NIC numbers; kNearest = the GPU's nearest). Throws Infeasible when there is no way.
  static constexpr std::uint32_t kNearest = ~0U;
  void route(GpuId from, GpuId to, Route& out, std::uint32_t from_nic = kNearest,
             std::uint32_t to_nic = kNearest) const;

  /// Appends one GPU's link into / out of its node's NVSwitches; false when the node has none.
  bool route_to_nvswitch(GpuId gpu, Route& out) const;
  bool route_from_nvswitch(GpuId gpu, Route& out) const;
  /// Appends an in-network (SHARP) reduction tree over the given GPUs' nearest NICs, PCIe included: up and down,
  /// share 1 each per unit of data. False when the fabric cannot.
  bool reduction_tree(std::span<const GpuId> gpus, Route& out) const;

 private:
  void lay_nodes(const ClusterSpec& spec);
  void lay_node(std::uint32_t group);
  [[nodiscard]] std::uint32_t endpoint_of(GpuId gpu, std::uint32_t nic) const;
  void route_out(GpuId gpu, std::uint32_t endpoint, Route& out) const;
  void route_in(GpuId gpu, std::uint32_t endpoint, Route& out) const;

  Network network_;
  std::vector<std::unique_ptr<NodeTemplate>> templates_;
  std::vector<std::uint32_t> template_of_node_;
  std::vector<std::uint32_t> first_gpu_;       // per node, plus the total at the end
  std::vector<std::uint32_t> first_link_;      // per node: its first link in the network
  std::vector<std::uint32_t> first_device_;    // per node: its first device
  std::vector<std::uint32_t> first_endpoint_;  // per node, plus the total at the end: its first fabric endpoint
  std::vector<std::uint32_t> node_of_gpu_;
  std::vector<Endpoint> endpoints_;
  std::unique_ptr<Fabric> fabric_;
  Routing routing_;
};

/// Figures measured on the graph itself (Boost.Graph breadth-first search) rather than from closed forms.
struct MeasuredFigures {
  std::int64_t diameter_hops = 0;  // between endpoints
  double mean_hops = 0;
  bool sampled = false;  // from `sources` endpoints instead of all
  std::int64_t sources = 0;
};
/// Breadth-first search from every endpoint, or from a seeded sample of `max_sources` of them.
MeasuredFigures measure_hops(const Cluster& cluster, std::int64_t max_sources = 256);

/// GraphML or DOT through Boost.Graph, with kind, capacity (bytes/s) and latency (ps) as attributes.
void write_graphml(const Network& network, std::ostream& out);
void write_dot(const Network& network, std::ostream& out);

}  // namespace clustersim
