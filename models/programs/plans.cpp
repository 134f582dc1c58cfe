// Matches what the members of each communicator issue, and plans each distinct operation of it once.
#include "models/programs/plans.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "sim/errors.hpp"

namespace clustersim {
namespace {

constexpr std::uint32_t kNoSequence = ~0U;

/// Inverts Job::slot_of: per communicator its members, rank ascending, with the slot each of them knows it by.
std::vector<SlotEntry> slot_entries(const Job& job) {
  const std::uint32_t communicators = job.communicators();
  std::vector<SlotEntry> entries(job.members.size());
  std::vector<std::uint32_t> next(job.member_begin.begin(), job.member_begin.end() - 1);
  for (std::uint32_t rank = 0; rank < job.ranks(); ++rank) {
    for (std::uint32_t slot = 0; slot < job.slots; ++slot) {
      const CommunicatorId id = job.slot_of[std::size_t{rank} * job.slots + slot];
      if (!id.valid()) continue;
      ensure(id.index() < communicators, "rank {} slot {} names communicator {} of {}", rank, slot, id.value(),
             communicators);
      ensure(next[id.index()] < job.member_begin[id.index() + 1],
             "rank {} slot {}: communicator {} is in more slots than it has members", rank, slot, id.value());
      entries[next[id.index()]++] = {rank, slot};
    }
  }
  std::vector<std::uint32_t> sorted;
  for (std::uint32_t c = 0; c < communicators; ++c) {
    ensure(next[c] == job.member_begin[c + 1], "communicator {} is in fewer slots than it has members", c);
    sorted.clear();
    for (const RankId rank : job.communicator(CommunicatorId(c))) sorted.push_back(rank.value());
    std::sort(sorted.begin(), sorted.end());
    for (std::size_t i = 0; i < sorted.size(); ++i) {
      ensure(sorted[i] == entries[job.member_begin[c] + i].rank,
             "communicator {}: rank {} is a member but has it in no slot", c, sorted[i]);
    }
  }
  return entries;
}

/// Gives equal sequences of operations equal numbers.
class Sequences {
 public:
  Sequences(const Job& job, std::span<const StreamProgram> programs, CommunicatorPlans& plans) {
    std::map<NetworkOperation, std::uint32_t> numbers;
    std::vector<std::uint32_t> network_operation;
    for (const Operation& operation : job.operations) {
      const NetworkOperation key{operation.collective, operation.bytes.value()};
      const auto [entry, added] = numbers.try_emplace(key, static_cast<std::uint32_t>(plans.operations.size()));
      if (added) plans.operations.push_back(key);
      network_operation.push_back(entry->second);
    }
    std::map<std::vector<std::uint32_t>, std::uint32_t> known;
    slots_ = job.slots;
    of_.assign(programs.size() * job.slots, kNoSequence);
    for (std::size_t p = 0; p < programs.size(); ++p) {
      for (std::uint32_t slot = 0; slot < job.slots; ++slot) {
        std::vector<std::uint32_t> sequence;
        for (const std::uint32_t operation : programs[p].operations(slot)) {
          sequence.push_back(network_operation[operation]);
        }
        const auto [entry, added] = known.try_emplace(sequence, static_cast<std::uint32_t>(plans.sequences.size()));
        if (added) plans.sequences.push_back(split(sequence));
        of_[p * job.slots + slot] = entry->second;
      }
    }
  }
  [[nodiscard]] std::uint32_t of(std::uint32_t program, std::uint32_t slot) const {
    return of_[std::size_t{program} * slots_ + slot];
  }

 private:
  static OperationSequence split(const std::vector<std::uint32_t>& operations) {
    OperationSequence sequence;
    std::map<std::uint32_t, std::uint32_t> index;
    for (const std::uint32_t operation : operations) {
      const auto [entry, added] = index.try_emplace(operation, static_cast<std::uint32_t>(sequence.distinct.size()));
      if (added) sequence.distinct.push_back(operation);
      sequence.of_position.push_back(entry->second);
    }
    return sequence;
  }
  std::uint32_t slots_ = 0;
  std::vector<std::uint32_t> of_;  // [program x slots + slot]
};

std::string operation_text(const CommunicatorPlans& plans, const OperationSequence& sequence, std::size_t position) {
  if (position >= sequence.of_position.size()) return "nothing";
  const NetworkOperation& operation = plans.operations[sequence.distinct[sequence.of_position[position]]];
  return fmt::format("{} of {} bytes", name(operation.collective), operation.bytes);
}

[[noreturn]] void report_mismatch(const CommunicatorPlans& plans, std::size_t communicator, const SlotEntry& one,
                                  std::uint32_t one_sequence, const SlotEntry& other, std::uint32_t other_sequence) {
  const OperationSequence& a = plans.sequences[one_sequence];
  const OperationSequence& b = plans.sequences[other_sequence];
  std::size_t position = 0;
  while (operation_text(plans, a, position) == operation_text(plans, b, position)) ++position;
  throw BrokenContract(fmt::format(
      "communicator {}: its members issue different operations. Operation {} is {} on rank {} (slot {}), but {} on "
      "rank {} (slot {})",
      communicator, position, operation_text(plans, a, position), one.rank, one.slot,
      operation_text(plans, b, position), other.rank, other.slot));
}

std::uint32_t common_sequence(const Job& job, const CommunicatorPlans& plans, const Sequences& sequences,
                              std::size_t communicator) {
  const SlotEntry& first = plans.entries[job.member_begin[communicator]];
  const std::uint32_t sequence = sequences.of(job.program_of[first.rank], first.slot);
  for (std::uint32_t e = job.member_begin[communicator] + 1; e < job.member_begin[communicator + 1]; ++e) {
    const SlotEntry& entry = plans.entries[e];
    const std::uint32_t other = sequences.of(job.program_of[entry.rank], entry.slot);
    if (other != sequence) report_mismatch(plans, communicator, first, sequence, entry, other);
  }
  return sequence;
}

/// Appends the plans of one communicator, sharing equal uses.
class Planner {
 public:
  Planner(const Job& job, const Cluster& cluster, const CommunicationModel& model, CommunicatorPlans& plans)
      : job_(job), cluster_(cluster), model_(model), plans_(plans), dead_(cluster.network().resources()) {
    for (std::uint32_t r = 0; r < dead_.size(); ++r) {
      dead_[r] = cluster.network().resource_capacity(r).value() <= 0;
    }
  }

