// From scenario to hardware: what is degraded, what is refused before anything is allocated.
#include "scenarios/build.hpp"

#include <string>
#include <vector>

#include "sim/errors.hpp"
#include "tests/catch.hpp"
#include "tests/support.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

Scenario load(std::vector<std::string> set = {}) {
  return load_scenario_text(kSmallScenario, "small.toml", {std::move(set), true});
}

template <class Error>
std::string refusal(const std::vector<std::string>& set) {
  return message_of<Error>([&] {
    const Scenario scenario = load(set);
    return build_workload(scenario, build_cluster(scenario));
  });
}

/// A link out of the first NIC of node 0 into the fabric.
LinkId first_uplink(const Network& network) {
  const DeviceId nic = *network.find_device("node0/nic0");
  for (std::size_t i = 0; i < network.links().size(); ++i) {
    const Link& link = network.link(LinkId(i));
    if (link.from == nic && network.device(link.to).kind == DeviceKind::network_switch) return LinkId(i);
  }
  FAIL("node0/nic0 has no link into the fabric");
  return {};
}

}  // namespace

TEST_CASE("a degraded link keeps its share of the line rate, one way or both") {
  const BuiltCluster healthy = build_cluster(load());
  const Network& network = healthy.cluster->network();
  const LinkId uplink = first_uplink(network);
  const std::string name = network.link_name(uplink);
  const Link& link = network.link(uplink);
  const LinkId downlink = *network.find_link(network.device_name(link.to) + " -> " + network.device_name(link.from));

  const auto degraded = [&](const std::string& more) {
    return build_cluster(load({"cluster.degraded=[{link = \"" + name + "\", capacity_factor = 0.25" + more + "}]"}));
  };
  const BuiltCluster one = degraded("");
  CHECK(one.cluster->network().link(uplink).capacity == link.capacity * 0.25);
  CHECK(one.cluster->network().link(downlink).capacity == network.link(downlink).capacity);
  const BuiltCluster both = degraded(", both_directions = true");
  CHECK(both.cluster->network().link(uplink).capacity == link.capacity * 0.25);
  CHECK(both.cluster->network().link(downlink).capacity == network.link(downlink).capacity * 0.25);
}

TEST_CASE("nominal hardware ignores what is degraded") {
  const Scenario scenario = load({"cluster.degraded=[{gpu = 3, slowdown = 1.5}]"});
  const BuiltCluster described = build_cluster(scenario);
  REQUIRE(described.gpu_slowdown.size() == 16);
  CHECK(described.gpu_slowdown[3] == 1.5);
  CHECK(described.gpu_slowdown[4] == 1.0);
  CHECK(build_cluster(scenario, Health::nominal).gpu_slowdown.empty());
}

TEST_CASE("a slow GPU reaches the job's ranks") {
  const Scenario scenario = load({"cluster.degraded=[{gpu = 3, slowdown = 1.5}]"});
  const BuiltCluster built = build_cluster(scenario);
  const BuiltWorkload workload = build_workload(scenario, built);
  REQUIRE(workload.job.slowdown.size() == 16);
  for (std::size_t rank = 0; rank < 16; ++rank) {
    CHECK(workload.job.slowdown[rank] == (workload.job.gpu_of[rank] == GpuId(3U) ? 1.5 : 1.0));
  }
}

TEST_CASE("a degraded link that does not exist is explained") {
  CHECK(contains(refusal<BadInput>({"cluster.degraded=[{link = \"nonsense\", capacity_factor = 0.5}]"}), "from -> to"));
  CHECK(contains(refusal<BadInput>({"cluster.degraded=[{link = \"node0/nic9 -> node0/nic1\", capacity_factor = 0.5}]"}),
                 "no device \"node0/nic9\""));
  const std::string unjoined =
      refusal<BadInput>({"cluster.degraded=[{link = \"node0/gpu0 -> node1/gpu0\", capacity_factor = 0.5}]"});
  CHECK(contains(unjoined, "there is no such link; from \"node0/gpu0\" lead: node0/gpu0 -> "));
}

TEST_CASE("a cluster beyond the machine's memory is refused before it is built") {
  const Scenario million = load({"cluster.nodes=1000000"});
  const std::string text = message_of<Infeasible>([&] { require_memory(million, 16.0 * 0x1p30); });
  CHECK(contains(text, "8000000 GPUs"));
  CHECK(contains(text, "this machine has 16.0 GiB"));
  CHECK(contains(text, "would fit"));
  CHECK_NOTHROW(require_memory(load({"cluster.nodes=16384"}), 16.0 * 0x1p30));
}

TEST_CASE("a job that spans two kinds of GPU is refused, one that does not is not") {
  const std::vector<std::string> two = {
      "cluster={groups = [{node = \"dgx-h100\", count = 1}, {node = \"dgx-a100\", count = 1}], network = {topology = "
      "\"single-switch\", link_rate = \"200 Gb/s\"}}"};
  CHECK(contains(refusal<Infeasible>(two), "two kinds of GPU"));
  std::vector<std::string> one = two;
  one.emplace_back("jobs[0].parallel={tensor = 2, data = 4}");
  CHECK(refusal<Infeasible>(one).empty());
}

TEST_CASE("figures that are not published are told") {
  const Scenario scenario = load();
  const NodeSpec& node = scenario.catalog->node("dgx-h100");
  bool any = false;
  for (const auto& [key, origin] : scenario.catalog->gpu(node.gpu).provenance) any = any || origin.assumed;
  const std::vector<std::string> notes = assumed_figures(scenario);
  bool told = false;
  for (const std::string& note : notes) told = told || contains(note, "gpu " + node.gpu);
  CHECK(told == any);
}
