// Turns the transfers of a schedule into uses of resources, latency and rate bounds, and these into plans.
#include "models/collectives/plan_basis.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "models/collectives/use_accumulator.hpp"
#include "sim/errors.hpp"

namespace clustersim {
namespace {

// Equal places must get equal coefficients, or lumping would tell them apart by rounding noise.
double rounded_to_40_bits(double value) {
  int exponent = 0;
  const double mantissa = std::frexp(value, &exponent);
  return std::ldexp(std::round(std::ldexp(mantissa, 40)), exponent - 40);
}

bool same_node(const Group& group, const Transfer& transfer) {
  if (transfer.via != Transfer::Via::point_to_point) return transfer.via == Transfer::Via::nvswitch_reduce;
  return group.cluster.node_of(group.members[transfer.from]) == group.cluster.node_of(group.members[transfer.to]);
}

// Adds up a schedule's rounds, all per byte of the operation.
class PlanBuilder {
 public:
  PlanBuilder(const Group& group, const CommunicationModel& model, const Schedule& schedule, bool pipelined)
      : group_(group),
        model_(model),
        schedule_(schedule),
        pipelined_(pipelined),
        protocols_(model.protocols),
        sent_(group.members.size(), 0.0) {
    if (protocols_.empty()) protocols_.push_back({"simple", 1, 1});
    if (!schedule.short_protocols) protocols_.erase(protocols_.begin(), protocols_.end() - 1);
    latency_.resize(protocols_.size(), Picoseconds{0});
  }

  void add(const Round& round);
  PlanBasis finish();

 private:
  /// What a transfer costs besides its bytes: a step, which depends on the protocol, and the way.
  struct Cost {
    Picoseconds step;
    Picoseconds way;
    [[nodiscard]] Picoseconds with(const Protocol& protocol) const {
      return Picoseconds(std::llround(static_cast<double>(step.count()) * protocol.step_share)) + way;
    }
  };

  void add(const Transfer& transfer, const Round& round);
  void add_network_reduction(const Transfer& transfer, const Round& round);
  [[nodiscard]] Picoseconds round_latency(const Round& round, const Protocol& protocol);
  [[nodiscard]] double tightest(std::span<const PlanUse> uses) const;  // seconds per byte of the operation
  [[nodiscard]] double busiest_edge();
  [[nodiscard]] double shared_channel_seconds() const;
  [[nodiscard]] double seconds_per_byte(double tightest_of_all) const;

