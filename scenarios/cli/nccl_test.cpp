// clustersim nccl-test: the table that nccl-tests would print on a cluster.
#include <memory>
#include <optional>
#include <string>

#include "scenarios/cli/command.hpp"
#include "scenarios/hdf5.hpp"
#include "scenarios/output_file.hpp"
#include "scenarios/result.hpp"
#include "scenarios/run.hpp"
#include "sim/errors.hpp"

namespace clustersim::cli {
namespace {

struct Arguments {
  ScenarioArguments scenario;
  ClusterArguments cluster;
  std::string op;
  std::string sizes;
  std::string algorithm;
  std::string form;
  std::string output;
  bool json = false;
};

Value option_value(const std::string& text, std::string_view option) { return Value{text, {std::string(option), 0}}; }

/// The [nccl_test] table that the flags describe.
Value::Table test_table(const Arguments& arguments) {
  Value::Table table;
  if (!arguments.op.empty()) table.emplace_back("op", option_value(arguments.op, "--op"));
  if (!arguments.sizes.empty()) table.emplace_back("sizes", option_value(arguments.sizes, "--sizes"));
  if (!arguments.algorithm.empty()) table.emplace_back("algorithm", option_value(arguments.algorithm, "--algorithm"));
  if (!arguments.form.empty()) table.emplace_back("form", option_value(arguments.form, "--form"));
  return table;
}

Scenario scenario_of(CommandLine& line, const Arguments& arguments) {
  if (arguments.cluster.given() == !arguments.scenario.scenario.empty()) {
    bad_input("expected either a scenario or --node (with --nodes and --topology)");
  }
  if (arguments.cluster.given()) {
    Value tree = cluster_tree("nccl-test", arguments.cluster, "single-switch");
    std::get<Value::Table>(tree.data).emplace_back("nccl_test", Value{test_table(arguments), {}});
    return load_scenario_value(std::move(tree), {arguments.scenario.set});
  }
  ScenarioArguments scenario = arguments.scenario;
  for (const auto& [key, value] : test_table(arguments)) {
    scenario.set.push_back(fmt::format("nccl_test.{}=\"{}\"", key, std::get<std::string>(value.data)));
  }
  return load(line, scenario);
}

void nccl_test(CommandLine& line, const Arguments& arguments) {
  const Scenario scenario = scenario_of(line, arguments);
  line.scenario_hash = scenario.hash;
  if (!scenario.nccl_test) {
    bad_input("the scenario \"{}\" has a job; `clustersim run` runs it, nccl-test needs an [nccl_test] table",
              scenario.name);
  }
  std::optional<OutputFile> output;
  if (!arguments.output.empty()) output.emplace(arguments.output, "--output");
  RunOptions options;
  options.stage = stage_reporter();
  options.progress = progress_reporter();
  const Result result = run_scenario(scenario, options);
  end_progress();
  if (output) output->write(hdf5_image(result));
  print(arguments.json ? json_text(result) + "\n" : readable_summary(result));
}

}  // namespace

void add_nccl_test(CommandLine& line) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = line.app.add_subcommand("nccl-test", "Print the table that nccl-tests would print on a cluster");
  add_scenario_arguments(*command, arguments->scenario, false);
  add_cluster_arguments(*command, arguments->cluster);
  command->add_option("--op", arguments->op, "Collective operation; default: all_reduce");
  command->add_option("--sizes", arguments->sizes, "From..to, doubling, or a list; default: 8..8G");
  command->add_option("--algorithm", arguments->algorithm, "Force one algorithm; default: auto");
  command->add_option("--form", arguments->form,
                      "pipelined (overlapped), stepped (round after round) or simulated (every transfer)");
  command->add_option("-o,--output", arguments->output, "Write an HDF5 file too")->type_name("FILE");
  command->add_flag("--json", arguments->json, "Print one JSON object instead of the table");
  command->callback([&line, arguments] { line.action = [&line, arguments] { nccl_test(line, *arguments); }; });
}

}  // namespace clustersim::cli
