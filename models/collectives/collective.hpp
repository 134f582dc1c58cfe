// Collective operations: what is asked for, the schedule an algorithm makes of it, and the plan that a network
// executes.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "sim/settings.hpp"
#include "sim/units.hpp"
#include "topologies/cluster.hpp"

namespace clustersim {

enum class Collective : std::uint8_t {
  all_reduce,
  all_gather,
  reduce_scatter,
  broadcast,
  reduce,
  all_to_all,
  send_receive
};
std::string_view name(Collective collective);        // "all_reduce"
Collective parse_collective(std::string_view text);  // throws BadInput with the nearest name

/// Bus bandwidth over algorithm bandwidth (nccl-tests, PERFORMANCE.md): 2(p-1)/p, (p-1)/p or 1.
double bus_bandwidth_factor(Collective collective, std::int64_t ranks);

/// Bytes convention, as in nccl-tests "size": all_reduce, broadcast, reduce: the buffer of one rank;
/// all_gather: the gathered result; reduce_scatter, all_to_all: the input buffer of one rank; send_receive: the
/// message.

/// How a library moves a message: short messages travel with a flag in every line, which costs bandwidth and saves
/// time.
struct Protocol {
  std::string_view name;
  double step_share = 1;       // of the step costs below
  double bandwidth_share = 1;  // of the rate that links and GPUs allow
};

/// The constants of the communication model. A resource's usable capacity is its line rate x efficiency(its kind):
/// plans count bytes of payload, so whoever executes them builds its fluid resources with usable capacities.
/// The defaults are fitted to 320 published nccl-tests and rccl-tests points of 1 to 512 nodes (github.com/stas00/
/// ml-engineering; arXiv 2411.13055; cloud vendors' pages): median error 3 % above 128 MiB, 8 % up to there from 4 MiB,
/// 20 % below. Bandwidth shares come from the plateaus on one node and on four or more; step costs from small and
/// middle sizes. NCCL's own cost model has the same form (github.com/NVIDIA/nccl, src/graph/tuning.cc: LL at a quarter
/// of the bandwidth, LL128 at 0.92 or less; a step of a ring 0.5, 1.9 or 3.4 us on NVLink and 2.7, 4.0 or 9.6 us on a
/// network in LL, LL128 and Simple; tree steps with the time of a 256 kB chunk).
struct CommunicationModel {
  // Rings of 8 GPUs reach 0.78 (A100), 0.82 (H100), 0.76 (B200) of the NVLink rate.
  double scale_up_efficiency = 0.8;  // payload share of line rate: NVLink and its kin
  double pcie_efficiency = 0.85;
  // 12.2 of 12.5 GB/s (EDR), 24.0 of 25 (HDR), 48 of 50 (NDR).
  double network_efficiency = 0.96;
  Picoseconds scale_up_step{3'400'000};  // software and synchronization cost of one algorithm step inside a node
  Picoseconds network_step{14'000'000};  // the same between nodes, on top of link latencies
  Picoseconds nvls_step{6'000'000};      // one pass to or from the NVSwitches
  Picoseconds launch{6'000'000};         // fixed cost of starting a collective
  Bytes window{0};                       // per-connection bytes in flight; 0 = unlimited. Caps a flow at window / RTT
  std::string algorithm = "auto";        // force one by name, see choose_algorithm()
  std::uint32_t channels = 0;            // rings per collective; 0 = one per NIC that the members of a node can use
  // 8 x H100 480 GB/s of bus bandwidth where the ring has 370: 1.125 n per link instead of 1.75 n.
  double nvls_efficiency = 0.83;          // in-switch reduction: share of the usable scale-up rate that it reaches
  double nvls_network_efficiency = 0.95;  // in-switch reduction joined to a tree or SHARP between nodes: share it keeps
  std::uint32_t concurrent_peers = 8;     // direct all-to-all: messages of a member in flight at once
  Bytes pipeline_chunk{512 << 10};        // what one round of a pipelined schedule hands to the next at a time
  /// The cheapest is taken for each operation and size. None = full steps and full bandwidth for all sizes.
  std::vector<Protocol> protocols{{"LL", 0.2, 0.25}, {"LL128", 0.4, 0.85}, {"simple", 1, 1}};
  [[nodiscard]] double efficiency(LinkKind kind) const;
  [[nodiscard]] double usable_capacity(const Network& network, std::uint32_t resource) const;  // bytes/s
};

/// The members of a communicator as an algorithm sees them: rank i of the communicator is on members[i].
struct Group {
  const Cluster& cluster;
  std::span<const GpuId> members;
  [[nodiscard]] std::int64_t size() const { return static_cast<std::int64_t>(members.size()); }
};

/// `bytes_per_byte` of the operation's size goes from one member to another, or between a member and a switch that
/// reduces or multicasts (`from` or `to` is kSwitch).
struct Transfer {
  enum class Via : std::uint8_t {
    point_to_point,
    nvswitch_reduce,  // member <-> its node's NVSwitches
    network_reduce,   // member -> the fabric's switches and back: all transfers of a round with the same `tree` are one
                      // reduction, whose result comes back to every one of the senders
  };
  static constexpr std::uint32_t kSwitch = ~0U;
  std::uint32_t from = 0;  // member number
  std::uint32_t to = 0;
  double bytes_per_byte = 0;
  std::uint32_t from_nic = Cluster::kNearest;
  std::uint32_t to_nic = Cluster::kNearest;
  Via via = Via::point_to_point;
  std::uint32_t tree = 0;
  GpuId relay{};  // a GPU of the sender's node that takes the data over NVLink and sends it on (NCCL's PXN); invalid =
                  // none
};

/// Transfers that may run at the same time; the next round needs this one's data. A round is done `repeats` times.
struct Round {
  std::vector<Transfer> transfers;
  std::int64_t repeats = 1;
  /// Length of the rings that `transfers` consists of, one after the other; 0 = no rings. In a ring each transfer hands
  /// on what the transfer before it (cyclically) brought in the repeat before, so a chunk meets the links in turn and
  /// pays their latencies one after the other, not the slowest latency in every step.
  std::uint32_t ring = 0;
};

struct Schedule {
  std::vector<Round> rounds;
  /// Rounds that a pipelined implementation overlaps completely (chunks stream through); false for latency algorithms
  /// whose rounds move everything before the next begins.
  bool pipelined = true;
  /// True where the same thread blocks move all bytes a GPU sends, over NVLink and to the NIC alike (NCCL's ring and
  /// tree kernels, whose channels are sized for the scale-up links): their sum is held to the usable scale-up rate.
  /// Seen in published 4-node H100 sweeps: 357-365 GB/s, the NVLink ring rate, where eight NICs would carry 388.
  bool shared_channels = false;
  double efficiency = 1;  // share of what its links allow that the implementation reaches
  /// A round needs the data of the one before it, so that the pipeline between them has to fill. False where rounds
  /// only say how many messages are under way at once (all-to-all).
  bool rounds_depend = true;
  bool short_protocols = true;  // can use protocols other than the last (in-switch reduction cannot)
  /// The library's own cost model takes the time this many times as long when it chooses an algorithm.
  double handicap = 1;
};

struct CollectiveAlgorithm {
  std::string_view name;  // "ring", "tree", "recursive-doubling", "rabenseifner", "hierarchical", "nvls", "sharp", ...
  std::string_view help;
  bool (*supports)(Collective collective, const Group& group);
  Schedule (*schedule)(Collective collective, const Group& group, const CommunicationModel& model);
  /// Considered by "auto". The others (textbook algorithms that GPU communication libraries do not ship) run when
  /// named.
  bool automatic = true;
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
/// `latency`. Uses are sorted by resource and merged. Coefficients are rounded to 40 bits, so that equal places in the
/// network get equal coefficients whatever the order of summation.
/// A schedule that is not pipelined cannot be one fluid phase exactly; its plan moves the same bytes over the same
/// resources, and rate_cap makes its uncontended time the sum over rounds of the rounds' own times.
struct CollectivePlan {
  std::string_view algorithm;
  Protocol protocol;    // the cheapest for this size
  double handicap = 1;  // see Schedule
  std::string reason;   // why this algorithm
  double amount = 0;
  Picoseconds latency{0};
  double rate_cap = std::numeric_limits<double>::infinity();
  std::vector<PlanUse> uses;
};

/// Which algorithm the model's `algorithm` text means for an operation, and why.
struct AlgorithmChoice {
  const CollectiveAlgorithm* algorithm = nullptr;
  std::string reason;
};
/// "auto" = the cheapest by uncontended time among the automatic algorithms that support the operation. A name forces
/// that algorithm; "all_reduce:tree, all_gather:ring" forces by operation and leaves the others to "auto". As with
/// NCCL_ALGO, a bare name does not concern send_receive and all_to_all unless it can do them.
/// Throws BadInput for unknown names, Infeasible when a forced algorithm cannot do the operation.
AlgorithmChoice choose_algorithm(const Group& group, const CommunicationModel& model, Collective collective,
                                 Bytes bytes);

/// Plans the operations of one group, whose members must outlive it. What does not depend on the size is worked out
/// once per collective.
class GroupPlanner {
 public:
  GroupPlanner(const Group& group, const CommunicationModel& model);
  ~GroupPlanner();
  GroupPlanner(const GroupPlanner&) = delete;
  GroupPlanner& operator=(const GroupPlanner&) = delete;
  /// As plan_collective().
  [[nodiscard]] CollectivePlan plan(Collective collective, Bytes bytes);