  void plan(std::size_t communicator) {
    gpus_.clear();
    for (const RankId rank : job_.communicator(CommunicatorId(communicator)))
      gpus_.push_back(job_.gpu_of[rank.index()]);
    const Group group{cluster_, gpus_};
    const std::size_t first_shape = plans_.use_begin.size() - 1;
    for (const std::uint32_t number : plans_.sequences[plans_.sequence_of[communicator]].distinct) {
      const NetworkOperation& operation = plans_.operations[number];
      const CollectivePlan plan = plan_collective(group, model_, operation.collective, Bytes(operation.bytes));
      check(plan, communicator);
      plans_.plans.push_back({plan.amount, plan.rate_cap, plan.latency, choice(operation.collective, plan),
                              shape(plan.uses, first_shape)});
    }
  }

 private:
  void check(const CollectivePlan& plan, std::size_t communicator) const {
    ensure(std::isfinite(plan.amount) && plan.amount >= 0 && plan.latency.count() >= 0 && plan.rate_cap > 0,
           "communicator {}: the {} plan has amount {}, latency {} ps, cap {}", communicator, plan.algorithm,
           plan.amount, plan.latency.count(), plan.rate_cap);
    for (const PlanUse& use : plan.uses) {
      if (!dead_[use.resource]) continue;
      infeasible(
          "{} has no capacity left, and communicator {} (first member on {}) has to cross it; repair the link or "
          "place the job elsewhere",
          cluster_.network().resource_name(use.resource), communicator, gpus_.front().value());
    }
  }

  std::uint32_t choice(Collective collective, const CollectivePlan& plan) {
    const auto [entry, added] =
        choices_.try_emplace({collective, plan.algorithm}, static_cast<std::uint32_t>(plans_.algorithms.size()));
    if (added) plans_.algorithms.push_back({collective, plan.algorithm, plan.reason});
    return entry->second;
  }

  std::uint32_t shape(const std::vector<PlanUse>& uses, std::size_t first_shape) {
    for (std::size_t s = first_shape; s + 1 < plans_.use_begin.size(); ++s) {
      const auto known = plans_.uses_of(s);
      if (std::equal(known.begin(), known.end(), uses.begin(), uses.end())) {
        return static_cast<std::uint32_t>(s - first_shape);
      }
    }
    plans_.uses.insert(plans_.uses.end(), uses.begin(), uses.end());
    plans_.use_begin.push_back(plans_.uses.size());
    return static_cast<std::uint32_t>(plans_.use_begin.size() - 2 - first_shape);
  }

  const Job& job_;
  const Cluster& cluster_;
  const CommunicationModel& model_;
  CommunicatorPlans& plans_;
  std::vector<bool> dead_;  // per Network resource
  std::vector<GpuId> gpus_;
  std::map<std::pair<Collective, std::string_view>, std::uint32_t> choices_;
};

}  // namespace

CommunicatorPlans plan_communicators(const Job& job, std::span<const StreamProgram> programs, const Cluster& cluster,
                                     const CommunicationModel& model) {
  CommunicatorPlans plans;
  plans.entries = slot_entries(job);
  const Sequences sequences(job, programs, plans);
  const std::size_t communicators = job.communicators();
  plans.sequence_of.reserve(communicators);
  for (std::size_t c = 0; c < communicators; ++c) {
    plans.sequence_of.push_back(common_sequence(job, plans, sequences, c));
  }
  Planner planner(job, cluster, model, plans);
  plans.plan_begin.reserve(communicators + 1);
  plans.shape_begin.reserve(communicators + 1);
  for (std::size_t c = 0; c < communicators; ++c) {
    plans.plan_begin.push_back(plans.plans.size());
    plans.shape_begin.push_back(plans.use_begin.size() - 1);
    planner.plan(c);
  }
  plans.plan_begin.push_back(plans.plans.size());
  plans.shape_begin.push_back(plans.use_begin.size() - 1);
  return plans;
}

}  // namespace clustersim
