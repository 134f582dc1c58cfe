// Scenarios checked and resolved: precedence, defaults that follow from the hardware, round trips, studies.
#include "scenarios/scenario.hpp"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "sim/errors.hpp"
#include "tests/catch.hpp"
#include "tests/support.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

Scenario load(const std::string& text, std::vector<std::string> set = {}) {
  return load_scenario_text(text, "unit.toml", {std::move(set), true});
}

std::string refusal(const std::string& text, const std::vector<std::string>& set = {}) {
  return message_of<BadInput>([&] { return load(text, set); });
}

}  // namespace

TEST_CASE("a scenario becomes typed values") {
  const Scenario scenario = load(kSmallScenario);
  CHECK(scenario.name == "small");
  CHECK(scenario.seed == 1);
  CHECK(scenario.cluster.nodes() == 2);
  REQUIRE(scenario.cluster.fabric != nullptr);
  CHECK(scenario.cluster.fabric->name == "single-switch");
  REQUIRE(scenario.job.has_value());
  CHECK(scenario.job->workload->name == "transformer-training");
  CHECK(scenario.job->settings.settings.table("parallel").integer("data") == 8);
  CHECK_FALSE(scenario.nccl_test.has_value());
}

TEST_CASE("a job of any workload says how many steps it makes") {
  CHECK(load(kSmallScenario).job->steps == 1);
  const Scenario training = load(kSmallScenario, {"jobs[0].steps=15000"});
  CHECK(training.job->steps == 15'000);
  CHECK(contains(training.resolved_text, "steps = 15000"));
  CHECK(load(training.resolved_text).job->steps == 15'000);
  CHECK(contains(refusal(kSmallScenario, {"jobs[0].steps=0"}), "jobs[0].steps = 0"));
  const std::string pipeline =
      "jobs=[{workload = \"pipeline\", stages = 4, micro_batches = 8, forward = \"1 ms\", backward = \"2 ms\", steps = "
      "3}]";
  CHECK(load(kSmallScenario, {pipeline}).job->steps == 3);
}

TEST_CASE("what is not written follows from the hardware") {
  const Scenario scenario = load(kSmallScenario);
  const NodeSpec& node = scenario.catalog->node("dgx-h100");
  const NicSpec& nic = scenario.catalog->nic(node.nic);
  CHECK(scenario.cluster.link_rate == nic.rate);
  CHECK(scenario.cluster.link_kind == nic.kind);
  CHECK(scenario.communication.network_efficiency == nic.efficiency);
  CHECK(scenario.communication.scale_up_efficiency == node.scale_up_efficiency);
  CHECK(scenario.cluster.link_latency == Picoseconds(600'000));
  CHECK(scenario.cluster.routing.seed == scenario.seed);
}

TEST_CASE("what is written wins over the hardware, and --set over the file") {
  const std::string text = kSmallScenario + "[communication]\nnetwork_efficiency = 0.9\n";
  CHECK(load(text).communication.network_efficiency == 0.9);
  const Scenario set = load(text, {"communication.network_efficiency=0.8", "cluster.network.link_rate=100 Gb/s",
                                   "seed=7", "cluster.network.routing=ecmp", "communication.network_step=2 us"});
  CHECK(set.communication.network_efficiency == 0.8);
  CHECK(set.cluster.link_rate == gigabits_per_second(100));
  CHECK(set.communication.network_step == Picoseconds(2'000'000));
  CHECK(set.cluster.routing.policy == RoutingPolicy::ecmp);
  CHECK(set.cluster.routing.seed == 7);
  CHECK(load(kSmallScenario, {"seed=7", "cluster.network.routing_seed=3"}).cluster.routing.seed == 3);
}

TEST_CASE("the resolved text loads as the same scenario") {
  for (const auto& set :
       std::vector<std::vector<std::string>>{{},
                                             {"cluster.network.routing=ecmp", "cluster.network.queue_pairs=4"},
                                             {"cluster.network.link_rate=333.3 Gb/s"},
                                             {"communication.window=3 MiB"},
                                             {"cluster.degraded=[{gpu = 1, slowdown = 1.25}]"}}) {
    const Scenario scenario = load(kSmallScenario, set);
    const Scenario again = load(scenario.resolved_text);
    CHECK(again.resolved_text == scenario.resolved_text);
    CHECK(again.hash == scenario.hash);
    CHECK(contains(scenario.resolved_text, "link_rate"));
    CHECK(contains(scenario.resolved_text, "network_step"));
  }
}

TEST_CASE("every library scenario loads, and so does its resolved text") {
  REQUIRE(library_scenarios().size() >= 2);
  for (const auto& [name, description] : library_scenarios()) {
    INFO(name);
    CHECK_FALSE(description.empty());
    const Scenario scenario = load_scenario(name);
    CHECK(scenario.name == name);
    CHECK(load(scenario.resolved_text).hash == scenario.hash);
  }
}

TEST_CASE("the hash depends on what is simulated and on nothing else") {
  const TemporaryFolder folder;
  const Scenario here = load(kSmallScenario);
  CHECK(load_scenario(folder.write("a.toml", kSmallScenario)).hash == here.hash);
  CHECK(load_scenario(folder.write("deep/er/b.toml", "# a comment\n" + kSmallScenario)).hash == here.hash);
  CHECK(load(kSmallScenario, {"seed=2"}).hash != here.hash);
  CHECK(load(kSmallScenario, {"jobs[0].zero_stage=2"}).hash != here.hash);
  CHECK(here.hash.size() == 16);
}

TEST_CASE("extends goes by path from the file, and by name into the library") {
  const TemporaryFolder folder;
  folder.write("base.toml", kSmallScenario);
  const std::string child =
      folder.write("variants/child.toml", "extends = \"../base.toml\"\nname = \"child\"\n[cluster]\nnodes = 4\n");
  const Scenario scenario = load_scenario(child);
  CHECK(scenario.name == "child");
  CHECK(scenario.cluster.nodes() == 4);
  CHECK(scenario.job->settings.settings.text("model") == "llama3-8b");
  const std::string grandchild = folder.write(
      "variants/grandchild.toml", "extends = \"child.toml\"\nname = \"grandchild\"\n[cluster]\nnodes = 8\n");
  CHECK(load_scenario(grandchild).cluster.nodes() == 8);
  const Scenario of_library = load_scenario(folder.write("mine.toml", "extends = \"llama3-8b-16\"\nname = \"mine\"\n"));
  CHECK(of_library.name == "mine");
  CHECK(of_library.cluster.nodes() == 2);
}

TEST_CASE("catalog files count from the file that names them") {
  const TemporaryFolder folder;
  folder.write("hardware/nodes.toml", "[node.mine]\nnot = \"complete\"\n");
  const std::string path = folder.write("s.toml", kSmallScenario + "[catalog]\nfiles = [\"hardware/nodes.toml\"]\n");
  CHECK(contains(message_of<BadInput>([&] { return load_scenario(path); }), "hardware/nodes.toml"));
}

TEST_CASE("a study is as many complete scenarios as it has points") {
  const std::string text = kSmallScenario + R"(
[study]
points = [
  {"cluster.nodes" = 1, "jobs[0].parallel.data" = 4},
  {"cluster.nodes" = 4, "jobs[0].parallel" = {tensor = 4, data = 8}},
]
)";
  const Scenario scenario = load(text);
  REQUIRE(scenario.points.size() == 2);
  CHECK(scenario.points[0].cluster.nodes() == 1);
  CHECK(scenario.points[0].job->settings.settings.table("parallel").integer("data") == 4);
  CHECK(scenario.points[0].job->settings.settings.table("parallel").integer("tensor") == 2);
  CHECK(scenario.points[0].label == "cluster.nodes = 1, jobs[0].parallel.data = 4");
  CHECK(scenario.points[1].cluster.nodes() == 4);
  CHECK(scenario.points[1].job->settings.settings.table("parallel").integer("tensor") == 4);
  CHECK(scenario.points[0].hash != scenario.points[1].hash);
  CHECK(load(scenario.resolved_text).hash == scenario.hash);
  // A default that follows from the hardware follows the point's hardware.
  const Scenario nodes = load(kSmallScenario + "[study]\npoints = [{\"cluster.node\" = \"dgx-a100\"}]\n");
  const Scenario again = load(nodes.resolved_text);
  CHECK(again.points[0].cluster.link_rate == nodes.points[0].cluster.link_rate);
  CHECK(nodes.points[0].cluster.link_rate == nodes.catalog->nic(nodes.catalog->node("dgx-a100").nic).rate);
}

TEST_CASE("a fault in a study's point is found where the point was written") {
  const std::string message =
      refusal(kSmallScenario + "[study]\npoints = [\n{\"cluster.nodes\" = 2},\n{\"cluster.nodes\" = -2},\n]\n");
  CHECK(contains(message, "unit.toml:17"));
  CHECK(contains(message, "cluster.nodes = -2"));
}

TEST_CASE("groups of nodes add up") {
  const std::string text = R"(
name = "groups"
[cluster]
groups = [{node = "dgx-h100", count = 3}, {node = "dgx-a100", count = 2}]
[cluster.network]
topology = "single-switch"
[nccl_test]
)";
  const Scenario scenario = load(text);
  CHECK(scenario.cluster.nodes() == 5);
  CHECK(load(scenario.resolved_text).hash == scenario.hash);
}

TEST_CASE("a table of collectives takes the place of a job") {
  const std::string text =
      "name = \"n\"\n[cluster]\nnode = \"dgx-h100\"\n[nccl_test]\nop = \"all_gather\"\nsizes = \"1M..4M\"\n";
  const Scenario scenario = load(text);
  REQUIRE(scenario.nccl_test.has_value());
  CHECK(scenario.nccl_test->operation == Collective::all_gather);
  REQUIRE(scenario.nccl_test->sizes.size() == 3);
  CHECK(scenario.nccl_test->sizes.back() == mebibytes(4));
  CHECK(contains(refusal(text, {"nccl_test.op=all_gahter"}), "all_gather"));
  CHECK(contains(refusal(text, {"nccl_test.sizes=4M..1M"}), "nccl_test.sizes"));
  CHECK(contains(refusal(text, {"nccl_test.algorithm=all_reduce:rign"}), "ring"));
  CHECK(load(text, {"nccl_test.algorithm=ring"}).communication.algorithm == "ring");
}

TEST_CASE("the switch that is named decides latency and is checked") {
  const Scenario plain = load(kSmallScenario);
  std::string fast;
  std::string slow;
  for (const Catalog::Entry& entry : plain.catalog->entries()) {
    if (entry.kind != "switch") continue;
    const SwitchSpec& found = plain.catalog->network_switch(entry.name);
    (found.port_rate < plain.cluster.link_rate ? slow : fast) = entry.name;
  }
  REQUIRE_FALSE(fast.empty());
  const Scenario scenario = load(kSmallScenario, {"cluster.network.switch=" + fast});
  CHECK(scenario.cluster.link_latency == scenario.catalog->network_switch(fast).latency + Picoseconds(50'000));
  REQUIRE_FALSE(slow.empty());
  CHECK(contains(refusal(kSmallScenario, {"cluster.network.switch=" + slow}), "its ports do"));
}

TEST_CASE("no topology or workload takes a key that all of them share") {
  // Combined schemas must not name a key twice: the scenario's own keys are common to all entries.
  for (const ScenarioSection& section : scenario_sections()) {
    std::set<std::string_view> common;
    for (const Parameter& parameter : section.schema) CHECK(common.insert(parameter.name).second);
    const auto check_entry = [&](std::string_view name, std::span<const Parameter> schema) {
      INFO(name);
      for (const Parameter& parameter : schema) CHECK(common.count(parameter.name) == 0);
    };
    if (section.title == "[cluster.network]") {
      for (const FabricEntry& entry : fabrics()) check_entry(entry.name, entry.schema);
    }
    if (section.title == "[[jobs]]") {
      for (const WorkloadEntry& entry : workloads()) check_entry(entry.name, entry.schema);
    }
  }
}

TEST_CASE("every section's parameters have help, and their defaults are valid") {
  for (const ScenarioSection& section : scenario_sections()) {
    CHECK_FALSE(section.help.empty());
    for (const Parameter& parameter : section.schema) {
      INFO(section.title << " " << parameter.name);
      CHECK_FALSE(parameter.help.empty());
      CHECK((parameter.default_text.empty() || !parameter.required));
    }
  }
}
