// Collective operations by name, their plans, and the choice of an algorithm.
#include "models/collectives/collective.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "models/collectives/layout.hpp"
#include "models/collectives/use_accumulator.hpp"
#include "sim/errors.hpp"

namespace clustersim {
namespace {

constexpr std::array<std::string_view, 7> kCollectiveNames{"all_reduce", "all_gather", "reduce_scatter", "broadcast",
                                                           "reduce",     "all_to_all", "send_receive"};

double usable(const Network& network, const CommunicationModel& model, std::uint32_t resource) {
  return network.resource_capacity(resource).value() * model.efficiency(network.resource_kind(resource));
}

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

// Turns the transfers of a schedule into uses of resources, latency and rate caps; all per byte of the operation.
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
  CollectivePlan finish(Bytes bytes);

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
  [[nodiscard]] double seconds_per_byte() const;
  [[nodiscard]] double fill_seconds(double seconds, Bytes bytes, const Protocol& protocol) const;

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
    seconds = std::max(seconds, use.coefficient / usable(group_.cluster.network(), model_, use.resource));
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
double PlanBuilder::seconds_per_byte() const {
  double seconds = std::max({tightest(total_uses_.uses()), stepped_seconds_, window_seconds_,
                             tightest(switch_uses_.uses()) / model_.nvls_efficiency});
  if (schedule_.shared_channels && pipelined_) seconds = std::max(seconds, shared_channel_seconds());
  return seconds / schedule_.efficiency;
}

// The next round of a pipeline starts when the first chunk is through. A round's largest transfer streams during all of
// the transfer time, so a chunk takes the chunk's share of its bytes, and all of the time where the bytes are fewer.
double PlanBuilder::fill_seconds(double seconds, Bytes bytes, const Protocol& protocol) const {
  if (!pipelined_ || !schedule_.rounds_depend || largest_.empty()) return 0;
  const double chunk = static_cast<double>(model_.pipeline_chunk.value()) * protocol.step_share;
  double fill = 0;
  for (std::size_t i = 0; i + 1 < largest_.size(); ++i) {
    fill += std::min(1.0, chunk / (largest_[i] * static_cast<double>(bytes.value()))) * seconds;
  }
  return fill;
}

CollectivePlan PlanBuilder::finish(Bytes bytes) {
  CollectivePlan plan;
  plan.handicap = schedule_.handicap;
  const double per_byte = seconds_per_byte();
  double best = std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < protocols_.size(); ++i) {
    const double transfer = static_cast<double>(bytes.value()) * per_byte / protocols_[i].bandwidth_share;
    const double fill = bytes.value() > 0 ? fill_seconds(transfer, bytes, protocols_[i]) : 0;
    const double total = to_seconds(latency_[i]) + fill + transfer;
    if (total >= best && i > 0) continue;
    best = total;
    plan.protocol = protocols_[i];
    plan.latency = model_.launch + latency_[i] + from_seconds<Picoseconds>(std::isfinite(fill) ? fill : 0);
  }
  const double edge = busiest_edge();
  if (edge <= 0) return plan;
  plan.amount = edge * static_cast<double>(bytes.value());
  plan.uses.assign(total_uses_.uses().begin(), total_uses_.uses().end());
  std::sort(plan.uses.begin(), plan.uses.end(),
            [](const PlanUse& a, const PlanUse& b) { return a.resource < b.resource; });
  for (PlanUse& use : plan.uses) use.coefficient = rounded_to_40_bits(use.coefficient / edge);
  // A cap only where something other than the resources binds, so that it does not hold the rate when they are
  // upgraded.
  const double capped = per_byte / plan.protocol.bandwidth_share;
  if (capped > tightest(total_uses_.uses()) * (1 + 1e-12) && std::isfinite(capped)) {
    plan.rate_cap = rounded_to_40_bits(edge / capped);
  }
  return plan;
}

std::vector<std::string> algorithm_names() {
  std::vector<std::string> names{"auto"};
  for (const CollectiveAlgorithm& algorithm : collective_algorithms()) names.emplace_back(algorithm.name);
  return names;
}

std::string group_text(const Group& group) {
  const GroupLayout layout(group, {});
  if (layout.nodes() == 1) return fmt::format("{} GPUs of one node", group.size());
  return fmt::format("{} GPUs on {} nodes", group.size(), layout.nodes());
}

CollectivePlan plan_with(const CollectiveAlgorithm& algorithm, const Group& group, const CommunicationModel& model,
                         Collective collective, Bytes bytes) {
  const Schedule schedule = algorithm.schedule(collective, group, model);
  CollectivePlan plan = plan_schedule(group, model, schedule, bytes, schedule.pipelined);
  plan.algorithm = algorithm.name;
  return plan;
}

struct Candidate {
  const CollectiveAlgorithm* algorithm = nullptr;
  CollectivePlan plan;
  Picoseconds time{0};
  double weighed = 0;  // seconds as the library's cost model sees them
};

// The plan carries its reason.
Candidate cheapest(const Group& group, const CommunicationModel& model, Collective collective, Bytes bytes) {
  std::vector<Candidate> candidates;
  for (const CollectiveAlgorithm& algorithm : collective_algorithms()) {
    if (!algorithm.automatic || !algorithm.supports(collective, group)) continue;
    CollectivePlan plan = plan_with(algorithm, group, model, collective, bytes);
    const Picoseconds time = uncontended_time(plan, group.cluster.network(), model);
    candidates.push_back({&algorithm, std::move(plan), time, 0});
    candidates.back().weighed = to_seconds(time) * candidates.back().plan.handicap;
  }
  if (candidates.empty()) infeasible("no algorithm for {} over {}", name(collective), group_text(group));
  std::stable_sort(candidates.begin(), candidates.end(),
                   [](const Candidate& a, const Candidate& b) { return a.weighed < b.weighed; });
  std::string& reason = candidates.front().plan.reason;
  if (candidates.size() == 1) {
    reason = fmt::format("the only automatic algorithm for {} over {}", name(collective), group_text(group));
    return std::move(candidates.front());
  }
  for (const Candidate& candidate : candidates) {
    reason += fmt::format("{}{} {}", reason.empty() ? "" : ", ", candidate.plan.algorithm,
                          format_duration(to_seconds(candidate.time)));
  }
  reason += fmt::format(" at {} over {}", format(bytes), group_text(group));
  return std::move(candidates.front());
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

// What the model's text asks for this operation; null = the cheapest.
const CollectiveAlgorithm* forced_algorithm(std::string_view text, Collective collective, const Group& group) {
  const CollectiveAlgorithm* found = nullptr;
  while (!text.empty()) {
    const std::size_t comma = text.find(',');
    const std::string_view item = trimmed(text.substr(0, comma));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    const std::size_t colon = item.find(':');
    const bool bare = colon == std::string_view::npos;
    if (!bare && parse_collective(trimmed(item.substr(0, colon))) != collective) continue;
    const std::string_view wanted = bare ? item : trimmed(item.substr(colon + 1));
    if (wanted == "auto") continue;
    const CollectiveAlgorithm& algorithm = find_algorithm(wanted);
    const bool point_to_point = collective == Collective::send_receive || collective == Collective::all_to_all;
    if (bare && point_to_point && !algorithm.supports(collective, group)) continue;
    found = &algorithm;
  }
  return found;
}

// Null when the choice is left to the estimate.
const CollectiveAlgorithm* checked_forced(const Group& group, const CommunicationModel& model, Collective collective) {
  if (model.algorithm == "auto") return nullptr;
  const CollectiveAlgorithm* forced = forced_algorithm(model.algorithm, collective, group);
  if (forced == nullptr || forced->supports(collective, group)) return forced;
  std::vector<std::string_view> others;
  for (const CollectiveAlgorithm& other : collective_algorithms()) {
    if (other.supports(collective, group)) others.push_back(other.name);
  }
  infeasible(
      "algorithm {} cannot do {} over {}; these can: {} (to force it for one operation only, write for example "
      "\"all_reduce:{}\")",
      forced->name, name(collective), group_text(group), fmt::join(others, ", "), forced->name);
}

constexpr std::string_view kForced = "asked for by name";

}  // namespace

std::string_view name(Collective collective) { return kCollectiveNames[static_cast<std::size_t>(collective)]; }

Collective parse_collective(std::string_view text) {
  const auto found = std::find(kCollectiveNames.begin(), kCollectiveNames.end(), text);
  if (found != kCollectiveNames.end()) return static_cast<Collective>(found - kCollectiveNames.begin());
  const std::vector<std::string> names(kCollectiveNames.begin(), kCollectiveNames.end());
  bad_input("collective \"{}\" is not known: expected one of {}{}", text, fmt::join(names, ", "),
            did_you_mean(text, names));
}

double bus_bandwidth_factor(Collective collective, std::int64_t ranks) {
  const auto p = static_cast<double>(ranks);
  switch (collective) {
    case Collective::all_reduce:
      return 2 * (p - 1) / p;
    case Collective::all_gather:
    case Collective::reduce_scatter:
    case Collective::all_to_all:
      return (p - 1) / p;
    case Collective::broadcast:
    case Collective::reduce:
    case Collective::send_receive:
      return 1;
  }
  throw BrokenContract("unknown collective");
}

double CommunicationModel::efficiency(LinkKind kind) const {
  switch (kind) {
    case LinkKind::nvlink:
      return scale_up_efficiency;
    case LinkKind::pcie:
    case LinkKind::cpu_interconnect:
      return pcie_efficiency;
    case LinkKind::infiniband:
    case LinkKind::ethernet:
    case LinkKind::torus_link:
      return network_efficiency;
  }
  throw BrokenContract("unknown link kind");
}

const CollectiveAlgorithm& find_algorithm(std::string_view name, const SourceLocation& where) {
  for (const CollectiveAlgorithm& algorithm : collective_algorithms()) {
    if (algorithm.name == name) return algorithm;
  }
  const std::vector<std::string> names = algorithm_names();
  bad_input("{}{}collective algorithm \"{}\" is not known: expected one of {}{}", where.text(),
            where.text().empty() ? "" : ": ", name, fmt::join(names, ", "), did_you_mean(name, names));
}

namespace {

// A GPU of the sender's node whose nearest NIC is on the receiver's rail, for fabrics without a way between rails.
GpuId relay_on_rail(const Group& group, const Transfer& transfer) {
  const Cluster& cluster = group.cluster;
  const GpuId from = group.members[transfer.from];
  const GpuId to = group.members[transfer.to];
  const std::uint32_t node = cluster.node_of(from);
  const NodeTemplate& here = cluster.node(node);
  if (node == cluster.node_of(to) || here.shape().nics == 0) return {};
  const std::uint32_t rail = transfer.to_nic != Cluster::kNearest
                                 ? transfer.to_nic
                                 : cluster.node(cluster.node_of(to)).nearest_nic(cluster.local_index(to));
  for (std::uint32_t gpu = 0; gpu < here.shape().gpus; ++gpu) {
    if (here.nearest_nic(gpu) == rail && cluster.gpu(node, gpu) != from) return cluster.gpu(node, gpu);
  }
  return {};
}

void append_relayed(const Group& group, const Transfer& transfer, GpuId relay, Route& out) {
  group.cluster.route(group.members[transfer.from], relay, out);
  group.cluster.route(relay, group.members[transfer.to], out, Cluster::kNearest, transfer.to_nic);
}

}  // namespace

void append_route(const Group& group, const Transfer& transfer, Route& out) {
  const Cluster& cluster = group.cluster;
  if (transfer.via == Transfer::Via::nvswitch_reduce) {
    const bool found = transfer.to == Transfer::kSwitch ? cluster.route_to_nvswitch(group.members[transfer.from], out)
                                                        : cluster.route_from_nvswitch(group.members[transfer.to], out);
    ensure(found, "in-switch reduction planned in a node without NVSwitches");
    return;
  }
  ensure(transfer.via == Transfer::Via::point_to_point, "a network reduction has no route of its own");
  if (transfer.relay.valid()) {
    append_relayed(group, transfer, transfer.relay, out);
    return;
  }
  const Route before = out;
  try {
    cluster.route(group.members[transfer.from], group.members[transfer.to], out, transfer.from_nic, transfer.to_nic);
  } catch (const Infeasible&) {
    const GpuId relay = relay_on_rail(group, transfer);
    if (!relay.valid()) throw;
    out = before;
    append_relayed(group, transfer, relay, out);
  }
}

CollectivePlan plan_schedule(const Group& group, const CommunicationModel& model, const Schedule& schedule, Bytes bytes,
                             bool pipelined) {
  PlanBuilder builder(group, model, schedule, pipelined);
  for (const Round& round : schedule.rounds) builder.add(round);
  return builder.finish(bytes);
}

CollectivePlan plan_collective(const Group& group, const CommunicationModel& model, Collective collective,
                               Bytes bytes) {
  if (group.size() < 2) {
    CollectivePlan empty;
    empty.algorithm = "none";
    empty.reason = "one rank has nobody to talk to";
    return empty;
  }
  const CollectiveAlgorithm* forced = checked_forced(group, model, collective);
  if (forced == nullptr) return cheapest(group, model, collective, bytes).plan;
  CollectivePlan plan = plan_with(*forced, group, model, collective, bytes);
  plan.reason = kForced;
  return plan;
}

AlgorithmChoice choose_algorithm(const Group& group, const CommunicationModel& model, Collective collective,
                                 Bytes bytes) {
  const CollectiveAlgorithm* forced = checked_forced(group, model, collective);
  if (forced != nullptr) return {forced, std::string(kForced)};
  Candidate best = cheapest(group, model, collective, bytes);
  return {best.algorithm, std::move(best.plan.reason)};
}

Picoseconds uncontended_time(const CollectivePlan& plan, const Network& network, const CommunicationModel& model) {
  if (plan.amount <= 0) return plan.latency;
  double rate = plan.rate_cap;
  for (const PlanUse& use : plan.uses) {
    const double capacity = usable(network, model, use.resource);
    if (!(capacity > 0)) {
      infeasible("{} has no capacity left, and {} needs it; repair the link or leave its GPUs out",
                 network.resource_name(use.resource), plan.algorithm);
    }
    rate = std::min(rate, capacity / use.coefficient);
  }
  ensure(std::isfinite(rate), "a plan that moves bytes without using anything");
  return plan.latency + from_seconds<Picoseconds>(plan.amount / rate);
}

}  // namespace clustersim