  const Group& group_;
  const CommunicationModel& model_;
  const Schedule& schedule_;
  bool pipelined_;
  std::vector<Protocol> protocols_;
  UseAccumulator round_uses_;
  UseAccumulator total_uses_;
  UseAccumulator switch_uses_;                           // by in-switch reduction, whose rate has its own share
  std::vector<std::pair<std::uint64_t, double>> edges_;  // (from, to), bytes
  std::vector<double> sent_;                             // per member, point to point
  std::vector<Cost> costs_;                              // per transfer of the round
  std::vector<Picoseconds> protocol_costs_;              // the same, with one protocol
  std::vector<double> largest_;                          // per round: bytes of its largest transfer, all repeats
  std::vector<std::uint32_t> tree_done_;
  std::vector<Picoseconds> latency_;  // per protocol
  double stepped_seconds_ = 0;        // sum of the rounds' transfer times
  double window_seconds_ = 0;         // slowest edge under the window
  Route route_;
};

void PlanBuilder::add(const Round& round) {
  round_uses_.clear();
  costs_.clear();
  tree_done_.clear();
  largest_.push_back(0);
  for (const Transfer& transfer : round.transfers) add(transfer, round);
  const auto repeats = static_cast<double>(round.repeats);
  if (!pipelined_) stepped_seconds_ += repeats * tightest(round_uses_.uses());
  for (const PlanUse& use : round_uses_.uses()) total_uses_.add(use.resource, use.coefficient * repeats);
  for (std::size_t i = 0; i < protocols_.size(); ++i) latency_[i] += round_latency(round, protocols_[i]);
}

void PlanBuilder::add(const Transfer& transfer, const Round& round) {
  const double bytes = transfer.bytes_per_byte * static_cast<double>(round.repeats);
  largest_.back() = std::max(largest_.back(), bytes);
  edges_.emplace_back((std::uint64_t{transfer.from} << 32U) | transfer.to, bytes);
  if (transfer.via == Transfer::Via::network_reduce) {
    add_network_reduction(transfer, round);
    return;
  }
  route_.clear();
  append_route(group_, transfer, route_);
  for (const PathShare& share : route_.shares) round_uses_.add(share.resource, transfer.bytes_per_byte * share.share);
  if (transfer.via == Transfer::Via::nvswitch_reduce) {
    costs_.push_back({model_.nvls_step, route_.latency});
    for (const PathShare& share : route_.shares) switch_uses_.add(share.resource, bytes * share.share);
    return;
  }
  costs_.push_back({same_node(group_, transfer) ? model_.scale_up_step : model_.network_step, route_.latency});
  sent_[transfer.from] += bytes;
  if (model_.window.value() > 0 && route_.latency.count() > 0) {
    const double round_trip = 2 * to_seconds(route_.latency);
    window_seconds_ = std::max(window_seconds_, bytes * round_trip / static_cast<double>(model_.window.value()));
  }
}

void PlanBuilder::add_network_reduction(const Transfer& transfer, const Round& round) {
  if (std::find(tree_done_.begin(), tree_done_.end(), transfer.tree) != tree_done_.end()) return;
  tree_done_.push_back(transfer.tree);
  std::vector<GpuId> senders;
  for (const Transfer& other : round.transfers) {
    if (other.via == transfer.via && other.tree == transfer.tree) senders.push_back(group_.members[other.from]);
  }
  route_.clear();
  ensure(group_.cluster.reduction_tree(senders, route_), "in-network reduction planned where the fabric has none");
  for (const PathShare& share : route_.shares) round_uses_.add(share.resource, transfer.bytes_per_byte * share.share);
  costs_.push_back({model_.network_step, route_.latency});
}

// In a ring a chunk meets the edges in turn: R repeats over L edges are R / L whole turns and, at worst, the dearest
// R mod L consecutive edges.
Picoseconds PlanBuilder::round_latency(const Round& round, const Protocol& protocol) {
  if (costs_.empty()) return Picoseconds{0};
  std::vector<Picoseconds>& costs = protocol_costs_;
  costs.clear();
  for (const Cost& cost : costs_) costs.push_back(cost.with(protocol));
  if (round.ring == 0) return round.repeats * *std::max_element(costs.begin(), costs.end());
  const std::size_t length = round.ring;
  const auto rest = static_cast<std::size_t>(round.repeats) % length;
  Picoseconds worst{0};
  for (std::size_t begin = 0; begin + length <= costs.size(); begin += length) {
    Picoseconds turn{0};
    Picoseconds window{0};
    for (std::size_t i = 0; i < length; ++i) {
      turn += costs[begin + i];
      if (i < rest) window += costs[begin + i];
    }
    Picoseconds dearest = window;
    for (std::size_t i = 0; i + 1 < length; ++i) {
      window += costs[begin + (i + rest) % length] - costs[begin + i];
      dearest = std::max(dearest, window);
    }
    worst = std::max(worst, round.repeats / static_cast<std::int64_t>(length) * turn + dearest);
  }
  return worst;
}

double PlanBuilder::tightest(std::span<const PlanUse> uses) const {
  double seconds = 0;
  for (const PlanUse& use : uses) {
    seconds = std::max(seconds, use.coefficient / model_.usable_capacity(group_.cluster.network(), use.resource));
  }
  return seconds;
}

double PlanBuilder::busiest_edge() {
  std::sort(edges_.begin(), edges_.end());
  double busiest = 0;
  double sum = 0;
  for (std::size_t i = 0; i < edges_.size(); ++i) {
    sum = i > 0 && edges_[i].first == edges_[i - 1].first ? sum + edges_[i].second : edges_[i].second;
    busiest = std::max(busiest, sum);
  }
  return rounded_to_40_bits(busiest);
}

double PlanBuilder::shared_channel_seconds() const {
  double seconds = 0;
  for (std::size_t member = 0; member < sent_.size(); ++member) {
    const NodeShape& shape = group_.cluster.node(group_.cluster.node_of(group_.members[member])).shape();
    if (shape.gpus < 2 || shape.gpu_link.value() <= 0) continue;
    seconds = std::max(seconds, sent_[member] / (shape.gpu_link.value() * model_.scale_up_efficiency));
  }
  return seconds;
}

// All that bounds the rate, at full bandwidth share.
double PlanBuilder::seconds_per_byte(double tightest_of_all) const {
  double seconds = std::max(
      {tightest_of_all, stepped_seconds_, window_seconds_, tightest(switch_uses_.uses()) / model_.nvls_efficiency});
  if (schedule_.shared_channels && pipelined_) seconds = std::max(seconds, shared_channel_seconds());
  return seconds / schedule_.efficiency;
}

PlanBasis PlanBuilder::finish() {
  PlanBasis basis;
  basis.handicap = schedule_.handicap;
  basis.chunk = model_.pipeline_chunk;
  basis.launch = model_.launch;
  basis.latency = std::move(latency_);
  basis.protocols = std::move(protocols_);
  if (pipelined_ && schedule_.rounds_depend) basis.largest = std::move(largest_);
  basis.tightest = tightest(total_uses_.uses());
  basis.seconds_per_byte = seconds_per_byte(basis.tightest);
  basis.edge = busiest_edge();
  if (basis.edge <= 0) return basis;
  basis.uses.assign(total_uses_.uses().begin(), total_uses_.uses().end());
  std::sort(basis.uses.begin(), basis.uses.end(),
            [](const PlanUse& a, const PlanUse& b) { return a.resource < b.resource; });
  basis.rate = std::numeric_limits<double>::infinity();
  for (PlanUse& use : basis.uses) {
    use.coefficient = rounded_to_40_bits(use.coefficient / basis.edge);
    const double capacity = model_.usable_capacity(group_.cluster.network(), use.resource);
    basis.rate = std::min(basis.rate, std::max(capacity, 0.0) / use.coefficient);
  }
  return basis;
}

// The next round of a pipeline starts when the first chunk is through. A round's largest transfer streams during all of
// the transfer time, so a chunk takes the chunk's share of its bytes, and all of the time where the bytes are fewer.
double fill_seconds(const PlanBasis& basis, double seconds, Bytes bytes, const Protocol& protocol) {
  const double chunk = static_cast<double>(basis.chunk.value()) * protocol.step_share;
  double fill = 0;
  for (std::size_t i = 0; i + 1 < basis.largest.size(); ++i) {
    fill += std::min(1.0, chunk / (basis.largest[i] * static_cast<double>(bytes.value()))) * seconds;
  }
  return fill;
}

}  // namespace

CollectivePlan PlanBasis::without_uses(Bytes bytes) const {
  CollectivePlan plan;
  plan.handicap = handicap;
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < protocols.size(); ++i) {
    const double transfer = static_cast<double>(bytes.value()) * seconds_per_byte / protocols[i].bandwidth_share;
    const double fill = bytes.value() > 0 ? fill_seconds(*this, transfer, bytes, protocols[i]) : 0;
    const double total = to_seconds(latency[i]) + fill + transfer;
    if (total >= best && i > 0) continue;
    best = total;
    plan.protocol = protocols[i];
    plan.latency = launch + latency[i] + from_seconds<Picoseconds>(std::isfinite(fill) ? fill : 0);
  }
  if (edge <= 0) return plan;
  plan.amount = edge * static_cast<double>(bytes.value());
  // A cap only where something other than the resources binds, so that it does not hold the rate when they are
  // upgraded.
  const double capped = seconds_per_byte / plan.protocol.bandwidth_share;
  if (capped > tightest * (1 + 1e-12) && std::isfinite(capped)) plan.rate_cap = rounded_to_40_bits(edge / capped);
  return plan;
}

CollectivePlan PlanBasis::plan(Bytes bytes) const {
  CollectivePlan plan = without_uses(bytes);
  if (edge > 0) plan.uses = uses;
  return plan;
}

PlanBasis lay_schedule(const Group& group, const CommunicationModel& model, const Schedule& schedule, bool pipelined) {
  PlanBuilder builder(group, model, schedule, pipelined);
  for (const Round& round : schedule.rounds) builder.add(round);
  return builder.finish();
}

}  // namespace clustersim
