// The inside of a node: the PCIe tree, the paths between its devices, and laying it into a network.
#include "topologies/node.hpp"

#include <algorithm>
#include <limits>

#include "sim/errors.hpp"

namespace clustersim {
namespace {

constexpr std::uint32_t kMostGpus = 1024;  // one scale-up domain; paths between all pairs are stored
constexpr std::uint32_t kMostParts = 4096;

const NodeInterconnect& find_interconnect(const NodeShape& shape) {
  std::vector<std::string> names;
  for (const NodeInterconnect& candidate : node_interconnects()) {
    if (candidate.name == shape.interconnect) return candidate;
    names.emplace_back(candidate.name);
  }
  bad_input("node {}: interconnect = \"{}\": expected one of {}{}", shape.name, shape.interconnect,
            fmt::join(names, ", "), did_you_mean(shape.interconnect, names));
}

void require_rate(const NodeShape& shape, bool needed, std::string_view key, Rate rate) {
  if (needed && !(rate > Rate(0))) {
    bad_input("node {}: {} = {}: must be more than zero, because the node has such links", shape.name, key,
              format_bits(rate));
  }
}

void check_counts(const NodeShape& shape) {
  if (shape.gpus < 1 || shape.gpus > kMostGpus) {
    bad_input("node {}: gpus = {}: must be between 1 and {}", shape.name, shape.gpus, kMostGpus);
  }
  for (const auto& [key, count] : {std::pair{"nics", shape.nics}, std::pair{"cpus", shape.cpus},
                                   std::pair{"pcie_switches", shape.pcie_switches}}) {
    if (count > kMostParts) bad_input("node {}: {} = {}: must be at most {}", shape.name, key, count, kMostParts);
  }
  if (shape.cpus == 0 && (shape.nics > 0 || shape.pcie_switches > 0)) {
    bad_input("node {}: cpus = 0: NICs and PCIe switches hang on a CPU; give at least one, or no NICs and switches",
              shape.name);
  }
}

void check_shape(const NodeShape& shape) {
  check_counts(shape);
  require_rate(shape, shape.interconnect != "pcie" && shape.gpus > 1, "gpu_link", shape.gpu_link);
  require_rate(shape, shape.nics > 0, "nic_rate", shape.nic_rate);
  require_rate(shape, shape.cpus > 0, "pcie_rate", shape.pcie_rate);
  if (!shape.nic_of_gpu.empty() && shape.nic_of_gpu.size() != shape.gpus) {
    bad_input("node {}: nic_of_gpu has {} entries: expected one for each of the {} GPUs", shape.name,
              shape.nic_of_gpu.size(), shape.gpus);
  }
  for (const std::uint32_t nic : shape.nic_of_gpu) {
    if (nic >= shape.nics) {
      bad_input("node {}: nic_of_gpu names NIC {}, but NICs are numbered 0 to {}", shape.name, nic,
                std::int64_t{shape.nics} - 1);
    }
  }
}

/// The part that item `i` of `items` falls to when they are dealt to `parts` in equal runs.
std::uint32_t spread(std::uint32_t i, std::uint32_t items, std::uint32_t parts) {
  return static_cast<std::uint32_t>(std::uint64_t{i} * parts / items);
}

bool is_host_link(LinkKind kind) { return kind == LinkKind::pcie || kind == LinkKind::cpu_interconnect; }

}  // namespace

NodeTemplate::NodeTemplate(NodeShape shape) : shape_(std::move(shape)) {
  check_shape(shape_);
  const NodeInterconnect& interconnect = find_interconnect(shape_);
  nic_of_gpu_ = shape_.nic_of_gpu;
  if (nic_of_gpu_.empty() && shape_.nics > 0) {
    for (std::uint32_t gpu = 0; gpu < shape_.gpus; ++gpu) {
      nic_of_gpu_.push_back(spread(gpu, shape_.gpus, shape_.nics));
    }
  }
  std::vector<std::uint32_t> gpus;
  gpus.reserve(shape_.gpus);
  for (std::uint32_t i = 0; i < shape_.gpus; ++i) gpus.push_back(add_device(DeviceKind::gpu, i));
  for (std::uint32_t i = 0; i < shape_.nics; ++i) add_device(DeviceKind::nic, i);
  for (std::uint32_t i = 0; i < shape_.cpus; ++i) add_device(DeviceKind::cpu, i);
  for (std::uint32_t i = 0; i < shape_.pcie_switches; ++i) add_device(DeviceKind::pcie_switch, i);
  if (shape_.cpus > 0) add_host_links();
  interconnect.add(*this, gpus, shape_);
  find_paths();
}

void NodeTemplate::add_host_links() {
  const std::uint32_t first_nic = shape_.gpus;
  const std::uint32_t first_cpu = first_nic + shape_.nics;
  const std::uint32_t first_switch = first_cpu + shape_.cpus;
  if (shape_.cpu_link > Rate(0)) {
    for (std::uint32_t a = 0; a < shape_.cpus; ++a) {
      for (std::uint32_t b = a + 1; b < shape_.cpus; ++b) {
        add_cable(first_cpu + a, first_cpu + b, shape_.cpu_link, shape_.pcie_latency, LinkKind::cpu_interconnect);
      }
    }
  }
  for (std::uint32_t i = 0; i < shape_.pcie_switches; ++i) {
    add_cable(first_switch + i, first_cpu + spread(i, shape_.pcie_switches, shape_.cpus), shape_.pcie_rate,
              shape_.pcie_latency, LinkKind::pcie);
  }
  // Slots: the PCIe switches, or the CPUs' root ports where there are none.
  const std::uint32_t slots = shape_.pcie_switches > 0 ? shape_.pcie_switches : shape_.cpus;
  const std::uint32_t first_slot = shape_.pcie_switches > 0 ? first_switch : first_cpu;
  std::vector<std::uint32_t> slot_of_nic(shape_.nics);
  for (std::uint32_t nic = 0; nic < shape_.nics; ++nic) slot_of_nic[nic] = spread(nic, shape_.nics, slots);
  // A GPU's nearest NIC sits on its own switch; the first GPU that claims a NIC decides.
  for (std::uint32_t gpu = shape_.gpus; gpu-- > 0 && shape_.nics > 0;) {
    slot_of_nic[nic_of_gpu_[gpu]] = spread(gpu, shape_.gpus, slots);
  }
  for (std::uint32_t gpu = 0; gpu < shape_.gpus; ++gpu) {
    add_cable(gpu, first_slot + spread(gpu, shape_.gpus, slots), shape_.pcie_rate, shape_.pcie_latency, LinkKind::pcie);
  }
  for (std::uint32_t nic = 0; nic < shape_.nics; ++nic) {
    // The adapter's own delay is paid once on the way out and once on the way in.
    add_cable(first_nic + nic, first_slot + slot_of_nic[nic], shape_.pcie_rate,
              shape_.pcie_latency + shape_.nic_latency, LinkKind::pcie);
  }
}

std::uint32_t NodeTemplate::add_device(DeviceKind kind, std::uint32_t index) {
  devices_.push_back({.kind = kind, .tier = 0, .node = 0, .index = index});
  return static_cast<std::uint32_t>(devices_.size() - 1);
}

std::uint32_t NodeTemplate::add_cable(std::uint32_t a, std::uint32_t b, Rate rate, Picoseconds latency, LinkKind kind) {
  links_.push_back({a, b, rate, latency, kind});
  links_.push_back({b, a, rate, latency, kind});
  return static_cast<std::uint32_t>(links_.size() - 2);
}

void NodeTemplate::lay(Network& network, std::uint32_t node) const {
  const std::size_t first = network.devices().size();
  for (Device device : devices_) {
    device.node = node;
    network.add_device(device);
  }
  for (const LocalLink& link : links_) {
    network.add_link({DeviceId(first + link.from), DeviceId(first + link.to), link.rate, link.latency, link.kind});
  }
}

/// Ways from one device over links of one family: fewest links, then the widest bottleneck, then the lowest numbers.
class NodeTemplate::PathSearch {
 public:
  explicit PathSearch(const NodeTemplate& node) : node_(node), out_(node.devices_.size()) {
    for (std::uint32_t i = 0; i < node.links_.size(); ++i) out_[node.links_[i].from].push_back(i);
  }

