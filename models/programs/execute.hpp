// Runs a job's programs on a cluster: rank classes step through instructions, collectives share the network.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "models/programs/program.hpp"

namespace clustersim {

struct ExecutionOptions {
  bool lump = true;                                  // false: every rank, communicator and link on its own (same code)
  bool record_timeline = false;                      // keep intervals of one rank per class
  std::function<void(std::string_view what)> stage;  // called with what comes next, before the clock starts
  std::function<void(Picoseconds now, std::uint64_t events)> progress;  // called about twice a second when set
};

/// One resource (link or bundle) or class of equal ones, over the whole step.
struct ResourceUsage {
  std::uint32_t resource = 0;  // representative: a Network resource number
  std::uint32_t count = 1;     // how many equal ones
  double bytes = 0;            // carried by each
  double busy_share = 0;       // bytes / (usable capacity x step time)
  Rate capacity{0};            // usable, after protocol efficiency
};

struct TimelineInterval {
  std::uint32_t rank_class = 0;
  std::uint8_t stream = 0;
  std::uint32_t label = 0;
  Cause cause = Cause::compute;
  Picoseconds start{0};
  Picoseconds end{0};
};

/// What one class of ranks spent its time on. The ledger sums to the step time exactly, in ticks.
struct RankClass {
  std::uint32_t representative = 0;  // rank
  std::uint32_t count = 1;
  std::uint32_t program = 0;
  std::array<Picoseconds, kCauses> ledger{};
  Picoseconds finished{0};
};

struct LumpCounts {
  std::size_t ranks = 0, rank_classes = 0;
  std::size_t communicators = 0, communicator_classes = 0;
  std::size_t resources = 0, resource_classes = 0;
};

/// One row per collective, cause and algorithm.
struct CommunicationSummary {
  Collective collective = Collective::all_reduce;
  Cause exposed_as = Cause::exposed_other;
  std::string_view algorithm;
  std::string reason;
  std::uint64_t operations = 0;  // over all communicators
  double bytes = 0;              // plan amounts (bytes of the busiest point-to-point edge), all communicators
  Picoseconds busy{0};           // summed transfer time of one communicator, longest class
};

struct StepResult {
  Picoseconds step_time{0};
  std::vector<RankClass> rank_classes;
  std::vector<std::uint32_t> rank_class_of;  // per rank: index into rank_classes
  std::vector<ResourceUsage> resources;      // those that carried anything, busiest first
  std::vector<CommunicationSummary> communication;
  std::vector<TimelineInterval> timeline;
  LumpCounts lumps;
  std::uint64_t events = 0;
  std::uint64_t flow_events = 0;
  std::uint64_t solves = 0;
  double bytes_sent = 0;       // by senders, from the plans
  double bytes_delivered = 0;  // credited by the network; equal to bytes_sent or BrokenContract is thrown
};

/// Simulates every rank's program to its end. Throws BrokenContract on deadlock or a violated invariant.
StepResult execute(const Job& job, const Cluster& cluster, const CommunicationModel& model,
                   const ExecutionOptions& options);

}  // namespace clustersim
