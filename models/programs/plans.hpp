// What every communicator does over the network: its sequence of operations, each planned once, in flat arrays.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/programs/program.hpp"
#include "models/programs/streams.hpp"

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
  std::uint32_t shape = 0;      // which of the communicator's shapes, from 0
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

/// All communicators of a job. Operations of one communicator with equal resource uses share them: a "shape".
struct CommunicatorPlans {
  std::vector<NetworkOperation> operations;
  std::vector<OperationSequence> sequences;
  std::vector<PlannedAlgorithm> algorithms;
  std::vector<std::uint32_t> sequence_of;  // per communicator
  std::vector<SlotEntry> entries;          // member ranks in ascending order with their slot; Job::member_begin
  std::vector<std::size_t> plan_begin;     // per communicator, plus the end; one plan per distinct operation
  std::vector<OperationPlan> plans;
  std::vector<std::size_t> shape_begin;   // per communicator, plus the end
  std::vector<std::size_t> use_begin{0};  // per shape, plus the end
  std::vector<PlanUse> uses;

  [[nodiscard]] bool active(std::size_t communicator) const {
    return plan_begin[communicator] != plan_begin[communicator + 1];
  }
  [[nodiscard]] std::span<const OperationPlan> plans_of(std::size_t communicator) const {
    return std::span(plans).subspan(plan_begin[communicator], plan_begin[communicator + 1] - plan_begin[communicator]);
  }
  [[nodiscard]] std::span<const PlanUse> uses_of(std::size_t shape) const {
    return std::span(uses).subspan(use_begin[shape], use_begin[shape + 1] - use_begin[shape]);
  }
};

/// Throws BrokenContract when members of a communicator issue different operations on it.
CommunicatorPlans plan_communicators(const Job& job, std::span<const StreamProgram> programs, const Cluster& cluster,
                                     const CommunicationModel& model);

}  // namespace clustersim
