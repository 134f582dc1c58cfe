// One step of a job from programs to figures: compile, plan, lump, step, close the books.
#include "models/programs/execute.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <map>
#include <tuple>

#include "models/programs/classes.hpp"
#include "models/programs/executor.hpp"
#include "models/programs/ledger.hpp"
#include "models/programs/plans.hpp"
#include "models/programs/streams.hpp"
#include "sim/errors.hpp"

namespace clustersim {
namespace {

void check_ranks(const Job& job, const Cluster& cluster) {
  const std::size_t ranks = job.ranks();
  ensure(ranks > 0, "job {}: no ranks", job.name);
  ensure(job.gpu_of.size() == ranks, "job {}: {} ranks on {} GPUs", job.name, ranks, job.gpu_of.size());
  ensure(job.slowdown.empty() || job.slowdown.size() == ranks, "job {}: {} slowdowns for {} ranks", job.name,
         job.slowdown.size(), ranks);
  ensure(job.slot_of.size() == ranks * job.slots || (job.slot_of.empty() && job.communicators() == 0),
         "job {}: {} slot entries for {} ranks x {} slots", job.name, job.slot_of.size(), ranks, job.slots);
  for (std::size_t r = 0; r < ranks; ++r) {
    ensure(job.program_of[r] < job.programs.size(), "rank {}: program {} of {}", r, job.program_of[r],
           job.programs.size());
    ensure(job.gpu_of[r].index() < cluster.gpus(), "rank {}: GPU {} of {}", r, job.gpu_of[r].value(), cluster.gpus());
    ensure(job.slowdown.empty() || (std::isfinite(job.slowdown[r]) && job.slowdown[r] > 0), "rank {}: slowdown {}", r,
           job.slowdown.empty() ? 1.0 : job.slowdown[r]);
  }
}

void check_slots(const Job& job, std::span<const StreamProgram> programs) {
  for (std::size_t r = 0; r < job.ranks(); ++r) {
    const StreamProgram& program = programs[job.program_of[r]];
    for (std::uint32_t slot = 0; slot < job.slots; ++slot) {
      if (program.slot_begin[slot] == program.slot_begin[slot + std::size_t{1}]) continue;
      ensure(!job.slot_of.empty() && job.slot_of[r * job.slots + slot].valid(),
             "rank {} runs program {}, which uses slot {}, but it has no communicator there", r, job.program_of[r],
             slot);
    }
  }
}

std::vector<StreamProgram> compile_programs(const Job& job) {
  std::vector<StreamProgram> programs;
  programs.reserve(job.programs.size());
  for (std::uint32_t p = 0; p < job.programs.size(); ++p) {
    ensure(job.programs[p].streams <= 64, "program {} has {} streams; at most 64", p, job.programs[p].streams);
    programs.push_back(compile_program(job, p));
  }
  return programs;
}

/// Turns what the executor counted into a StepResult, checking conservation on the way.
class Accountant {
 public:
  Accountant(const Job& job, std::span<const StreamProgram> programs, const CommunicatorPlans& plans,
             const Classes& classes, Executor& executor)
      : job_(job), programs_(programs), plans_(plans), classes_(classes), executor_(executor) {}

  StepResult result() {
    result_.step_time = Picoseconds(executor_.end());
    add_ranks();
    add_communication();
    add_resources();
    result_.timeline = std::move(executor_.timeline());
    result_.lumps = {classes_.ranks.members,        classes_.ranks.size(),      classes_.communicators.members,
                     classes_.communicators.size(), classes_.resources.members, classes_.resources.size()};
    result_.events = executor_.events();
    result_.flow_events = executor_.fluid().activity_events();
    result_.solves = executor_.fluid().solves();
    return std::move(result_);
  }

 private:
  void add_ranks() {
    std::map<std::pair<std::uint32_t, std::uint64_t>, CauseTicks> kernels;
    for (std::size_t r = 0; r < classes_.ranks.size(); ++r) {
      RankClass rank;
      rank.representative = classes_.ranks.representative[r];
      rank.count = classes_.ranks.count[r];
      rank.program = executor_.program_of(r);
      rank.finished = Picoseconds(executor_.finished(r));
      const double slowdown = executor_.slowdown_of(r);
      const auto [entry, added] = kernels.try_emplace({rank.program, std::bit_cast<std::uint64_t>(slowdown)});
      if (added) entry->second = kernel_totals(job_.programs[rank.program], programs_[rank.program], slowdown);
      const CauseTicks ticks = executor_.ledger().close(r, executor_.end(), entry->second);
      for (std::size_t cause = 0; cause < kCauses; ++cause) rank.ledger[cause] = Picoseconds(ticks[cause]);
      result_.rank_classes.push_back(rank);
    }
    result_.rank_class_of = classes_.ranks.class_of;
  }

  /// How the lowest rank of a communicator books its waiting for one of the distinct operations.
  [[nodiscard]] Cause exposed_as(std::uint32_t communicator, std::size_t distinct) const {
    const SlotEntry& entry = plans_.entries[job_.member_begin[communicator]];
    const OperationSequence& sequence = plans_.sequence(communicator);
    const auto position = static_cast<std::size_t>(
        std::find(sequence.of_position.begin(), sequence.of_position.end(), distinct) - sequence.of_position.begin());
    return job_.operations[programs_[job_.program_of[entry.rank]].operations(entry.slot)[position]].exposed_as;
  }

