// clustersim show: the scenario with everything it extends merged and every default written out.
#include <memory>

#include "scenarios/cli/command.hpp"

namespace clustersim::cli {

void add_show(CommandLine& line) {
  auto arguments = std::make_shared<ScenarioArguments>();
  CLI::App* command = line.app.add_subcommand("show", "Print the scenario as it is understood, with defaults, as TOML");
  add_scenario_arguments(*command, *arguments);
  command->callback(
      [&line, arguments] { line.action = [&line, arguments] { print(load(line, *arguments).resolved_text); }; });
}

}  // namespace clustersim::cli
