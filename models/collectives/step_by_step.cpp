// Runs a schedule transfer by transfer: every transfer is an activity on its real route, started when it may.
#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "models/collectives/collective.hpp"
#include "sim/errors.hpp"
#include "sim/fluid.hpp"
#include "sim/simulation.hpp"

namespace clustersim {
namespace {

// Whoever sends and receives: member m is party m; the NVSwitches of cluster node n are party members + n.
using Party = std::uint32_t;

/// One transfer of a round (all its repeats), or one in-network reduction with many senders.
struct Job {
  std::uint32_t round = 0;
  std::int64_t repeats = 1;
  double bytes = 0;
  Picoseconds latency{0};  // step cost and way, after the last byte has left
  double rate_cap = std::numeric_limits<double>::infinity();
  std::vector<Use> uses;
  std::vector<Party> senders;
  std::vector<Party> receivers;
  std::uint32_t gate = 0;       // repeat k waits for k deliveries of this job: itself, or its predecessor in the ring
  std::uint32_t successor = 0;  // whose gate is this job
  std::int64_t started = 0;
  std::int64_t sent = 0;
  std::int64_t delivered = 0;
  std::uint32_t senders_here = 0;  // senders that have come to this job's round
};

/// What a party has to do in one round before it goes on to its next.
struct Station {
  std::uint32_t round = 0;
  std::int64_t open = 0;             // sends and receipts still to finish
  std::vector<std::uint32_t> sends;  // jobs
};

class StepRunner final : private FluidListener, private EventHandler {
 public:
  StepRunner(const Group& group, const CommunicationModel& model, const Schedule& schedule, Bytes bytes,
             const Protocol& protocol, StepSynchronization synchronization, const ExtraLatency& extra_latency)
      : group_(group),
        model_(model),
        schedule_(schedule),
        share_(schedule.efficiency * protocol.bandwidth_share),
        step_share_(protocol.step_share),
        bytes_(static_cast<double>(bytes.value())),
        barrier_(synchronization == StepSynchronization::barrier),
        extra_latency_(extra_latency),
        fluid_(simulation_) {
    add_resources();
    for (std::uint32_t round = 0; round < schedule.rounds.size(); ++round) add_round(round);
  }

  StepByStepResult run() {
    simulation_.schedule(model_.launch, *this, kBegin);
    simulation_.run();
    StepByStepResult result;
    result.time = simulation_.now();
    for (const Job& job : jobs_) {
      ensure(job.delivered == job.repeats, "a transfer of the schedule never ran");
      result.transfers += static_cast<std::uint64_t>(job.repeats);
    }
    const std::uint32_t resources = group_.cluster.network().resources();
    for (std::uint32_t i = 0; i < resources; ++i) result.carried.push_back(fluid_.carried(ResourceId(i)));
    return result;
  }

 private:
  static constexpr std::uint64_t kBegin = ~std::uint64_t{0};

  void add_resources();
  void add_round(std::uint32_t round);
  void add_job(Job job, const Route& route, Picoseconds step, Picoseconds extra);
  void add_tree(const Round& round, const Transfer& transfer, Job job);
  Station& station(Party party, std::uint32_t round);

  void begin();
  void start_if_ready(std::uint32_t number);
  void arrive(Party party);
  void finish_one(Party party, std::uint32_t round);
  void next_step();
  void on_activity_done(ActivityId id, std::uint64_t payload) override;
  void on_event(std::uint64_t payload) override;

