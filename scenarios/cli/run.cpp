// clustersim run: simulates a scenario and reports what came out.
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
  std::string output;
  bool output_given = false;
  bool no_output = false;
  bool json = false;
  std::string timeline;
  std::string lumping = "on";
  std::string explain;
  unsigned threads = 0;
};

void run(CommandLine& line, const Arguments& arguments) {
  const Scenario scenario = load(line, arguments.scenario);
  if (!arguments.timeline.empty() && (!scenario.job || !scenario.points.empty())) {
    bad_input("--timeline {}: only a scenario with one job and no study has a timeline", arguments.timeline);
  }
  std::optional<OutputFile> output;
  std::optional<OutputFile> timeline;
  if (!arguments.no_output) {
    output.emplace(arguments.output_given ? arguments.output : scenario.name + ".h5", "--output");
  }
  if (!arguments.timeline.empty()) timeline.emplace(arguments.timeline, "--timeline");
  if (output && timeline && output->path() == timeline->path()) {
    bad_input("--timeline {}: is also the output file", arguments.timeline);
  }

  RunOptions options;
  options.lump = arguments.lumping == "on";
  options.threads = arguments.threads;
  options.record_timeline = timeline.has_value();
  options.stage = stage_reporter();
  options.progress = progress_reporter();
  const Result result = run_scenario(scenario, options);
  end_progress();

  if (timeline) timeline->write(timeline_json(result));
  if (output) output->write(hdf5_image(result));
  if (arguments.json) {
    print(json_text(result) + "\n");
    return;
  }
  std::string text = readable_summary(result);
  if (!arguments.explain.empty()) text += "\n" + explain_lumping(result);
  if (output) text += fmt::format("{:<26}{}\n", "written", output->path());
  if (timeline)
    text += fmt::format("{:<26}{} (open it in Perfetto or chrome://tracing)\n", "timeline", timeline->path());
  print(text);
}

}  // namespace

void add_run(CommandLine& line) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command = line.app.add_subcommand("run", "Simulate a scenario, print a summary and write an HDF5 file");
  add_scenario_arguments(*command, arguments->scenario);
  CLI::Option* output =
      command->add_option("-o,--output", arguments->output, "Result file; default: NAME.h5")->type_name("FILE");
  command->add_flag("--no-output", arguments->no_output, "Write no result file")->excludes(output);
  command->add_flag("--json", arguments->json, "Print one JSON object instead of the summary");
  command
      ->add_option("--timeline", arguments->timeline, "Write the timeline of one rank per class (Chrome trace events)")
      ->type_name("FILE");
  command->add_option("--lumping", arguments->lumping, "off: simulate every rank and link on its own")
      ->check(CLI::IsMember({"on", "off"}))
      ->capture_default_str();
  command->add_option("--threads", arguments->threads, "Points of a study simulated at once; 0: as many as cores")
      ->check(CLI::Range(0, 1024))
      ->type_name("INT")
      ->capture_default_str();
  command->add_option("--explain", arguments->explain, "lumping: show the classes that were simulated")
      ->check(CLI::IsMember({"lumping"}));
  command->callback([&line, arguments, output] {
    arguments->output_given = output->count() > 0;
    line.action = [&line, arguments] { run(line, *arguments); };
  });
}

}  // namespace clustersim::cli
