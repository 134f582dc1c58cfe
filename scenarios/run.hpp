// Runs a scenario: one step, a table of collectives, or every point of a study.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "scenarios/result.hpp"
#include "scenarios/scenario.hpp"

namespace clustersim {

struct RunOptions {
  bool lump = true;
  bool record_timeline = false;
  bool scaling = true;                               // also simulate one model replica, for scaling efficiency
  unsigned threads = 1;                              // for the points of a study; 0 = as many as cores
  std::function<void(std::string_view what)> stage;  // called with what comes next
  std::function<void(Picoseconds now, std::uint64_t events)> progress;
};

/// The result does not depend on the number of threads, apart from wall times and memory. With several threads the
/// callbacks are not called while a study runs. Throws BadInput, Infeasible or (a bug) BrokenContract.
Result run_scenario(const Scenario& scenario, const RunOptions& options = {});

/// What can be said without simulating: everything that can be refused has been.
struct CheckReport {
  std::string name;
  std::string label;  // of a study point
  std::int64_t gpus = 0;
  std::int64_t ranks = 0;   // 0 for a table of collectives
  double memory_bytes = 0;  // of the fullest GPU
  Bytes memory_capacity{0};
};
/// One report, or one per point of a study.
std::vector<CheckReport> check_scenario(const Scenario& scenario);

}  // namespace clustersim
