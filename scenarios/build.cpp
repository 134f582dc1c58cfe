// From a checked scenario to the models that run it: cluster, GPU, workload.
#include "scenarios/build.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/errors.hpp"

namespace clustersim {
namespace {

// Memory that a cluster takes while it is built and a step is simulated: 131,072 H100 in 16,384 nodes peaked at 300
// MiB, 19 KiB a node, with everything in classes; without classes about half as much again.
constexpr double kBytesPerDevice = 100;
constexpr double kBytesPerLink = 250;
constexpr double kFabricLinks = 6;  // per endpoint: up and down through three tiers
constexpr std::size_t kMostNamesSearched = 50'000;

double physical_memory_bytes() {
  return static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// Tiers that need more ports than the named switch has.
void check_switch_ports(const Scenario& scenario, const Cluster& cluster) {
  if (scenario.cluster.network_switch.empty() || cluster.fabric() == nullptr) return;
  const SwitchSpec& chosen = scenario.catalog->network_switch(scenario.cluster.network_switch);
  if (chosen.ports == 0) return;
  for (const SwitchTier& tier : cluster.fabric()->figures().tiers) {
    const std::int64_t needed = tier.ports_down + tier.ports_up;
    if (needed > chosen.ports) {
      infeasible("{}: a {} switch needs {} ports and \"{}\" has {}; use narrower tiers or a larger switch",
                 scenario.cluster.network.settings.place("switch"), tier.name, needed, chosen.name, chosen.ports);
    }
  }
}

std::vector<std::string> device_names(const Network& network) {
  std::vector<std::string> names;
  const std::size_t count = std::min(network.devices().size(), kMostNamesSearched);
  names.reserve(count);
  for (std::size_t i = 0; i < count; ++i) names.push_back(network.device_name(DeviceId(i)));
  return names;
}

/// Why a link was not found: one of its ends does not exist, or they are not joined.
[[noreturn]] void reject_link(const Network& network, const Degradation& item) {
  constexpr std::string_view kArrow = " -> ";
  const std::size_t arrow = item.link.find(kArrow);
  if (arrow == std::string::npos) {
    bad_input("{}: expected the name of a link, \"from -> to\", e.g. \"{}\"", item.place,
              network.links().empty() ? "node0/nic0 -> leaf0" : network.link_name(LinkId(network.links().size() - 1)));
  }
  const std::string from = item.link.substr(0, arrow);
  for (const std::string& end : {from, item.link.substr(arrow + kArrow.size())}) {
    if (!network.find_device(end)) {
      bad_input("{}: there is no device \"{}\"{}", item.place, end, did_you_mean(end, device_names(network)));
    }
  }
  std::vector<std::string> leaving;
  const DeviceId device = *network.find_device(from);
  for (std::size_t i = 0; i < network.links().size(); ++i) {
    if (network.link(LinkId(i)).from == device) leaving.push_back(network.link_name(LinkId(i)));
  }
  constexpr std::size_t kShown = 8;
  const std::size_t shown = std::min(leaving.size(), kShown);
  bad_input("{}: there is no such link; from \"{}\" lead: {}{}", item.place, from,
            fmt::join(leaving.begin(), leaving.begin() + static_cast<std::ptrdiff_t>(shown), ", "),
            shown < leaving.size() ? ", ..." : "");
}

void degrade_link(Network& network, LinkId link, double factor) {
  network.set_capacity(link, network.link(link).capacity * factor);
}

void degrade(const Scenario& scenario, BuiltCluster& built) {
  Network& network = built.cluster->network();
  for (const Degradation& item : scenario.cluster.degraded) {
    if (item.link.empty()) {
      if (item.gpu >= built.cluster->gpus()) {
        bad_input("{}: the cluster has {} GPUs, numbered 0 to {}", item.place, built.cluster->gpus(),
                  built.cluster->gpus() - 1);
      }
      if (built.gpu_slowdown.empty()) built.gpu_slowdown.assign(built.cluster->gpus(), 1.0);
      built.gpu_slowdown[static_cast<std::size_t>(item.gpu)] *= item.slowdown;
      continue;
    }
    const std::optional<LinkId> link = network.find_link(item.link);
    if (!link) reject_link(network, item);
    degrade_link(network, *link, item.capacity_factor);
    if (item.both_directions) {
      const Link& there = network.link(*link);
      const std::string back = network.device_name(there.to) + " -> " + network.device_name(there.from);
      const std::optional<LinkId> reverse = network.find_link(back);
      if (!reverse) bad_input("{}: there is no link in the other direction, \"{}\"", item.place, back);
      degrade_link(network, *reverse, item.capacity_factor);
    }
  }
}

WorkloadContext context_of(const Scenario& scenario, const BuiltCluster& built) {
  return {*built.cluster, *built.catalog, scenario.communication, *built.gpu, built.gpu_slowdown};
}

/// Kernel times are those of one kind of GPU, so the ranks must sit on that kind.
void check_same_gpu(const BuiltWorkload& workload, const Scenario& scenario, const BuiltCluster& built) {
  if (scenario.cluster.groups.size() == 1) return;
  for (const GpuId gpu : workload.job.gpu_of) {
    const std::uint32_t node = built.cluster->node_of(gpu);
    const NodeSpec& spec = built.catalog->node(built.cluster->node(node).shape().name);
    if (spec.gpu != built.node->gpu) {
      infeasible(
          "the job spans two kinds of GPU, \"{}\" and \"{}\" (node {}); a job runs on one kind: make it fit on the "
          "first group of nodes",
          built.node->gpu, spec.gpu, node);
    }
  }
}

void note_assumed(std::vector<std::string>& notes, std::string_view kind, std::string_view name,
                  const std::map<std::string, Provenance>& provenance) {
  // Figures that no part of a step simulation reads.
  constexpr std::string_view kUnused[] = {"tdp",   "idle",   "max_power",    "power",   "host_memory",
                                          "title", "vendor", "architecture", "l2_cache"};
  std::vector<std::string> keys;
  for (const auto& [key, origin] : provenance) {
    const bool used = std::find(std::begin(kUnused), std::end(kUnused), key) == std::end(kUnused);
    if (origin.assumed && used) keys.push_back(key);
  }
  if (!keys.empty()) notes.push_back(fmt::format("{} {}: {}", kind, name, fmt::join(keys, ", ")));
}

}  // namespace

void require_memory(const Scenario& scenario, double machine_bytes) {
  double bytes = 0;
  double gpus = 0;
  for (const NodeCount& group : scenario.cluster.groups) {
    const NodeShape& shape = scenario.catalog->node(group.node, group.where).shape;
    const NodeTemplate node(shape);
    const double fabric_links =
        scenario.cluster.fabric == nullptr ? 0 : kFabricLinks * std::max(shape.nics, shape.gpus);
    bytes += static_cast<double>(group.count) *
             (node.devices() * kBytesPerDevice + (node.links() + fabric_links) * kBytesPerLink);
    gpus += static_cast<double>(group.count) * shape.gpus;
  }
  constexpr double kUsableShare = 0.8;
  if (bytes > kUsableShare * machine_bytes) {
    infeasible(
        "a cluster of {:.0f} GPUs takes about {:.1f} GiB to simulate and this machine has {:.1f} GiB; about {:.0f} "
        "GPUs of "
        "this kind would fit",
        gpus, bytes / 0x1p30, machine_bytes / 0x1p30, gpus * kUsableShare * machine_bytes / bytes);
  }
}

BuiltCluster build_cluster(const Scenario& scenario, Health health) {
  require_memory(scenario, physical_memory_bytes());
  BuiltCluster built;
  built.catalog = scenario.catalog;
  ClusterSpec spec;
  for (const NodeCount& group : scenario.cluster.groups) {
    spec.nodes.push_back({scenario.catalog->node(group.node, group.where).shape, group.count});
  }
  built.node = &scenario.catalog->node(scenario.cluster.groups.front().node);
  built.gpu = &scenario.catalog->gpu(built.node->gpu);
  spec.fabric = scenario.cluster.fabric;
  spec.fabric_settings = scenario.cluster.fabric == nullptr ? nullptr : &scenario.cluster.network.settings;
  spec.link_rate = scenario.cluster.link_rate;
  spec.link_latency = scenario.cluster.link_latency;
  spec.link_kind = scenario.cluster.link_kind;
  spec.in_network_reduction = scenario.cluster.in_network_reduction;
  spec.routing = scenario.cluster.routing;
  built.cluster = std::make_unique<Cluster>(spec);
  check_switch_ports(scenario, *built.cluster);
  if (health == Health::as_described) degrade(scenario, built);
  return built;
}

BuiltWorkload build_workload(const Scenario& scenario, const BuiltCluster& built) {
  ensure(scenario.job.has_value(), "a scenario without a job has no workload to build");
  BuiltWorkload workload = scenario.job->workload->build(scenario.job->settings.settings, context_of(scenario, built));
  check_same_gpu(workload, scenario, built);
  return workload;
}

BuiltWorkload build_one_replica(const Scenario& scenario, const BuiltCluster& built) {
  ensure(scenario.job.has_value(), "a scenario without a job has no workload to build");
  if (scenario.job->workload->build_one_replica == nullptr) return {};
  return scenario.job->workload->build_one_replica(scenario.job->settings.settings, context_of(scenario, built));
}

std::vector<std::string> assumed_figures(const Scenario& scenario) {
  std::vector<std::string> notes;
  std::vector<std::string> seen;
  for (const NodeCount& group : scenario.cluster.groups) {
    if (std::find(seen.begin(), seen.end(), group.node) != seen.end()) continue;
    seen.push_back(group.node);
    const NodeSpec& node = scenario.catalog->node(group.node);
    note_assumed(notes, "node", node.name, node.provenance);
    const GpuSpec& gpu = scenario.catalog->gpu(node.gpu);
    note_assumed(notes, "gpu", gpu.name, gpu.provenance);
    if (!node.nic.empty()) {
      const NicSpec& nic = scenario.catalog->nic(node.nic);
      note_assumed(notes, "nic", nic.name, nic.provenance);
    }
  }
  if (!scenario.cluster.network_switch.empty()) {
    const SwitchSpec& chosen = scenario.catalog->network_switch(scenario.cluster.network_switch);
    note_assumed(notes, "switch", chosen.name, chosen.provenance);
  }
  return notes;
}

}  // namespace clustersim
