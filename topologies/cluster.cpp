// Nodes laid in order and joined by a fabric; routes through both.
#include "topologies/cluster.hpp"

#include <algorithm>
#include <array>
#include <iterator>

#include "sim/errors.hpp"

namespace clustersim {
namespace {

constexpr std::int64_t kMostGpus = 4'000'000;
constexpr std::int64_t kMostLinks = 2 * kMostCables;

/// Refused before anything is allocated: a slip in a count should not take the machine's memory.
void check_size(const ClusterSpec& spec) {
  if (spec.nodes.empty()) bad_input("the cluster has no nodes; give it at least one");
  double gpus = 0;
  double count = 0;
  for (const NodeGroup& group : spec.nodes) {
    if (group.count < 1) bad_input("cluster nodes = {} of {}: must be at least 1", group.count, group.shape.name);
    count += static_cast<double>(group.count);
    gpus += static_cast<double>(group.count) * group.shape.gpus;
  }
  if (gpus > static_cast<double>(kMostGpus)) {
    infeasible("the cluster would have {:.0f} GPUs in {:.0f} nodes; the limit is {} GPUs, which is {:.0f} such nodes",
               gpus, count, kMostGpus, static_cast<double>(kMostGpus) * count / gpus);
  }
}

void check_links(const std::vector<NodeGroup>& groups, const std::vector<std::unique_ptr<NodeTemplate>>& templates) {
  double links = 0;
  double count = 0;
  for (std::size_t i = 0; i < groups.size(); ++i) {
    links += static_cast<double>(groups[i].count) * templates[i]->links();
    count += static_cast<double>(groups[i].count);
  }
  if (links > static_cast<double>(kMostLinks)) {
    infeasible("the nodes alone would have {:.0f} links; the limit is {}, which is {:.0f} such nodes", links,
               kMostLinks, static_cast<double>(kMostLinks) * count / links);
  }
}

void add_path(const NodeTemplate::LocalPath& path, std::uint32_t first_link, Route& out) {
  for (const NodeTemplate::LocalHop& hop : path) out.add_hop(first_link + hop.link, hop.latency);
}

Settings default_settings(const FabricEntry& entry) {
  return check_settings(Value{Value::Table{}, {}}, entry.schema, "cluster.network");
}

}  // namespace

Cluster::Cluster(const ClusterSpec& spec) : routing_(spec.routing) {
  check_size(spec);
  if (routing_.queue_pairs < 1) bad_input("cluster.network.queue_pairs = 0: must be at least 1");
  for (const NodeGroup& group : spec.nodes) templates_.push_back(std::make_unique<NodeTemplate>(group.shape));
  check_links(spec.nodes, templates_);
  lay_nodes(spec);
  if (spec.fabric == nullptr) {
    if (nodes() > 1) bad_input("cluster.network: {} nodes need a network; give it a topology", nodes());
    return;
  }
  Rate link_rate = spec.link_rate;
  if (link_rate == Rate(0)) {
    for (const Endpoint& endpoint : endpoints_) link_rate = std::max(link_rate, endpoint.rate);
  }
  if (!(link_rate > Rate(0))) {
    bad_input("cluster.network.link_rate is missing: the nodes have no NICs whose rate could stand for it");
  }
  const FabricContext context{.network = network_,
                              .endpoints = endpoints_,
                              .nodes = nodes(),
                              .link_rate = link_rate,
                              .link_latency = spec.link_latency,
                              .link_kind = spec.link_kind,
                              .in_network_reduction = spec.in_network_reduction};
  if (spec.fabric_settings != nullptr) {
    fabric_ = spec.fabric->build(context, *spec.fabric_settings);
  } else {
    fabric_ = spec.fabric->build(context, default_settings(*spec.fabric));
  }
}

void Cluster::lay_nodes(const ClusterSpec& spec) {
  std::size_t devices = 0;
  std::size_t links = 0;
  std::size_t gpu_count = 0;
  for (std::size_t group = 0; group < spec.nodes.size(); ++group) {
    const auto count = static_cast<std::size_t>(spec.nodes[group].count);
    devices += count * templates_[group]->devices();
    links += count * templates_[group]->links();
    gpu_count += count * templates_[group]->shape().gpus;
  }
  // A fat tree of three tiers adds about three cables and a twentieth of a switch per endpoint.
  network_.reserve(devices + gpu_count / 16, links + 6 * gpu_count);
  node_of_gpu_.reserve(gpu_count);
  first_gpu_.push_back(0);
  for (std::size_t group = 0; group < spec.nodes.size(); ++group) {
    for (std::int64_t i = 0; i < spec.nodes[group].count; ++i) lay_node(static_cast<std::uint32_t>(group));
  }
  first_endpoint_.push_back(static_cast<std::uint32_t>(endpoints_.size()));
}

void Cluster::lay_node(std::uint32_t group) {
  const NodeTemplate& node = *templates_[group];
  const NodeShape& shape = node.shape();
  const std::uint32_t number = nodes();
  const auto first_device = static_cast<std::uint32_t>(network_.devices().size());
  template_of_node_.push_back(group);
  first_device_.push_back(first_device);
  first_link_.push_back(static_cast<std::uint32_t>(network_.links().size()));
  first_endpoint_.push_back(static_cast<std::uint32_t>(endpoints_.size()));
  node.lay(network_, number);
  node_of_gpu_.insert(node_of_gpu_.end(), shape.gpus, number);
  first_gpu_.push_back(first_gpu_.back() + shape.gpus);
  // GPUs are laid first, then NICs.
  const bool through_nics = shape.nics > 0;
  for (std::uint32_t i = 0; i < (through_nics ? shape.nics : shape.gpus); ++i) {
    endpoints_.push_back({.device = DeviceId(first_device + (through_nics ? shape.gpus : 0) + i),
                          .node = number,
                          .rail = i,
                          .rate = through_nics ? shape.nic_rate : Rate(0)});
  }
}

std::uint32_t Cluster::endpoint_of(GpuId gpu, std::uint32_t nic) const {
  const std::uint32_t at = node_of(gpu);
  const NodeShape& shape = node(at).shape();
  if (shape.nics == 0) return first_endpoint_[at] + local_index(gpu);
  ensure(nic == kNearest || nic < shape.nics, "node {} has {} NICs, no NIC {}", at, shape.nics, nic);
  return first_endpoint_[at] + (nic == kNearest ? node(at).nearest_nic(local_index(gpu)) : nic);
}

void Cluster::route_out(GpuId gpu, std::uint32_t endpoint, Route& out) const {
  const std::uint32_t at = node_of(gpu);
  if (node(at).shape().nics == 0) return;
  add_path(node(at).gpu_to_nic(local_index(gpu), endpoint - first_endpoint_[at]), first_link_[at], out);
}

void Cluster::route_in(GpuId gpu, std::uint32_t endpoint, Route& out) const {
  const std::uint32_t at = node_of(gpu);
  if (node(at).shape().nics == 0) return;
  add_path(node(at).nic_to_gpu(endpoint - first_endpoint_[at], local_index(gpu)), first_link_[at], out);
}

void Cluster::route(GpuId from, GpuId to, Route& out, std::uint32_t from_nic, std::uint32_t to_nic) const {
  ensure(from != to && from.value() < gpus() && to.value() < gpus(), "no route from GPU {} to GPU {}", from.value(),
         to.value());
  const std::uint32_t here = node_of(from);
  if (here == node_of(to)) {
    const NodeTemplate& inside = node(here);
    // GPUs that are themselves wired to the fabric reach each other through it, unless scale-up links join them.
    const bool through_fabric = inside.shape().nics == 0 && fabric_ != nullptr &&
                                !inside.joined_by_scale_up(local_index(from), local_index(to));
    if (!through_fabric) {
      add_path(inside.gpu_to_gpu(local_index(from), local_index(to)), first_link_[here], out);
      return;
    }
  }
  ensure(fabric_ != nullptr, "the cluster has no network between nodes");
  const std::uint32_t leaving = endpoint_of(from, from_nic);
  const std::uint32_t arriving = endpoint_of(to, to_nic);
  route_out(from, leaving, out);
  fabric_->route(leaving, arriving, routing_, out);
  route_in(to, arriving, out);
}

bool Cluster::route_to_nvswitch(GpuId gpu, Route& out) const {
  const NodeTemplate::LocalPath& path = node(node_of(gpu)).gpu_to_switch(local_index(gpu));
  add_path(path, first_link_[node_of(gpu)], out);
  return !path.empty();
}

bool Cluster::route_from_nvswitch(GpuId gpu, Route& out) const {
  const NodeTemplate::LocalPath& path = node(node_of(gpu)).switch_to_gpu(local_index(gpu));
  add_path(path, first_link_[node_of(gpu)], out);
  return !path.empty();
}

bool Cluster::reduction_tree(std::span<const GpuId> gpus, Route& out) const {
  if (fabric_ == nullptr) return false;
  std::vector<std::uint32_t> endpoints;
  for (const GpuId gpu : gpus) endpoints.push_back(endpoint_of(gpu, kNearest));
  std::sort(endpoints.begin(), endpoints.end());
  endpoints.erase(std::unique(endpoints.begin(), endpoints.end()), endpoints.end());
  Route tree;
  if (!fabric_->reduction_tree(endpoints, tree)) return false;
  // All GPUs' ways to their NICs and back run side by side; the longest counts for latency.
  Picoseconds slowest{0};
  std::uint32_t longest = 0;
  for (const GpuId gpu : gpus) {
    Route local;
    route_out(gpu, endpoint_of(gpu, kNearest), local);
    route_in(gpu, endpoint_of(gpu, kNearest), local);
    out.shares.insert(out.shares.end(), local.shares.begin(), local.shares.end());
    slowest = std::max(slowest, local.latency);
    longest = std::max(longest, local.hops);
  }
  out.shares.insert(out.shares.end(), tree.shares.begin(), tree.shares.end());
  out.latency += slowest + tree.latency;
  out.hops += longest + tree.hops;
  return true;
}

}  // namespace clustersim
