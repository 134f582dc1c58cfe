// What every communicator does over the network: its sequence of operations, planned once for all that are alike, in
// flat arrays.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/programs/program.hpp"
#include "models/programs/streams.hpp"
#include "topologies/footprint.hpp"

namespace clustersim {

/// Operations are matched between members by what they move; how a rank books its waiting is its own affair.
struct NetworkOperation {
  Collective collective = Collective::all_reduce;
  std::int64_t bytes = 0;
  auto operator<=>(const NetworkOperation&) const = default;
};

/// The operations that a communicator executes, in order. `of_position` says which of the distinct ones comes when.
struct OperationSequence {
  std::vector<std::uint32_t> distinct;  // index into CommunicatorPlans::operations, in order of first use
  std::vector<std::uint32_t> of_position;
};

struct OperationPlan {
  double amount = 0;
  double rate_cap = 0;
  Picoseconds latency{0};
  std::uint32_t algorithm = 0;  // index into CommunicatorPlans::algorithms
  std::uint32_t shape = 0;      // which of the pattern's shapes, from 0
};

struct PlannedAlgorithm {
  Collective collective = Collective::all_reduce;
  std::string_view algorithm;
  std::string reason;  // the first plan's
};

struct SlotEntry {
  std::uint32_t rank = 0;
  std::uint32_t slot = 0;
};

/// `coefficient` bytes per byte of plan amount cross one resource of one of the communicator's places.
struct PatternUse {
  std::uint32_t place = 0;   // 0 = the communicator's first
  std::uint32_t offset = 0;  // see Place
  double coefficient = 0;
  bool operator==(const PatternUse&) const = default;
};

/// All communicators of a job. Communicators that execute the same operations, sit alike (see Footprint) and are known
/// to their members by the same slots are planned once: they share a pattern and differ in their places. Operations of
/// a pattern with equal resource uses share them: a "shape".
struct CommunicatorPlans {
  std::vector<NetworkOperation> operations;
  std::vector<OperationSequence> sequences;
  std::vector<PlannedAlgorithm> algorithms;
  std::vector<SlotEntry> entries;         // member ranks in ascending order with their slot; Job::member_begin
  std::vector<std::uint32_t> pattern_of;  // per communicator
  std::vector<std::size_t> place_begin;   // per communicator, plus the end
  std::vector<std::uint32_t> place_list;  // numbers of places
  std::vector<Place> places;
  std::vector<std::uint32_t> place_of_rank;  // per rank: its node
  bool relative = true;  // all communicators sit in nodes and groups of the fabric, with one rank at most on each GPU

  std::vector<std::uint32_t> sequence_of;  // per pattern
  std::vector<std::size_t> plan_begin{0};  // per pattern, plus the end; one plan per distinct operation
  std::vector<OperationPlan> plans;
  std::vector<std::size_t> shape_begin{0};  // per pattern, plus the end
  std::vector<std::size_t> use_begin{0};    // per shape, plus the end
  std::vector<PatternUse> uses;

  [[nodiscard]] std::size_t patterns() const { return sequence_of.size(); }
  [[nodiscard]] bool active(std::size_t communicator) const { return !plans_of(communicator).empty(); }
  [[nodiscard]] const OperationSequence& sequence(std::size_t communicator) const {
    return sequences[sequence_of[pattern_of[communicator]]];
  }
  [[nodiscard]] std::span<const OperationPlan> plans_of(std::size_t communicator) const {
    return pattern_plans(pattern_of[communicator]);
  }
  [[nodiscard]] std::span<const OperationPlan> pattern_plans(std::size_t pattern) const {
    return std::span(plans).subspan(plan_begin[pattern], plan_begin[pattern + 1] - plan_begin[pattern]);
  }
  [[nodiscard]] std::size_t shapes(std::size_t pattern) const {
    return shape_begin[pattern + 1] - shape_begin[pattern];
  }
  [[nodiscard]] std::span<const PatternUse> uses_of(std::size_t pattern, std::size_t shape) const {
    const std::size_t at = shape_begin[pattern] + shape;
    return std::span(uses).subspan(use_begin[at], use_begin[at + 1] - use_begin[at]);
  }
  [[nodiscard]] std::span<const std::uint32_t> places_of(std::size_t communicator) const {
    return std::span(place_list)
        .subspan(place_begin[communicator], place_begin[communicator + 1] - place_begin[communicator]);
  }
  /// Calls visit(shape, place, offset, coefficient) for all that a communicator uses.
  template <class Visit>
  void for_each_use(std::size_t communicator, Visit visit) const {
    const std::size_t pattern = pattern_of[communicator];
    const auto its_places = places_of(communicator);
    for (std::size_t shape = 0; shape < shapes(pattern); ++shape) {
      for (const PatternUse& use : uses_of(pattern, shape)) {
        visit(shape, its_places[use.place], use.offset, use.coefficient);
      }
    }
  }
};

/// Throws BrokenContract when members of a communicator issue different operations on it.
CommunicatorPlans plan_communicators(const Job& job, std::span<const StreamProgram> programs, const Cluster& cluster,
                                     const CommunicationModel& model);

}  // namespace clustersim
