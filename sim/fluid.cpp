// Activities in time: latency first, then a share of what limits them, then the listener is told.
#include "sim/fluid.hpp"

#include <algorithm>
#include <cmath>

#include "sim/bottlenecks.hpp"
#include "sim/first_seen.hpp"

namespace clustersim {

struct Fluid::Implementation {
  enum class State : std::uint8_t { free, waiting, running, moved };  // moved: has all it wanted, to be told
  enum EventKind : std::uint64_t { latency_over = 0, ends_due = 1, deliver = 2 };

  struct Activity {
    double amount = 0;
    std::uint64_t sequence = 0;
    std::uint64_t payload = 0;
    FluidListener* listener = nullptr;
    EventId latency_event;
    std::uint32_t generation = 0;
    State state = State::free;
  };
  struct Due {
    std::uint64_t sequence;
    std::uint32_t slot;
    std::uint32_t generation;
  };

  Implementation(Simulation<Picoseconds>& simulation, EventHandler& handler, InstantHook& hook)
      : simulation_(simulation), handler_(handler), hook_(hook) {}

  [[nodiscard]] std::int64_t now() const { return simulation_.now().count(); }
  EventId schedule(std::int64_t time, EventKind kind, std::uint32_t slot) {
    const auto payload = (static_cast<std::uint64_t>(kind) << 32U) | slot;
    return simulation_.schedule(Picoseconds(time), handler_, payload);
  }

  [[nodiscard]] bool alive(ActivityId id) const {
    return id.slot < activities_.size() && activities_[id.slot].state != State::free &&
           activities_[id.slot].generation == id.generation;
  }
  const Activity& checked(ActivityId id) const {
    ensure(alive(id), "activity {} (generation {}) has ended", id.slot, id.generation);
    return activities_[id.slot];
  }
  std::uint32_t checked(ResourceId id) const {
    ensure(id.valid() && id.index() < bottlenecks_.resources(), "resource {} does not exist", id.value());
    return id.value();
  }

  void ask_for_solve() {
    if (asked_) return;
    asked_ = true;
    simulation_.at_instant_end(hook_);
  }

  // ---- the life of an activity ----
  std::uint32_t take_slot() {
    if (free_slots_.empty()) {
      activities_.emplace_back();
      return static_cast<std::uint32_t>(activities_.size() - 1);
    }
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }

  /// The uses as shares, a resource named twice added up.
  void copy_uses(std::span<const Use> uses) {
    shares_.clear();
    used_.clear();
    used_.grow(bottlenecks_.resources());
    for (const Use& use : uses) {
      ensure(use.coefficient > 0 && std::isfinite(use.coefficient), "coefficient {} of a use", use.coefficient);
      const std::uint32_t resource = checked(use.resource);
      const std::uint32_t at = used_.number(resource);
      if (at == shares_.size()) shares_.push_back({resource, 0});
      shares_[at].coefficient += use.coefficient;
    }
  }

  ActivityId start(const ActivitySpec& spec, FluidListener& listener, std::uint64_t payload) {
    ensure(spec.amount >= 0 && std::isfinite(spec.amount), "activity with amount {}", spec.amount);
    ensure(spec.weight > 0 && std::isfinite(spec.weight), "activity with weight {}", spec.weight);
    ensure(spec.rate_cap > 0, "activity with rate cap {}", spec.rate_cap);
    ensure(spec.latency.count() >= 0, "activity with latency {} ps", spec.latency.count());
    ensure(!spec.uses.empty() || std::isfinite(spec.rate_cap) || spec.amount == 0,
           "activity without uses needs a rate cap");
    copy_uses(spec.uses);
    const std::uint32_t slot = take_slot();
    bottlenecks_.define(slot, spec.weight, spec.rate_cap, shares_);
    Activity& activity = activities_[slot];
    activity.amount = spec.amount;
    activity.sequence = next_sequence_++;
    activity.payload = payload;
    activity.listener = &listener;
    activity.state = State::waiting;
    ++active_;
    ++activity_events_;
    const ActivityId id{slot, activity.generation};
    if (spec.latency.count() > 0) {
      activity.latency_event = schedule(now() + spec.latency.count(), latency_over, slot);
    } else {
      begin(slot);
    }
    return id;
  }

