// What must hold in every run: bytes, ledgers and clocks on random jobs, against sums made here from the job itself.
#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>
#include <vector>

#include "models/programs/execute.hpp"
#include "random_jobs.hpp"
#include "sim/errors.hpp"
#include "tests/catch.hpp"

using namespace clustersim;
using namespace clustersim::testing;

namespace {

/// Bytes that each resource has to carry, straight from the job: every operation of every communicator, planned anew.
std::map<std::uint32_t, double> expected_load(const RandomRun& run) {
  std::map<std::uint32_t, double> load;
  const Job& job = run.job;
  for (std::uint32_t c = 0; c < job.communicators(); ++c) {
    const auto members = job.communicator(CommunicatorId(c));
    std::vector<GpuId> gpus;
    for (const RankId rank : members) gpus.push_back(job.gpu_of[rank.index()]);
    const RankId first = members.front();
    std::uint32_t slot = 0;
    while (job.slot_of[std::size_t{first.value()} * job.slots + slot] != CommunicatorId(c)) ++slot;
    for (const Instruction& instruction : job.programs[job.program_of[first.index()]].instructions) {
      if (instruction.kind != Instruction::Kind::collective || instruction.slot != slot) continue;
      const Operation& operation = job.operations[instruction.operation];
      const CollectivePlan plan =
          plan_collective({*run.cluster, gpus}, run.model, operation.collective, operation.bytes);
      for (const PlanUse& use : plan.uses) load[use.resource] += use.coefficient * plan.amount;
    }
  }
  return load;
}

/// Ticks of kernels on the compute stream of a rank.
std::int64_t compute_ticks(const Job& job, std::uint32_t rank) {
  const double slowdown = job.slowdown.empty() ? 1.0 : job.slowdown[rank];
  std::int64_t ticks = 0;
  for (const Instruction& instruction : job.programs[job.program_of[rank]].instructions) {
    if (instruction.kind != Instruction::Kind::kernel || instruction.stream != 0) continue;
    ticks += std::llround(static_cast<double>(instruction.duration.count()) * slowdown);
  }
  return ticks;
}

}  // namespace

TEST_CASE("every byte planned is carried, every tick is booked, no link is faster than it is") {
  std::size_t runs = 0;
  for (std::uint64_t number = 1000; number < 1080; ++number) {
    RandomRun run;
    try {
      run = RandomRunBuilder(number).build();
    } catch (const Infeasible&) {
      continue;
    }
    INFO("run " << number << ": " << run.description);
    ++runs;
    ExecutionOptions options;
    options.lump = number % 2 == 0;
    options.record_timeline = true;
    const StepResult result = execute(run.job, *run.cluster, run.model, options);

    double total = 0;
    for (const auto& [resource, bytes] : expected_load(run)) total += bytes;
    double carried = 0;
    for (const ResourceUsage& usage : result.resources) {
      carried += usage.bytes * usage.count;
      CHECK(usage.busy_share <= 1 + 1e-6);
    }
    CHECK(carried == Approx(total).epsilon(1e-9));
    CHECK(result.bytes_sent == result.bytes_delivered);

    std::uint32_t ranks = 0;
    for (const RankClass& rank : result.rank_classes) {
      ranks += rank.count;
      CHECK(std::accumulate(rank.ledger.begin(), rank.ledger.end(), Picoseconds(0)) == result.step_time);
      CHECK(std::all_of(rank.ledger.begin(), rank.ledger.end(), [](Picoseconds time) { return time.count() >= 0; }));
      CHECK(rank.ledger[static_cast<std::size_t>(Cause::compute)].count() >=
            compute_ticks(run.job, rank.representative));
      CHECK(rank.finished <= result.step_time);
    }
    CHECK(ranks == run.job.ranks());

    std::map<std::pair<std::uint32_t, std::uint8_t>, Picoseconds> clock;  // a stream does one thing at a time
    for (const TimelineInterval& interval : result.timeline) {
      Picoseconds& last = clock[{interval.rank_class, interval.stream}];
      CHECK(interval.start >= last);
      CHECK(interval.end > interval.start);
      last = interval.end;
      CHECK(interval.end <= result.step_time);
    }
  }
  CHECK(runs >= 40);
}
