// What the commands share: how they register, and the arguments that name a scenario.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/scenario.hpp"

namespace clustersim::cli {

/// The program's command line while it is being put together, and what it decided to do.
struct CommandLine {
  CLI::App& app;
  std::function<void()> action;  // set by the command that was named
  std::string scenario_hash;     // of the scenario being worked on, for reports of internal errors
};

void add_run(CommandLine& line);
void add_check(CommandLine& line);
void add_show(CommandLine& line);
void add_topology(CommandLine& line);
void add_catalog(CommandLine& line);
void add_nccl_test(CommandLine& line);
void add_list(CommandLine& line);

/// SCENARIO and --set.
struct ScenarioArguments {
  std::string scenario;
  std::vector<std::string> set;
};
void add_scenario_arguments(CLI::App& command, ScenarioArguments& arguments, bool scenario_required = true);
/// Loads what the arguments name and notes its hash.
Scenario load(CommandLine& line, const ScenarioArguments& arguments, bool needs_work = true);

/// --node, --nodes, --topology: a cluster without a scenario file.
struct ClusterArguments {
  std::string node;
  std::int64_t nodes = 1;
  std::string topology;
  [[nodiscard]] bool given() const { return !node.empty() || !topology.empty(); }
};
void add_cluster_arguments(CLI::App& command, ClusterArguments& arguments);
/// A scenario tree with that cluster, to be completed by the command.
Value cluster_tree(const std::string& name, const ClusterArguments& arguments, std::string_view default_topology);

/// Prints to standard output; throws BadInput when that fails (a full disk).
void print(std::string_view text);

/// Shows on a terminal's standard error what is being done before the simulation starts.
std::function<void(std::string_view what)> stage_reporter();
/// Shows on standard error how far a long simulation is: nothing in the first second, then a line that is rewritten on
/// a terminal, and a single line elsewhere.
std::function<void(Picoseconds now, std::uint64_t events)> progress_reporter();
/// Removes the line from the terminal.
void end_progress();

}  // namespace clustersim::cli