 private:
  struct Candidates;
  const Candidates& candidates(Collective collective);

  const Group group_;
  const CommunicationModel& model_;
  std::string group_text_;
  std::map<Collective, std::unique_ptr<Candidates>> candidates_;
};

/// Plans one operation in its schedule's own form with the algorithm of choose_algorithm(). A communicator of one rank
/// gives an empty plan.
CollectivePlan plan_collective(const Group& group, const CommunicationModel& model, Collective collective, Bytes bytes);

/// The plan of a given schedule, overlapped (`pipelined`) or round after round. The schedule's own wish is
/// schedule.pipelined; a stepped plan of a pipelined schedule is what an implementation without overlap would take.
CollectivePlan plan_schedule(const Group& group, const CommunicationModel& model, const Schedule& schedule, Bytes bytes,
                             bool pipelined);

/// Appends the way of one point-to-point or NVSwitch transfer, relay included.
void append_route(const Group& group, const Transfer& transfer, Route& out);

/// Time of a plan on an otherwise empty network: latency + amount / (rate at the tightest resource).
Picoseconds uncontended_time(const CollectivePlan& plan, const Network& network, const CommunicationModel& model);

enum class StepSynchronization : std::uint8_t {
  dependency,  // a member's next transfer waits for the data it forwards and for its own port (LogGP)
  barrier,     // every step of all members starts together
};

/// One-way latency between two members on top of that of the route: a second site, a long detour. Null = none.
using ExtraLatency = std::function<Picoseconds(std::uint32_t from, std::uint32_t to)>;

/// What a step-by-step run saw.
struct StepByStepResult {
  Picoseconds time{0};
  std::uint64_t transfers = 0;
  std::vector<double> carried;  // bytes per Network resource
};

/// Runs the schedule transfer by transfer in the fluid network, one activity each, so that congestion counts.
StepByStepResult run_step_by_step(const Group& group, const CommunicationModel& model, Collective collective,
                                  Bytes bytes, StepSynchronization synchronization,
                                  const ExtraLatency& extra_latency = nullptr);

}  // namespace clustersim
