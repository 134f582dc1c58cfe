// The program: picks the command, and turns every kind of failure into one message and an exit code.
#include <algorithm>
#include <cstdio>
#include <exception>
#include <new>
#include <string>
#include <vector>

#include "scenarios/cli/command.hpp"
#include "scenarios/result.hpp"
#include "sim/errors.hpp"

namespace clustersim::cli {
namespace {

constexpr int kOk = 0;
constexpr int kInternalError = 1;
constexpr int kBadInput = 2;
constexpr int kInfeasible = 3;

int fail(int code, std::string_view text) {
  std::fflush(stdout);
  end_progress();
  fmt::print(stderr, "clustersim: {}\n", text);
  return code;
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  return names;
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
    for (const std::string& name : option->get_snames()) names.push_back("-" + name);
  }
  return names;
}

/// What is wrong with the command line, with the nearest valid word where there is one.
std::string explain(const CLI::App& app, const CLI::ParseError& error, int argc, char** argv) {
  const std::vector<std::string> commands = command_names(app);
  const std::string first = argc > 1 ? argv[1] : "";
  const bool is_command = std::find(commands.begin(), commands.end(), first) != commands.end();
  if (first.empty()) return fmt::format("expected a command: {} (`clustersim --help`)", fmt::join(commands, ", "));
  if (!is_command && !first.starts_with('-')) {
    return fmt::format("unknown command \"{}\"{}; there are: {}", first, did_you_mean(first, commands),
                       fmt::join(commands, ", "));
  }
  const CLI::App& scope = is_command ? *app.get_subcommand(first) : app;
  const std::vector<std::string> options = option_names(scope);
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    word = word.substr(0, word.find('='));
    if (word.size() < 2 || !word.starts_with('-')) continue;
    if (std::find(options.begin(), options.end(), word) != options.end()) continue;
    if (dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr || !is_command) {
      return fmt::format("unknown option \"{}\"{}; there are: {}", word, did_you_mean(word, options),
                         fmt::join(options, ", "));
    }
  }
  return fmt::format("{}{}", is_command ? first + ": " : "", error.what());
}

int run_program(int argc, char** argv) {
  CLI::App app{"Simulates GPU clusters: training steps and collectives on any network, exactly and quickly.",
               "clustersim"};
  app.set_version_flag("--version", fmt::format("clustersim {}", program_version()));
  app.require_subcommand(1);
  app.footer("Exit codes: 0 done, 2 bad input, 3 not possible, 1 internal error.");
  CommandLine line{app, {}, {}};
  add_run(line);
  add_check(line);
  add_show(line);
  add_topology(line);
  add_catalog(line);
  add_nccl_test(line);
  add_list(line);
  try {
    app.parse(argc, argv);
  } catch (const CLI::Success& asked) {  // --help, --version
    return app.exit(asked);
  } catch (const CLI::ParseError& error) {
    return fail(kBadInput, explain(app, error, argc, argv));
  }
  try {
    line.action();
    return kOk;
  } catch (const BadInput& problem) {
    return fail(kBadInput, problem.what());
  } catch (const Infeasible& problem) {
    return fail(kInfeasible, problem.what());
  } catch (const std::bad_alloc&) {
    return fail(kInfeasible, "this does not fit into the memory of this machine; simulate fewer GPUs");
  } catch (const std::exception& problem) {
    return fail(kInternalError,
                fmt::format("internal error, please report: {} (scenario {}, version {})", problem.what(),
                            line.scenario_hash.empty() ? "none" : line.scenario_hash, program_version()));
  }
}

}  // namespace
}  // namespace clustersim::cli

int main(int argc, char** argv) { return clustersim::cli::run_program(argc, argv); }