  void run(std::uint32_t source, bool host) {
    constexpr Rate kUnlimited{std::numeric_limits<double>::infinity()};
    reached_.assign(node_.devices_.size(), {});
    reached_[source] = {.link = 0, .hops = 0, .bottleneck = kUnlimited};
    std::vector<std::uint32_t> frontier{source};
    // Once every device that paths are asked for is reached, more hops cannot give a shorter way.
    left_ = host ? node_.shape_.gpus + node_.shape_.nics + node_.shape_.cpus - 1 : node_.shape_.gpus - 1;
    for (std::uint32_t hops = 1; !frontier.empty() && left_ > 0; ++hops) {
      std::vector<std::uint32_t> next;
      for (const std::uint32_t device : frontier) {
        if (device == source || forwards(device, host)) extend(device, host, hops, next);
      }
      frontier = std::move(next);
    }
  }

  /// Empty when `target` was not reached.
  [[nodiscard]] LocalPath path_to(std::uint32_t target) const {
    LocalPath path;
    if (reached_[target].hops == kUnreached) return path;
    for (std::uint32_t device = target; reached_[device].hops > 0;) {
      const LocalLink& link = node_.links_[reached_[device].link];
      path.push_back({reached_[device].link, link.latency});
      device = link.from;
    }
    std::reverse(path.begin(), path.end());
    return path;
  }