  void begin(std::uint32_t slot) {
    Activity& activity = activities_[slot];
    activity.latency_event = EventId{};
    if (activity.amount == 0) {
      activity.state = State::moved;
      add_due(slot);
      return;
    }
    activity.state = State::running;
    bottlenecks_.set_now(now());
    bottlenecks_.begin(slot, activity.amount);
    ask_for_solve();
  }

  void free(std::uint32_t slot) {
    Activity& activity = activities_[slot];
    bottlenecks_.forget(slot);
    activity.state = State::free;
    ++activity.generation;
    free_slots_.push_back(slot);
    --active_;
    ++activity_events_;
  }

  bool cancel(ActivityId id) {
    if (!alive(id)) return false;
    const Activity& activity = activities_[id.slot];
    if (activity.state == State::waiting) simulation_.cancel(activity.latency_event);
    if (activity.state == State::running) {
      bottlenecks_.set_now(now());
      bottlenecks_.end(id.slot, activity.amount - bottlenecks_.remaining(id.slot));
      ask_for_solve();
    }
    free(id.slot);
    return true;
  }

  [[nodiscard]] double remaining(std::uint32_t slot) {
    if (activities_[slot].state == State::moved) return 0;
    if (activities_[slot].state == State::waiting) return activities_[slot].amount;
    bottlenecks_.set_now(now());
    return bottlenecks_.remaining(slot);
  }

  // ---- completion ----
  /// All completions of a tick are told together by a second event of that tick, in start order.
  void add_due(std::uint32_t slot) {
    due_.push_back({activities_[slot].sequence, slot, activities_[slot].generation});
    if (delivery_asked_) return;
    delivery_asked_ = true;
    schedule(now(), deliver, 0);
  }

  void take_ended() {
    ends_event_ = EventId{};
    ended_.clear();
    bottlenecks_.set_now(now());
    bottlenecks_.collect_ended(ended_);
    for (const std::uint32_t slot : ended_) {
      activities_[slot].state = State::moved;
      bottlenecks_.end(slot, activities_[slot].amount);
      add_due(slot);
    }
    ask_for_solve();
  }

  void tell_due() {
    delivery_asked_ = false;
    // A listener may cause more completions in this instant; they get a delivery of their own.
    std::vector<Due> telling;
    telling.swap(spare_due_);
    telling.swap(due_);
    const auto earlier = [](const Due& a, const Due& b) { return a.sequence < b.sequence; };
    if (!std::is_sorted(telling.begin(), telling.end(), earlier)) std::sort(telling.begin(), telling.end(), earlier);
    for (const Due& due : telling) {
      const ActivityId id{due.slot, due.generation};
      if (!alive(id)) continue;  // cancelled by an earlier listener of this instant
      FluidListener& listener = *activities_[due.slot].listener;
      const std::uint64_t payload = activities_[due.slot].payload;
      free(due.slot);
      listener.on_activity_done(id, payload);
    }
    telling.clear();
    spare_due_.swap(telling);
  }

  void solve() {
    bottlenecks_.set_now(now());
    bottlenecks_.solve();
  }

  /// Keeps one event at the earliest end.
  void end_instant() {
    asked_ = false;
    solve();
    const std::int64_t time = bottlenecks_.next_end();
    if (ends_event_.valid() && time == ends_time_) return;
    if (ends_event_.valid()) simulation_.cancel(ends_event_);
    ends_event_ = time == Earliest::kNever ? EventId{} : schedule(time, ends_due, 0);
    ends_time_ = time;
  }

  Simulation<Picoseconds>& simulation_;
  EventHandler& handler_;
  InstantHook& hook_;
  Bottlenecks bottlenecks_;

  std::vector<Activity> activities_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<Bottlenecks::Share> shares_;  // of the activity being started
  FirstSeen used_;                          // their resources, numbered as in shares_