  void add_communication() {
    std::map<std::tuple<Collective, Cause, std::uint32_t>, CommunicationSummary> rows;
    std::map<std::tuple<Collective, Cause, std::uint32_t>, std::int64_t> busy;  // of one class
    for (std::size_t c = 0; c < classes_.communicators.size(); ++c) {
      const std::uint32_t representative = classes_.communicators.representative[c];
      const auto count = classes_.communicators.count[c];
      const auto plans = plans_.plans_of(representative);
      const auto counts = executor_.counts(c);
      busy.clear();
      for (std::size_t d = 0; d < counts.size(); ++d) {
        ensure(counts[d].started == counts[d].finished, "communicator {}: {} operations started, {} finished",
               representative, counts[d].started, counts[d].finished);
        const PlannedAlgorithm& choice = plans_.algorithms[plans[d].algorithm];
        const std::tuple key(choice.collective, exposed_as(representative, d), plans[d].algorithm);
        CommunicationSummary& row = rows[key];
        row.collective = choice.collective;
        row.exposed_as = std::get<Cause>(key);
        row.algorithm = choice.algorithm;
        row.reason = choice.reason;
        row.operations += counts[d].finished * count;
        row.bytes += plans[d].amount * static_cast<double>(counts[d].finished * count);
        busy[key] += counts[d].busy;
        result_.bytes_sent += plans[d].amount * static_cast<double>(counts[d].started * count);
        result_.bytes_delivered += plans[d].amount * static_cast<double>(counts[d].finished * count);
      }
      for (const auto& [key, ticks] : busy) rows[key].busy = std::max(rows[key].busy, Picoseconds(ticks));
    }
    ensure(result_.bytes_sent == result_.bytes_delivered, "{} bytes were sent, but {} delivered", result_.bytes_sent,
           result_.bytes_delivered);
    for (auto& [key, row] : rows) result_.communication.push_back(std::move(row));
  }

  /// What each resource has to carry by the plans, to hold against what the network says it carried.
  [[nodiscard]] std::vector<double> planned_load() const {
    std::vector<double> load(classes_.resources.size(), 0);
    for (std::size_t c = 0; c < classes_.communicators.size(); ++c) {
      const auto plans = plans_.plans_of(classes_.communicators.representative[c]);
      const auto counts = executor_.counts(c);
      for (std::size_t d = 0; d < counts.size(); ++d) {
        for (const Use& use : classes_.uses_of(c, plans[d].shape)) {
          load[use.resource.index()] += use.coefficient * plans[d].amount * static_cast<double>(counts[d].started);
        }
      }
    }
    return load;
  }

  void add_resources() {
    const std::vector<double> planned = planned_load();
    for (std::size_t r = 0; r < classes_.resources.size(); ++r) {
      ResourceUsage usage;
      usage.resource = classes_.resources.representative[r];
      usage.count = classes_.resources.count[r];
      usage.bytes = executor_.fluid().carried(ResourceId(r));
      usage.capacity = Rate(classes_.capacity[r]);
      ensure(std::abs(usage.bytes - planned[r]) <= 1e-9 * planned[r] + 1e-6,
             "resource {} carried {} bytes, but the plans put {} on it", usage.resource, usage.bytes, planned[r]);
      if (usage.bytes <= 0) continue;
      const double most = classes_.capacity[r] * to_seconds(result_.step_time);
      usage.busy_share = usage.bytes / most;
      // An end of a transfer is rounded to the clock by at most half a tick: over all of them, that much may be
      // missing.
      const double rounding =
          static_cast<double>(executor_.fluid().activity_events() + 1) * 1e-12 * classes_.capacity[r];
      ensure(usage.bytes <= most * (1 + 1e-9) + rounding,
             "resource {} carried {} bytes, more than it can in the step: {}", usage.resource, usage.bytes, most);
      result_.resources.push_back(usage);
    }
    std::sort(result_.resources.begin(), result_.resources.end(), [](const ResourceUsage& a, const ResourceUsage& b) {
      return a.busy_share != b.busy_share ? a.busy_share > b.busy_share : a.resource < b.resource;
    });
  }

  const Job& job_;
  std::span<const StreamProgram> programs_;
  const CommunicatorPlans& plans_;
  const Classes& classes_;
  Executor& executor_;
  StepResult result_;
};

}  // namespace

StepResult execute(const Job& job, const Cluster& cluster, const CommunicationModel& model,
                   const ExecutionOptions& options) {
  check_ranks(job, cluster);
  const std::vector<StreamProgram> programs = compile_programs(job);
  check_slots(job, programs);
  if (options.stage) options.stage(fmt::format("planning {} communicators", job.communicators()));
  const CommunicatorPlans plans = plan_communicators(job, programs, cluster, model);
  if (options.stage) options.stage(fmt::format("finding classes of {} ranks", job.ranks()));
  const Classes classes = find_classes(job, cluster, model, plans, options.lump);
  Executor executor(job, programs, plans, classes, options);
  executor.run();
  return Accountant(job, programs, plans, classes, executor).result();
}

}  // namespace clustersim
