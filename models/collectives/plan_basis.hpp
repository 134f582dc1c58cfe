// A schedule laid over the network: all of its plans but the size of the operation.
#pragma once

#include <vector>

#include "models/collectives/collective.hpp"

namespace clustersim {

struct PlanBasis {
  std::vector<Protocol> protocols;
  std::vector<Picoseconds> latency;  // per protocol, of all rounds
  Picoseconds launch{0};
  /// Bytes of each round's largest transfer, all repeats, per byte of the operation; empty where no pipeline has to
  /// fill.
  std::vector<double> largest;
  Bytes chunk{0};  // that a round of the pipeline hands on at a time, with full steps
  double handicap = 1;
  double edge = 0;              // bytes of the busiest point-to-point edge per byte of the operation
  double seconds_per_byte = 0;  // at full bandwidth share, by all that bounds the rate
  double tightest = 0;          // seconds per byte of the resources alone
  double rate = 0;              // of the plan's amount, by the resources alone; 0 where one has no capacity
  std::vector<PlanUse> uses;    // sorted by resource

  [[nodiscard]] CollectivePlan plan(Bytes bytes) const;
  [[nodiscard]] CollectivePlan without_uses(Bytes bytes) const;
};

PlanBasis lay_schedule(const Group& group, const CommunicationModel& model, const Schedule& schedule, bool pipelined);

}  // namespace clustersim