 private:
  static constexpr std::uint32_t kUnreached = ~0U;
  struct Reached {
    std::uint32_t link = 0;
    std::uint32_t hops = kUnreached;
    Rate bottleneck{0};
  };

  /// Host traffic passes through CPUs and PCIe switches, scale-up traffic through GPUs and NVSwitches.
  [[nodiscard]] bool forwards(std::uint32_t device, bool host) const {
    const DeviceKind kind = node_.devices_[device].kind;
    if (host) return kind == DeviceKind::cpu || kind == DeviceKind::pcie_switch;
    return kind == DeviceKind::gpu || kind == DeviceKind::nvswitch;
  }

  void extend(std::uint32_t device, bool host, std::uint32_t hops, std::vector<std::uint32_t>& next) {
    for (const std::uint32_t i : out_[device]) {
      const LocalLink& link = node_.links_[i];
      if (is_host_link(link.kind) != host) continue;
      Reached& to = reached_[link.to];
      const Rate bottleneck = std::min(reached_[device].bottleneck, link.rate);
      const bool first = to.hops == kUnreached;
      if (!first && (to.hops != hops || bottleneck <= to.bottleneck)) continue;
      to = {.link = i, .hops = hops, .bottleneck = bottleneck};
      if (!first) continue;
      next.push_back(link.to);
      const DeviceKind kind = node_.devices_[link.to].kind;
      if (kind != DeviceKind::pcie_switch && kind != DeviceKind::nvswitch) --left_;
    }
  }

