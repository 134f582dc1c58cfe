// What every program of the comparison has in common: options, processor time of the run, times of flows, the report.
#pragma once

#include <cstdint>
#include <cstdio>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/bench/peers/patterns.hpp"

namespace clustersim::peers {

struct Options {
  Traffic traffic;
  std::string topology = "fat-tree";
  std::string csv;  // file for the times of every flow; empty is none
};

/// An option that only one program has.
struct TextOption {
  std::string name;
  std::string* value;
  std::string help;
};

/// Reads the command line, calls `body` and turns failures into a message and an exit code.
int run_program(int argc, char** argv, const std::string& subject, const std::vector<TextOption>& more,
                const std::function<void(const Options&)>& body);

/// Largest resident memory of this process so far. (getrusage would also count the parent's before exec.)
double peak_mebibytes();

/// When a flow started and finished, in simulated seconds.
struct Times {
  double start = 0;
  double finish = 0;
};

/// Measures a run and prints one line of JSON about it. What it does itself is not part of the measured time.
class Report {
 public:
  Report(std::string program, const Options& options);
  /// The platform is built: from here on the run is measured.
  void start_run();
  /// To be called with the flows of each phase, once they are over.
  void add_phase(std::span<const Flow> flows, std::span<const Times> times);
  [[nodiscard]] double run_seconds() const;
  /// `steps`: how often rates were found anew. A `status` other than "ok" says why the run was not finished.
  void finish(double makespan, std::uint64_t steps, std::string_view status = "ok");

 private:
  struct Close {
    void operator()(std::FILE* file) const { std::fclose(file); }
  };
  std::string program_;
  Options options_;
  std::unique_ptr<std::FILE, Close> csv_;
  double build_seconds_ = 0;
  double started_ = 0;
  double excluded_ = 0;
  std::uint64_t phases_ = 0;
  std::uint64_t flows_ = 0;
  double shortest_ = 0;
  double longest_ = 0;
  double sum_ = 0;
};

}  // namespace clustersim::peers