  EventId ends_event_;
  std::int64_t ends_time_ = 0;
  std::vector<std::uint32_t> ended_;
  std::vector<Due> due_;
  std::vector<Due> spare_due_;  // keeps its memory between deliveries
  bool delivery_asked_ = false;
  bool asked_ = false;

  std::uint64_t next_sequence_ = 0;
  std::size_t active_ = 0;
  std::uint64_t activity_events_ = 0;
};

Fluid::Fluid(Simulation<Picoseconds>& simulation)
    : implementation_(std::make_unique<Implementation>(simulation, static_cast<EventHandler&>(*this),
                                                       static_cast<InstantHook&>(*this))) {}
Fluid::~Fluid() = default;

ResourceId Fluid::add_resource(double capacity) {
  ensure(capacity >= 0 && std::isfinite(capacity), "resource with capacity {}", capacity);
  return ResourceId(implementation_->bottlenecks_.add_resource(capacity));
}

void Fluid::set_capacity(ResourceId resource, double capacity) {
  ensure(capacity >= 0 && std::isfinite(capacity), "resource with capacity {}", capacity);
  Implementation& self = *implementation_;
  const std::uint32_t index = self.checked(resource);
  if (self.bottlenecks_.capacity(index) == capacity) return;
  self.bottlenecks_.set_now(self.now());
  self.bottlenecks_.set_capacity(index, capacity);
  ++self.activity_events_;
  self.ask_for_solve();
}

double Fluid::capacity(ResourceId resource) const {
  return implementation_->bottlenecks_.capacity(implementation_->checked(resource));
}
std::size_t Fluid::resources() const { return implementation_->bottlenecks_.resources(); }

ActivityId Fluid::start(const ActivitySpec& spec, FluidListener& listener, std::uint64_t payload) {
  return implementation_->start(spec, listener, payload);
}
bool Fluid::cancel(ActivityId id) { return implementation_->cancel(id); }

double Fluid::rate(ActivityId id) {
  implementation_->solve();
  implementation_->checked(id);
  return implementation_->bottlenecks_.rate(id.slot);
}

double Fluid::remaining(ActivityId id) {
  implementation_->solve();
  implementation_->checked(id);
  return implementation_->remaining(id.slot);
}

double Fluid::allocated(ResourceId resource) {
  implementation_->solve();
  return implementation_->bottlenecks_.allocated(implementation_->checked(resource));
}

double Fluid::carried(ResourceId resource) {
  Implementation& self = *implementation_;
  const std::uint32_t index = self.checked(resource);
  double sum = self.bottlenecks_.carried_by_ended(index);
  self.bottlenecks_.for_each_on(index, [&](std::uint32_t slot, double coefficient) {
    sum += coefficient * (self.activities_[slot].amount - self.remaining(slot));
  });
  return sum;
}

std::size_t Fluid::active() const { return implementation_->active_; }

std::size_t Fluid::stalled() {
  implementation_->solve();
  const Implementation& self = *implementation_;
  std::size_t count = 0;
  for (std::uint32_t slot = 0; slot < self.activities_.size(); ++slot) {
    const bool running = self.activities_[slot].state == Implementation::State::running;
    count += running && self.bottlenecks_.rate(slot) == 0 ? 1 : 0;
  }
  return count;
}

std::uint64_t Fluid::activity_events() const { return implementation_->activity_events_; }
std::uint64_t Fluid::solves() const { return implementation_->bottlenecks_.solves(); }
std::uint64_t Fluid::levelled() const { return implementation_->bottlenecks_.levelled(); }
std::uint64_t Fluid::refills() const { return implementation_->bottlenecks_.refills(); }

void Fluid::check_invariants() {
  implementation_->solve();
  implementation_->bottlenecks_.check_invariants();
}

void Fluid::on_event(std::uint64_t payload) {
  switch (static_cast<Implementation::EventKind>(payload >> 32U)) {
    case Implementation::latency_over:
      implementation_->begin(static_cast<std::uint32_t>(payload));
      break;
    case Implementation::ends_due:
      implementation_->take_ended();
      break;
    case Implementation::deliver:
      implementation_->tell_due();
      break;
  }
}

void Fluid::on_instant_end() { implementation_->end_instant(); }

}  // namespace clustersim