  const NodeTemplate& node_;
  std::vector<std::vector<std::uint32_t>> out_;
  std::vector<Reached> reached_;
  std::uint32_t left_ = 0;  // GPUs (and NICs and CPUs, in a search over host links) not reached yet
};

void NodeTemplate::find_paths() {
  PathSearch search(*this);
  const std::uint32_t gpus = shape_.gpus;
  const std::uint32_t nics = shape_.nics;
  gpu_gpu_.resize(std::size_t{gpus} * gpus);
  gpu_nic_.resize(std::size_t{gpus} * nics);
  nic_gpu_.resize(std::size_t{gpus} * nics);
  gpu_cpu_.resize(gpus);
  gpu_switch_.resize(gpus);
  switch_gpu_.resize(gpus);
  scale_up_.assign(std::size_t{gpus} * gpus, false);
  for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) {
    search.run(gpu, false);
    for (std::uint32_t to = 0; to < gpus; ++to) {
      gpu_gpu_[std::size_t{gpu} * gpus + to] = search.path_to(to);
      scale_up_[std::size_t{gpu} * gpus + to] = !gpu_gpu_[std::size_t{gpu} * gpus + to].empty();
    }
    search.run(gpu, true);
    for (std::uint32_t to = 0; to < gpus; ++to) {
      LocalPath& path = gpu_gpu_[std::size_t{gpu} * gpus + to];
      if (path.empty()) path = search.path_to(to);
    }
    for (std::uint32_t nic = 0; nic < nics; ++nic) gpu_nic_[std::size_t{gpu} * nics + nic] = search.path_to(gpus + nic);
    if (shape_.cpus > 0) gpu_cpu_[gpu] = search.path_to(gpus + nics + nearest_cpu(gpu));
  }
  for (std::uint32_t nic = 0; nic < nics; ++nic) {
    search.run(gpus + nic, true);
    for (std::uint32_t gpu = 0; gpu < gpus; ++gpu) nic_gpu_[std::size_t{nic} * gpus + gpu] = search.path_to(gpu);
  }
  for (std::uint32_t i = 0; i < links_.size(); ++i) {
    const LocalLink& link = links_[i];
    if (devices_[link.to].kind == DeviceKind::nvswitch) gpu_switch_[link.from] = {{i, link.latency}};
    if (devices_[link.from].kind == DeviceKind::nvswitch) switch_gpu_[link.to] = {{i, link.latency}};
  }
}

std::uint32_t NodeTemplate::nearest_cpu(std::uint32_t gpu) const {
  if (shape_.pcie_switches == 0) return spread(gpu, shape_.gpus, shape_.cpus);
  return spread(spread(gpu, shape_.gpus, shape_.pcie_switches), shape_.pcie_switches, shape_.cpus);
}

const NodeTemplate::LocalPath& NodeTemplate::gpu_to_gpu(std::uint32_t from, std::uint32_t to) const {
  const LocalPath& path = gpu_gpu_.at(std::size_t{from} * shape_.gpus + to);
  if (path.empty() && from != to) {
    infeasible("node {}: no way from GPU {} to GPU {}: give the node an interconnect, or a cpu_link between its CPUs",
               shape_.name, from, to);
  }
  return path;
}

void NodeTemplate::check_nic_way(std::uint32_t gpu, std::uint32_t nic) const {
  ensure(gpu < shape_.gpus && nic < shape_.nics, "node {} has no GPU {} or no NIC {}", shape_.name, gpu, nic);
  // Cables lead both ways, so one direction stands for both.
  if (gpu_nic_[std::size_t{gpu} * shape_.nics + nic].empty()) {
    infeasible("node {}: no PCIe way from GPU {} to NIC {}: its CPUs are not joined (cpu_link); its nearest NIC is {}",
               shape_.name, gpu, nic, nearest_nic(gpu));
  }
}

const NodeTemplate::LocalPath& NodeTemplate::gpu_to_nic(std::uint32_t gpu, std::uint32_t nic) const {
  check_nic_way(gpu, nic);
  return gpu_nic_[std::size_t{gpu} * shape_.nics + nic];
}

const NodeTemplate::LocalPath& NodeTemplate::nic_to_gpu(std::uint32_t nic, std::uint32_t gpu) const {
  check_nic_way(gpu, nic);
  return nic_gpu_[std::size_t{nic} * shape_.gpus + gpu];
}

bool NodeTemplate::joined_by_scale_up(std::uint32_t from, std::uint32_t to) const {
  return scale_up_.at(std::size_t{from} * shape_.gpus + to);
}

const NodeTemplate::LocalPath& NodeTemplate::gpu_to_cpu(std::uint32_t gpu) const { return gpu_cpu_.at(gpu); }
const NodeTemplate::LocalPath& NodeTemplate::gpu_to_switch(std::uint32_t gpu) const { return gpu_switch_.at(gpu); }
const NodeTemplate::LocalPath& NodeTemplate::switch_to_gpu(std::uint32_t gpu) const { return switch_gpu_.at(gpu); }

}  // namespace clustersim
