// Matches what the members of each communicator issue, and plans each distinct operation of communicators that sit
// alike once.
#include "models/programs/plans.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <utility>

#include "sim/errors.hpp"
#include "topologies/footprint.hpp"

namespace clustersim {
namespace {

constexpr std::uint32_t kNoSequence = ~0U;

/// Inverts Job::slot_of: per communicator its members, rank ascending, with the slot each of them knows it by.
std::vector<SlotEntry> slot_entries(const Job& job) {
  const std::uint32_t communicators = job.communicators();
  if (job.slot_of.empty()) return {};  // no communicators at all
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
    if (!std::is_sorted(sorted.begin(), sorted.end())) std::sort(sorted.begin(), sorted.end());
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

/// Finds the pattern of each communicator, and plans those that are new.
class Planner {
 public:
  Planner(const Job& job, const Cluster& cluster, const CommunicationModel& model, CommunicatorPlans& plans)
      : job_(job), cluster_(cluster), model_(model), plans_(plans), footprints_(cluster) {
    std::vector<bool> taken(cluster.gpus(), false);
    plans.place_of_rank.reserve(job.ranks());
    for (const GpuId gpu : job.gpu_of) {
      plans.place_of_rank.push_back(footprints_.place_of_node(cluster.node_of(gpu)));
      if (taken[gpu.index()]) plans.relative = false;
      taken[gpu.index()] = true;
    }
  }

  void add(std::uint32_t communicator, std::uint32_t sequence) {
    gpus_.clear();
    for (const RankId rank : job_.communicator(CommunicatorId(communicator))) {
      gpus_.push_back(job_.gpu_of[rank.index()]);
    }
    const bool form_known = footprints_.find(gpus_, footprint_);
    plans_.place_begin.push_back(plans_.place_list.size());
    plans_.place_list.insert(plans_.place_list.end(), footprint_.places.begin(), footprint_.places.end());
    if (!form_known) {
      plans_.relative = false;
      Seated alone(*this);
      plans_.pattern_of.push_back(plan(communicator, sequence, alone));
      return;
    }
    const std::size_t form_size = footprint_.form.size();
    if (!add_slots(communicator)) plans_.relative = false;
    footprint_.form.push_back(sequence);
    const auto known = patterns_.find(footprint_.form);
    if (known != patterns_.end()) {
      plans_.pattern_of.push_back(known->second);
      return;
    }
    const auto form_end = footprint_.form.begin() + static_cast<std::ptrdiff_t>(form_size);
    std::unique_ptr<Seated>& seated = seated_[{footprint_.form.begin(), form_end}];
    if (!seated) seated = std::make_unique<Seated>(*this);
    plans_.pattern_of.push_back(plan(communicator, sequence, *seated));
    patterns_.emplace(footprint_.form, plans_.pattern_of.back());
  }

  void finish() {
    plans_.place_begin.push_back(plans_.place_list.size());
    plans_.places = footprints_.places();
  }

 private:
  struct Run {
    std::uint32_t first;  // resource
    std::uint32_t count;
    std::uint32_t place;   // of the footprint
    std::uint32_t offset;  // of the first resource in it
  };

  /// The first group of a form: its plans are those of all, read relative to their places.
  struct Seated {
    explicit Seated(const Planner& now) : gpus(now.gpus_), planner({now.cluster_, gpus}, now.model_) {
      const Footprint& footprint = now.footprint_;
      for (std::uint32_t p = 0; p < footprint.places.size(); ++p) {
        const Place& place = now.footprints_.places()[footprint.places[p]];
        runs.push_back({place.first, place.count, p, 0});
        if (place.cables > 0) runs.push_back({place.first_cable, place.cables, p, place.count});
      }
      std::sort(runs.begin(), runs.end(), [](const Run& a, const Run& b) { return a.first < b.first; });
    }
    [[nodiscard]] PatternUse relative(const PlanUse& use) const {
      const auto after =
          std::partition_point(runs.begin(), runs.end(), [&](const Run& run) { return run.first <= use.resource; });
      ensure(after != runs.begin() && use.resource - (after - 1)->first < (after - 1)->count,
             "a plan uses resource {}, which lies outside its footprint", use.resource);
      const Run& run = *(after - 1);
      return {run.place, run.offset + (use.resource - run.first), use.coefficient};
    }
    std::vector<GpuId> gpus;
    GroupPlanner planner;
    std::vector<Run> runs;  // where its places lie, by resource
  };

  /// Adds to the form by which slot each member knows the communicator. False when a rank is in it twice.
  [[nodiscard]] bool add_slots(std::uint32_t communicator) {
    const std::uint32_t begin = job_.member_begin[communicator];
    const std::uint32_t end = job_.member_begin[communicator + 1];
    const auto entries = std::span(plans_.entries).subspan(begin, end - begin);
    bool once = true;
    for (std::uint32_t i = 0; i < entries.size(); ++i) {
      if (i > 0 && entries[i].rank == entries[i - 1].rank) once = false;
      const std::uint32_t rank = job_.members[begin + i].value();
      // Members mostly come in ascending order themselves.
      const SlotEntry& entry =
          entries[i].rank == rank
              ? entries[i]
              : *std::lower_bound(entries.begin(), entries.end(), rank,
                                  [](const SlotEntry& one, std::uint32_t wanted) { return one.rank < wanted; });
      footprint_.form.push_back(entry.slot);
    }
    return once;
  }

  /// Plans the operations of a communicator as a new pattern.
  std::uint32_t plan(std::uint32_t communicator, std::uint32_t sequence, Seated& seated) {
    for (const std::uint32_t number : plans_.sequences[sequence].distinct) {
      const NetworkOperation& operation = plans_.operations[number];
      const CollectivePlan plan = seated.planner.plan(operation.collective, Bytes(operation.bytes));
      ensure(std::isfinite(plan.amount) && plan.amount >= 0 && plan.latency.count() >= 0 && plan.rate_cap > 0,
             "communicator {}: the {} plan has amount {}, latency {} ps, cap {}", communicator, plan.algorithm,
             plan.amount, plan.latency.count(), plan.rate_cap);
      relative_.clear();
      for (const PlanUse& use : plan.uses) {
        relative_.push_back(seated.relative(use));
        check_alive(relative_.back(), communicator);
      }
      plans_.plans.push_back({plan.amount, plan.rate_cap, plan.latency, choice(operation.collective, plan),
                              shape(plans_.shape_begin.back())});
    }
    plans_.sequence_of.push_back(sequence);
    plans_.plan_begin.push_back(plans_.plans.size());
    plans_.shape_begin.push_back(plans_.use_begin.size() - 1);
    return static_cast<std::uint32_t>(plans_.patterns() - 1);
  }

  void check_alive(const PatternUse& use, std::uint32_t communicator) const {
    const std::uint32_t resource = footprints_.places()[footprint_.places[use.place]].resource(use.offset);
    if (cluster_.network().resource_capacity(resource).value() > 0) return;
    infeasible(
        "{} has no capacity left, and communicator {} (first member on {}) has to cross it; repair the link or "
        "place the job elsewhere",
        cluster_.network().resource_name(resource), communicator, gpus_.front().value());
  }

  std::uint32_t choice(Collective collective, const CollectivePlan& plan) {
    const auto [entry, added] =
        choices_.try_emplace({collective, plan.algorithm}, static_cast<std::uint32_t>(plans_.algorithms.size()));
    if (added) plans_.algorithms.push_back({collective, plan.algorithm, plan.reason});
    return entry->second;
  }

  /// The number of the shape of `relative_` among those of the pattern at hand.
  std::uint32_t shape(std::size_t first_shape) {
    const std::size_t shapes = plans_.use_begin.size() - 1 - first_shape;
    for (std::size_t s = 0; s < shapes; ++s) {
      const auto known = plans_.uses.begin() + static_cast<std::ptrdiff_t>(plans_.use_begin[first_shape + s]);
      const auto end = plans_.uses.begin() + static_cast<std::ptrdiff_t>(plans_.use_begin[first_shape + s + 1]);
      if (std::equal(known, end, relative_.begin(), relative_.end())) return static_cast<std::uint32_t>(s);
    }
    plans_.uses.insert(plans_.uses.end(), relative_.begin(), relative_.end());
    plans_.use_begin.push_back(plans_.uses.size());
    return static_cast<std::uint32_t>(shapes);
  }

  const Job& job_;
  const Cluster& cluster_;
  const CommunicationModel& model_;
  CommunicatorPlans& plans_;
  Footprints footprints_;
  std::vector<GpuId> gpus_;  // of the communicator at hand, and its footprint
  Footprint footprint_;
  std::vector<PatternUse> relative_;                                      // of the plan at hand
  std::map<std::vector<std::uint64_t>, std::unique_ptr<Seated>> seated_;  // by form
  std::map<std::vector<std::uint64_t>, std::uint32_t> patterns_;          // by form, slots and sequence
  std::map<std::pair<Collective, std::string_view>, std::uint32_t> choices_;
};

}  // namespace

CommunicatorPlans plan_communicators(const Job& job, std::span<const StreamProgram> programs, const Cluster& cluster,
                                     const CommunicationModel& model) {
  CommunicatorPlans plans;
  plans.entries = slot_entries(job);
  const Sequences sequences(job, programs, plans);
  const std::uint32_t communicators = job.communicators();
  plans.pattern_of.reserve(communicators);
  plans.place_begin.reserve(communicators + std::size_t{1});
  Planner planner(job, cluster, model, plans);
  for (std::uint32_t c = 0; c < communicators; ++c) planner.add(c, common_sequence(job, plans, sequences, c));
  planner.finish();
  return plans;
}

}  // namespace clustersim
