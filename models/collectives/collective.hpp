// Collective operations: what is asked for, the schedule an algorithm makes of it, and the plan that a network executes.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/settings.hpp"
#include "sim/units.hpp"
#include "topologies/cluster.hpp"

namespace clustersim {

enum class Collective : std::uint8_t { all_reduce, all_gather, reduce_scatter, broadcast, reduce, all_to_all, send_receive };
std::string_view name(Collective collective);               // "all_reduce"
Collective parse_collective(std::string_view text);         // throws BadInput with the nearest name

/// Bus bandwidth over algorithm bandwidth (nccl-tests, PERFORMANCE.md): 2(p-1)/p, (p-1)/p or 1.
double bus_bandwidth_factor(Collective collective, std::int64_t ranks);

/// Bytes convention, as in nccl-tests "size": all_reduce, broadcast, reduce: the buffer of one rank;
/// all_gather: the gathered result; reduce_scatter, all_to_all: the input buffer of one rank; send_receive: the message.

/// The constants of the communication model.
struct CommunicationModel {
  double scale_up_efficiency = 0.8;       // payload share of line rate: NVLink and its kin
  double pcie_efficiency = 0.85;
  double network_efficiency = 0.97;
  Picoseconds scale_up_step{1'500'000};   // software and synchronization cost of one algorithm step inside a node
  Picoseconds network_step{4'000'000};    // the same between nodes, on top of link latencies
  Picoseconds launch{6'000'000};          // fixed cost of starting a collective
  Bytes window{0};                        // per-connection bytes in flight; 0 = unlimited. Caps a flow at window / RTT
  std::string algorithm = "auto";         // force one by name
  std::uint32_t channels = 0;             // rings per collective; 0 = one per NIC of the node (at least one per GPU ring)
  [[nodiscard]] double efficiency(LinkKind kind) const;
};

/// The members of a communicator as an algorithm sees them: rank i of the communicator is on members[i].
struct Group {
  const Cluster& cluster;
  std::span<const GpuId> members;
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(members.size()); }
};

/// `bytes_per_byte` of the operation's size goes from one member to another, or through a switch.
struct Transfer {
  enum class Via : std::uint8_t { point_to_point, nvswitch_reduce, network_reduce };
  std::uint32_t from = 0;  // member number
  std::uint32_t to = 0;
  double bytes_per_byte = 0;
  std::uint32_t from_nic = Cluster::kNearest;
  std::uint32_t to_nic = Cluster::kNearest;
  Via via = Via::point_to_point;
};

/// Transfers that may run at the same time; the next round needs this one's data. A round is done `repeats` times.
struct Round {
  std::vector<Transfer> transfers;
  std::int64_t repeats = 1;
};

struct Schedule {
  std::vector<Round> rounds;
  /// Rounds that a pipelined implementation overlaps completely (chunks stream through); false for latency algorithms
  /// whose rounds move everything before the next begins.
  bool pipelined = true;
};

struct CollectiveAlgorithm {
  std::string_view name;   // "ring", "tree", "recursive-doubling", "rabenseifner", "hierarchical", "nvls", "sharp", ...
  std::string_view help;
  bool (*supports)(Collective collective, const Group& group);
  Schedule (*schedule)(Collective collective, const Group& group, const CommunicationModel& model);
};
std::span<const CollectiveAlgorithm> collective_algorithms();  // models/collectives/all.cpp
const CollectiveAlgorithm& find_algorithm(std::string_view name, const SourceLocation& where = {});

/// `coefficient` bytes cross `resource` (Network resource number) per byte of plan amount.
struct PlanUse {
  std::uint32_t resource;
  double coefficient;
  bool operator==(const PlanUse&) const = default;
};

/// One fluid phase: `amount` bytes (those of the busiest point-to-point edge) at a rate bounded by the uses, after
/// `latency`. Uses are sorted by resource and merged.
struct CollectivePlan {
  std::string_view algorithm;
  std::string reason;              // why this algorithm
  double amount = 0;
  Picoseconds latency{0};
  double rate_cap = std::numeric_limits<double>::infinity();
  std::vector<PlanUse> uses;
};

/// Plans one operation in pipelined form with the model's algorithm ("auto" = the cheapest by estimate() among those
/// that support it, with the reason). A communicator of one rank gives an empty plan.
CollectivePlan plan_collective(const Group& group, const CommunicationModel& model, Collective collective, Bytes bytes);

/// Time of a plan on an otherwise empty network: latency + amount / (rate at the tightest resource).
Picoseconds uncontended_time(const CollectivePlan& plan, const Network& network, const CommunicationModel& model);

/// Runs the schedule transfer by transfer in the fluid network.
enum class StepSynchronization : std::uint8_t {
  dependency,  // a member's next transfer waits for the data it forwards and for its own port (LogGP)
  barrier,     // every step of all members starts together
};
Picoseconds run_step_by_step(const Group& group, const CommunicationModel& model, Collective collective, Bytes bytes,
                             StepSynchronization synchronization);

}  // namespace clustersim
