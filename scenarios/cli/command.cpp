// What the commands share: the arguments that name a scenario, printing, progress.
#include "scenarios/cli/command.hpp"

#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <memory>
#include <utility>

#include "sim/errors.hpp"

namespace clustersim::cli {
namespace {

Value text_value(std::string text) { return Value{std::move(text), {}}; }

}  // namespace

void add_scenario_arguments(CLI::App& command, ScenarioArguments& arguments, bool scenario_required) {
  command.add_option("SCENARIO", arguments.scenario, "A scenario file, - for standard input, or a library scenario")
      ->required(scenario_required);
  command
      .add_option("--set", arguments.set,
                  "Sets one value, e.g. --set cluster.nodes=4 or --set jobs[0].parallel.data=2; repeatable")
      ->allow_extra_args(false)
      ->type_name("KEY.PATH=VALUE");
}

Scenario load(CommandLine& line, const ScenarioArguments& arguments, bool needs_work) {
  Scenario scenario = load_scenario(arguments.scenario, {arguments.set, needs_work});
  line.scenario_hash = scenario.hash;
  return scenario;
}

void add_cluster_arguments(CLI::App& command, ClusterArguments& arguments) {
  command.add_option("--node", arguments.node, "Catalog node, instead of a scenario");
  command.add_option("--nodes", arguments.nodes, "Number of nodes")->capture_default_str();
  command.add_option("--topology", arguments.topology,
                     "Network topology; its parameters with --set cluster.network.KEY=VALUE");
}

Value cluster_tree(const std::string& name, const ClusterArguments& arguments, std::string_view default_topology) {
  if (arguments.node.empty()) bad_input("--node is missing (`clustersim catalog` lists the nodes)");
  Value::Table cluster{{"node", text_value(arguments.node)}, {"nodes", Value{arguments.nodes, {"--nodes", 0}}}};
  cluster[0].second.where = {"--node", 0};
  if (arguments.nodes > 1 || !arguments.topology.empty()) {
    Value topology = text_value(arguments.topology.empty() ? std::string(default_topology) : arguments.topology);
    topology.where = {"--topology", 0};
    cluster.emplace_back("network", Value{Value::Table{{"topology", std::move(topology)}}, {}});
  }
  return Value{Value::Table{{"name", text_value(name)}, {"cluster", Value{std::move(cluster), {}}}}, {}};
}

void print(std::string_view text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), stdout) == text.size() && std::fflush(stdout) == 0;
  if (!written) bad_input("standard output cannot be written to");
}

std::function<void(std::string_view what)> stage_reporter() {
  return [](std::string_view what) {
    if (isatty(STDERR_FILENO) != 1) return;
    fmt::print(stderr, "\r{:<78}", what);
    std::fflush(stderr);
  };
}

std::function<void(Picoseconds now, std::uint64_t events)> progress_reporter() {
  using Clock = std::chrono::steady_clock;
  struct State {
    Clock::time_point started = Clock::now();
    bool reported = false;
  };
  return [state = std::make_shared<State>()](Picoseconds now, std::uint64_t events) {
    const double elapsed = std::chrono::duration<double>(Clock::now() - state->started).count();
    const bool terminal = isatty(STDERR_FILENO) == 1;
    if (elapsed < 1 || (state->reported && !terminal)) return;
    state->reported = true;
    const std::string text = fmt::format("simulated {} in {}, {:.3g} events/s", format_duration(to_seconds(now)),
                                         format_duration(elapsed), static_cast<double>(events) / elapsed);
    fmt::print(stderr, "{}{:<{}}{}", terminal ? "\r" : "", text, terminal ? 78 : 0, terminal ? "" : "\n");
    std::fflush(stderr);
  };
}

void end_progress() {
  if (isatty(STDERR_FILENO) == 1) {
    fmt::print(stderr, "\r{:<78}\r", "");
    std::fflush(stderr);
  }
}

}  // namespace clustersim::cli
