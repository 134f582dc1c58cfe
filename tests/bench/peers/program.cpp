// The command line, the clock and the two outputs (JSON line, CSV) of the comparison's programs.
#include "tests/bench/peers/program.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <exception>
#include <fstream>
#include <utility>

#include "sim/errors.hpp"
#include "tests/bench/processor_time.hpp"

namespace clustersim::peers {

int run_program(int argc, char** argv, const std::string& subject, const std::vector<TextOption>& more,
                const std::function<void(const Options&)>& body) {
  Options options;
  Traffic& traffic = options.traffic;
  CLI::App app(subject);
  app.add_option("--topology", options.topology, "fat-tree or torus");
  app.add_option("--hosts", traffic.hosts);
  app.add_option("--pattern", traffic.pattern);
  app.add_option("--bytes", traffic.bytes, "Of a flow, or of a rank's buffer in all-reduces");
  app.add_option("--rounds", traffic.rounds, "Permutations at once, or Poisson arrivals per host");
  app.add_option("--shift", traffic.shift, "Distance of a shift; 0 is half of the hosts");
  app.add_option("--group", traffic.group, "Hosts of a group of the hierarchical all-reduce");
  app.add_option("--jitter", traffic.jitter, "Spread of sizes, 0 to 1");
  app.add_option("--bandwidth", traffic.bandwidth, "Of every link, bytes per second");
  app.add_option("--load", traffic.load, "Of Poisson arrivals, 0 to 1");
  app.add_option("--seed", traffic.seed);
  app.add_option("--csv", options.csv, "File for the start and the finish of every flow");
  for (const TextOption& option : more) app.add_option(option.name, *option.value, option.help);
  try {
    app.parse(argc, argv);
    body(options);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;
  } catch (const BadInput& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return 2;
  } catch (const std::exception& error) {
    fmt::print(stderr, "{}: {}\n", argv[0], error.what());
    return 1;
  }
  return 0;
}

double peak_mebibytes() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line)) {
    if (line.starts_with("VmHWM:")) return std::stod(line.substr(6)) / 1024;
  }
  return 0;
}

Report::Report(std::string program, const Options& options) : program_(std::move(program)), options_(options) {
  if (options.csv.empty()) return;
  csv_.reset(std::fopen(options.csv.c_str(), "w"));
  if (!csv_) bad_input("cannot write {}", options.csv);
  fmt::print(csv_.get(), "phase,flow,source,destination,bytes,start_s,finish_s\n");
}

void Report::start_run() { started_ = build_seconds_ = bench::processor_seconds(); }

double Report::run_seconds() const { return bench::processor_seconds() - started_ - excluded_; }

void Report::add_phase(std::span<const Flow> flows, std::span<const Times> times) {
  const double before = bench::processor_seconds();
  ensure(flows.size() == times.size(), "{} flows with {} times", flows.size(), times.size());
  for (std::size_t i = 0; i < flows.size(); ++i) {
    const double duration = times[i].finish - times[i].start;
    shortest_ = flows_ == 0 ? duration : std::min(shortest_, duration);
    longest_ = std::max(longest_, duration);
    sum_ += duration;
    ++flows_;
    if (!csv_) continue;
    fmt::print(csv_.get(), "{},{},{},{},{},{:.17g},{:.17g}\n", phases_, i, flows[i].source, flows[i].destination,
               flows[i].bytes, times[i].start, times[i].finish);
  }
  ++phases_;
  excluded_ += bench::processor_seconds() - before;
}

void Report::finish(double makespan, std::uint64_t steps, std::string_view status) {
  const double run = run_seconds();
  csv_.reset();
  const Traffic& traffic = options_.traffic;
  fmt::print(
      "{{\"program\": \"{}\", \"status\": \"{}\", \"topology\": \"{}\", \"pattern\": \"{}\", \"hosts\": {}, "
      "\"phases\": {}, \"flows\": {}, \"steps\": {}, \"makespan_s\": {:.17g}, \"shortest_s\": {:.17g}, "
      "\"mean_s\": {:.17g}, \"longest_s\": {:.17g}, \"build_cpu_s\": {:.6f}, \"run_cpu_s\": {:.6f}, "
      "\"peak_mib\": {:.1f}}}\n",
      program_, status, options_.topology, traffic.pattern, traffic.hosts, phases_, flows_, steps, makespan, shortest_,
      flows_ == 0 ? 0 : sum_ / static_cast<double>(flows_), longest_, build_seconds_, run, peak_mebibytes());
  std::fflush(stdout);
}

}  // namespace clustersim::peers
