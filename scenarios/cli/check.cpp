// clustersim check: everything that can be refused without simulating.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "scenarios/cli/command.hpp"
#include "scenarios/run.hpp"

namespace clustersim::cli {
namespace {

std::string gpu_text(const std::vector<CheckReport>& reports) {
  const auto [least, most] = std::minmax_element(
      reports.begin(), reports.end(), [](const CheckReport& a, const CheckReport& b) { return a.gpus < b.gpus; });
  if (least->gpus == most->gpus) return fmt::format("{} GPU{}", most->gpus, most->gpus == 1 ? "" : "s");
  return fmt::format("{} to {} GPUs", least->gpus, most->gpus);
}

void check(CommandLine& line, const ScenarioArguments& arguments) {
  const Scenario scenario = load(line, arguments);
  const std::vector<CheckReport> reports = check_scenario(scenario);
  std::string text = fmt::format("ok: {}: ", scenario.name);
  if (!scenario.points.empty()) text += fmt::format("{} points, ", reports.size());
  text += gpu_text(reports);
  const auto fullest = std::max_element(reports.begin(), reports.end(), [](const CheckReport& a, const CheckReport& b) {
    return a.memory_bytes < b.memory_bytes;
  });
  if (fullest->memory_bytes > 0) {
    text += fmt::format(", {}{:.2f} of {:.2f} GiB per GPU", reports.size() > 1 ? "at most " : "",
                        fullest->memory_bytes / 0x1p30, static_cast<double>(fullest->memory_capacity.value()) / 0x1p30);
  }
  print(text + "\n");
}

}  // namespace

void add_check(CommandLine& line) {
  auto arguments = std::make_shared<ScenarioArguments>();
  CLI::App* command = line.app.add_subcommand("check", "Say whether a scenario can run, without simulating it");
  add_scenario_arguments(*command, *arguments);
  command->callback([&line, arguments] { line.action = [&line, arguments] { check(line, *arguments); }; });
}

}  // namespace clustersim::cli