  const Group& group_;
  const CommunicationModel& model_;
  const Schedule& schedule_;
  double share_;       // of the rate its links allow that a transfer reaches
  double step_share_;  // of a full step's cost
  double bytes_;
  bool barrier_;
  const ExtraLatency& extra_latency_;
  Simulation<Picoseconds> simulation_;
  Fluid fluid_;
  std::vector<double> usable_;
  std::vector<ResourceId> channel_of_member_;  // what a GPU's thread blocks can move; invalid = unbounded
  std::vector<Job> jobs_;
  std::vector<std::uint32_t> first_job_;        // per round
  std::vector<std::vector<Station>> stations_;  // per party, in round order
  std::vector<std::uint32_t> at_;               // per party: its current station
  std::uint32_t step_round_ = 0;                // barrier: current round and repeat
  std::int64_t step_repeat_ = -1;
  std::int64_t step_open_ = 0;
};

void StepRunner::add_resources() {
  const Cluster& cluster = group_.cluster;
  const Network& network = cluster.network();
  for (std::uint32_t i = 0; i < network.resources(); ++i) {
    usable_.push_back(model_.usable_capacity(network, i));
    fluid_.add_resource(usable_.back());
  }
  channel_of_member_.resize(group_.members.size());
  stations_.resize(group_.members.size() + cluster.nodes());
  at_.resize(stations_.size(), 0);
  if (!schedule_.shared_channels) return;
  for (std::size_t member = 0; member < group_.members.size(); ++member) {
    const NodeShape& shape = cluster.node(cluster.node_of(group_.members[member])).shape();
    if (shape.gpus < 2 || shape.gpu_link.value() <= 0) continue;
    channel_of_member_[member] = fluid_.add_resource(shape.gpu_link.value() * model_.scale_up_efficiency);
  }
}

Station& StepRunner::station(Party party, std::uint32_t round) {
  std::vector<Station>& all = stations_[party];
  if (all.empty() || all.back().round != round) all.push_back({round, 0, {}});
  return all.back();
}

void StepRunner::add_job(Job job, const Route& route, Picoseconds step, Picoseconds extra) {
  job.latency = Picoseconds(std::llround(static_cast<double>(step.count()) * step_share_)) + route.latency + extra;
  double alone = std::numeric_limits<double>::infinity();
  for (const PathShare& share : route.shares) {
    job.uses.push_back({ResourceId(share.resource), share.share});
    alone = std::min(alone, usable_[share.resource] / share.share);
  }
  if (share_ < 1) job.rate_cap = std::min(job.rate_cap, alone * share_);
  const double round_trip = 2 * to_seconds(route.latency + extra);
  if (model_.window.value() > 0 && round_trip > 0) {
    job.rate_cap = std::min(job.rate_cap, static_cast<double>(model_.window.value()) / round_trip);
  }
  const auto number = static_cast<std::uint32_t>(jobs_.size());
  for (const Party sender : job.senders) {
    Station& here = station(sender, job.round);
    here.open += job.repeats;
    here.sends.push_back(number);
  }
  for (const Party receiver : job.receivers) station(receiver, job.round).open += job.repeats;
  jobs_.push_back(std::move(job));
}

void StepRunner::add_tree(const Round& round, const Transfer& transfer, Job job) {
  std::vector<GpuId> senders;
  for (const Transfer& other : round.transfers) {
    if (other.via != transfer.via || other.tree != transfer.tree) continue;
    senders.push_back(group_.members[other.from]);
    job.senders.push_back(other.from);
  }
  job.receivers = job.senders;
  Route route;
  ensure(group_.cluster.reduction_tree(senders, route), "in-network reduction scheduled where the fabric has none");
  add_job(std::move(job), route, model_.network_step, Picoseconds{0});
}

void StepRunner::add_round(std::uint32_t number) {
  const Round& round = schedule_.rounds[number];
  first_job_.push_back(static_cast<std::uint32_t>(jobs_.size()));
  std::vector<std::uint32_t> trees_done;
  Route route;
  for (std::uint32_t i = 0; i < round.transfers.size(); ++i) {
    const Transfer& transfer = round.transfers[i];
    Job job;
    job.round = number;
    job.repeats = round.repeats;
    job.bytes = transfer.bytes_per_byte * bytes_;
    job.gate = job.successor = static_cast<std::uint32_t>(jobs_.size());
    if (transfer.via == Transfer::Via::network_reduce) {
      if (std::find(trees_done.begin(), trees_done.end(), transfer.tree) != trees_done.end()) continue;
      trees_done.push_back(transfer.tree);
      add_tree(round, transfer, std::move(job));
      continue;
    }
    route.clear();
    append_route(group_, transfer, route);
    const bool in_switch = transfer.via == Transfer::Via::nvswitch_reduce;
    const GpuId gpu = group_.members[transfer.from == Transfer::kSwitch ? transfer.to : transfer.from];
    const auto switches = static_cast<Party>(group_.members.size() + group_.cluster.node_of(gpu));
    job.senders = {transfer.from == Transfer::kSwitch ? switches : transfer.from};
    job.receivers = {transfer.to == Transfer::kSwitch ? switches : transfer.to};
    Picoseconds extra{0};
    bool near = true;
    if (in_switch) {
      for (const PathShare& share : route.shares) {
        job.rate_cap = std::min(job.rate_cap, usable_[share.resource] / share.share * model_.nvls_efficiency);
      }
    } else {
      near = group_.cluster.node_of(gpu) == group_.cluster.node_of(group_.members[transfer.to]);
      if (extra_latency_) extra = extra_latency_(transfer.from, transfer.to);
      const ResourceId channel = channel_of_member_[transfer.from];
      if (channel.valid()) job.uses.push_back({channel, 1.0});
    }
    if (round.ring > 0) {
      const std::uint32_t ring = i / round.ring * round.ring;
      job.gate = first_job_.back() + ring + (i - ring + round.ring - 1) % round.ring;
      job.successor = first_job_.back() + ring + (i - ring + 1) % round.ring;
    }
    const Picoseconds step = in_switch ? model_.nvls_step : near ? model_.scale_up_step : model_.network_step;
    add_job(std::move(job), route, step, extra);
  }
}

void StepRunner::begin() {
  if (barrier_) {
    next_step();
    return;
  }
  for (Party party = 0; party < stations_.size(); ++party) {
    if (!stations_[party].empty()) arrive(party);
  }
}

// The party has come to its current station: its sends of that round may start.
void StepRunner::arrive(Party party) {
  const Station& here = stations_[party][at_[party]];
  for (const std::uint32_t number : here.sends) {
    ++jobs_[number].senders_here;
    start_if_ready(number);
  }
}

// Repeat k starts when the port is free (repeat k-1 has been sent) and the data is there (k deliveries of the gate).
void StepRunner::start_if_ready(std::uint32_t number) {
  Job& job = jobs_[number];
  if (job.started == job.repeats || job.started != job.sent) return;
  if (barrier_) {
    if (job.round != step_round_ || job.started != step_repeat_) return;
  } else if (job.senders_here < job.senders.size() || jobs_[job.gate].delivered < job.started) {
    return;
  }
  ++job.started;
  ActivitySpec spec;
  spec.amount = job.bytes;
  spec.rate_cap = job.rate_cap;
  spec.uses = job.uses;
  fluid_.start(spec, *this, number);
}

void StepRunner::on_activity_done(ActivityId, std::uint64_t payload) {
  const auto number = static_cast<std::uint32_t>(payload);
  Job& job = jobs_[number];
  ++job.sent;
  simulation_.schedule_after(job.latency, *this, number);
  if (barrier_) return;
  for (const Party sender : job.senders) finish_one(sender, job.round);
  start_if_ready(number);
}

void StepRunner::on_event(std::uint64_t payload) {
  if (payload == kBegin) {
    begin();
    return;
  }
  const auto number = static_cast<std::uint32_t>(payload);
  Job& job = jobs_[number];
  ++job.delivered;
  if (barrier_) {
    if (--step_open_ == 0) next_step();
    return;
  }
  start_if_ready(job.successor);
  for (const Party receiver : job.receivers) finish_one(receiver, job.round);
}

void StepRunner::finish_one(Party party, std::uint32_t round) {
  std::vector<Station>& all = stations_[party];
  const auto found = std::lower_bound(all.begin(), all.end(), round, [](const Station& station, std::uint32_t wanted) {
    return station.round < wanted;
  });
  --found->open;
  while (at_[party] < all.size() && all[at_[party]].open == 0) {
    if (++at_[party] < all.size()) arrive(party);
  }
}

// Barrier: everything of the step has been delivered, the next repeat or round starts everywhere.
void StepRunner::next_step() {
  const auto rounds = static_cast<std::uint32_t>(schedule_.rounds.size());
  ++step_repeat_;
  while (step_round_ < rounds && step_repeat_ >= schedule_.rounds[step_round_].repeats) {
    ++step_round_;
    step_repeat_ = 0;
  }
  if (step_round_ == rounds) return;
  const std::uint32_t begin = first_job_[step_round_];
  const auto end = step_round_ + 1 < rounds ? first_job_[step_round_ + 1] : static_cast<std::uint32_t>(jobs_.size());
  step_open_ = static_cast<std::int64_t>(end) - begin;
  for (std::uint32_t number = begin; number < end; ++number) start_if_ready(number);
}

}  // namespace

StepByStepResult run_step_by_step(const Group& group, const CommunicationModel& model, Collective collective,
                                  Bytes bytes, StepSynchronization synchronization, const ExtraLatency& extra_latency) {
  if (group.size() < 2) return {};
  const AlgorithmChoice choice = choose_algorithm(group, model, collective, bytes);
  const Schedule schedule = choice.algorithm->schedule(collective, group, model);
  const Protocol protocol = plan_schedule(group, model, schedule, bytes, schedule.pipelined).protocol;
  StepRunner runner(group, model, schedule, bytes, protocol, synchronization, extra_latency);
  return runner.run();
}

}  // namespace clustersim
