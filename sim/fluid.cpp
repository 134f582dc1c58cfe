// Weighted max-min sharing, kept up to date as activities start and end.
//
// Structure: resources and running activities are the two sides of a graph; each keeps its neighbours in a flat list,
// with back positions so that removing an edge is O(1). A change marks the resources or activities it touches; at the
// end of the instant (or when somebody asks) each connected component with a mark is walked and filled again.
// One queue event per component suffices: the earliest completion changes the component, so the later ones would be
// rescheduled anyway.
#include "sim/fluid.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

namespace clustersim {
namespace {

constexpr std::uint32_t kNone = ~std::uint32_t{0};
constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();
constexpr double kTicksPerSecond = 1e12;

/// Ticks until `remaining` > 0 has moved at `rate` > 0, rounded up; kNever when that is beyond the clock.
std::int64_t ticks_until(double remaining, double rate) {
  const double ticks = remaining / rate * kTicksPerSecond;
  if (!(ticks < 0x1p62)) return kNever;
  const double whole = std::floor(ticks);
  // The quotient carries a few units of rounding: a whole number of ticks must not become one more because of it.
  constexpr double kRounding = 0x1p-50;
  const bool exact = whole > 0 && ticks - whole <= ticks * kRounding;
  return static_cast<std::int64_t>(whole) + (exact ? 0 : 1);
}

double seconds(std::int64_t ticks) { return static_cast<double>(ticks) / kTicksPerSecond; }

/// Blocks of elements in one array; a freed block is reused for the next request of its size class (powers of two).
template <class Element>
class BlockPool {
 public:
  std::uint32_t allocate(std::uint32_t count) {
    if (count == 0) return 0;
    const auto size_class = static_cast<std::size_t>(std::bit_width(count - 1));
    std::vector<std::uint32_t>& free_blocks = free_[size_class];
    if (!free_blocks.empty()) {
      const std::uint32_t block = free_blocks.back();
      free_blocks.pop_back();
      return block;
    }
    const std::size_t block = elements_.size();
    ensure(block + (std::size_t{1} << size_class) < kNone, "too many uses of shared resources");
    elements_.resize(block + (std::size_t{1} << size_class));
    return static_cast<std::uint32_t>(block);
  }
  void release(std::uint32_t block, std::uint32_t count) {
    if (count > 0) free_[static_cast<std::size_t>(std::bit_width(count - 1))].push_back(block);
  }
  Element& operator[](std::size_t i) { return elements_[i]; }
  const Element& operator[](std::size_t i) const { return elements_[i]; }

 private:
  std::vector<Element> elements_;
  std::array<std::vector<std::uint32_t>, 33> free_;
};

}  // namespace

struct Fluid::Implementation {
  enum class State : std::uint8_t { free, waiting, running, moved };  // moved: amount 0, to be told this instant
  enum EventKind : std::uint64_t { latency_over = 0, component_due = 1, deliver = 2 };

  /// An activity's use of a resource, seen from the activity.
  struct UseEntry {
    double coefficient;
    std::uint32_t resource;
    std::uint32_t position;  // in the resource's members
  };
  /// The same use, seen from the resource.
  struct Member {
    double coefficient;
    std::uint32_t activity;
    std::uint32_t use;  // index among the activity's uses
  };
  struct Resource {
    double capacity = 0;
    double left = 0;    // while filling: capacity not yet given away
    double weight = 0;  // while filling: sum of coefficient x weight of activities not yet fixed
    std::uint64_t visited = 0;
    std::uint32_t open = 0;  // while filling: activities not yet fixed
    bool dirty = false;
    std::vector<Member> members;
  };
  /// What filling reads.
  struct Share {
    double weight = 1;
    double rate_cap = 0;
    double new_rate = 0;  // negative: not yet fixed
    std::uint64_t visited = 0;
    std::uint32_t uses = 0;  // first entry in uses_
    std::uint32_t use_count = 0;
  };
  /// What every change of rate reads and writes.
  struct Progress {
    double remaining = 0;  // at time `updated`
    double rate = 0;
    std::int64_t updated = 0;
    std::int64_t finish = kNever;
    std::uint32_t component = kNone;
    std::uint32_t next_due = kNone;  // chain of the component's earliest completions
  };
  /// What only the start and the end need.
  struct Activity {
    double amount = 0;
    std::uint64_t sequence = 0;
    std::uint64_t payload = 0;
    FluidListener* listener = nullptr;
    EventId latency_event;
    std::uint32_t generation = 0;
    State state = State::free;
  };
  /// A connected component as of the last solve; it has one event, at its earliest completion.
  struct Component {
    EventId event;
    std::uint32_t first_due = kNone;
    std::uint32_t members = 0;
    bool live = false;
  };
  struct Due {
    std::uint64_t sequence;
    std::uint32_t slot;
    std::uint32_t generation;
  };
  struct Level {
    double level;
    std::uint32_t index;
    // Heaps have the largest element on top; ours is the smallest level, ties by index.
    bool operator<(const Level& other) const {
      return level != other.level ? level > other.level : index > other.index;
    }
  };

  Implementation(Simulation<Picoseconds>& simulation, EventHandler& handler, InstantHook& hook)
      : simulation_(simulation), handler_(handler), hook_(hook) {}

  // ---- building blocks ----
  [[nodiscard]] std::int64_t now() const { return simulation_.now().count(); }
  static std::uint64_t event_payload(EventKind kind, std::uint32_t index) {
    return (static_cast<std::uint64_t>(kind) << 32U) | index;
  }
  EventId schedule(std::int64_t time, EventKind kind, std::uint32_t index) {
    return simulation_.schedule(Picoseconds(time), handler_, event_payload(kind, index));
  }

  [[nodiscard]] bool alive(ActivityId id) const {
    return id.slot < activities_.size() && activities_[id.slot].state != State::free &&
           activities_[id.slot].generation == id.generation;
  }
  Activity& checked(ActivityId id) {
    ensure(alive(id), "activity {} (generation {}) has ended", id.slot, id.generation);
    return activities_[id.slot];
  }
  Resource& checked(ResourceId id) {
    ensure(id.valid() && id.index() < resources_.size(), "resource {} does not exist", id.value());
    return resources_[id.index()];
  }

  /// Units still to move at the present time.
  [[nodiscard]] double remaining_now(const Progress& progress) const {
    if (progress.finish <= now()) return 0;
    if (progress.rate == 0) return progress.remaining;
    return std::max(0.0, progress.remaining - progress.rate * seconds(now() - progress.updated));
  }

  void mark(std::uint32_t resource) {
    if (resources_[resource].dirty) return;
    resources_[resource].dirty = true;
    dirty_resources_.push_back(resource);
    ask_for_solve();
  }
  void ask_for_solve() {
    if (asked_) return;
    asked_ = true;
    simulation_.at_instant_end(hook_);
  }

  // ---- activities ----
  std::uint32_t take_slot() {
    if (free_slots_.empty()) {
      activities_.emplace_back();
      shares_.emplace_back();
      progress_.emplace_back();
      return static_cast<std::uint32_t>(activities_.size() - 1);
    }
    const std::uint32_t slot = free_slots_.back();
    free_slots_.pop_back();
    return slot;
  }

  /// Copies the uses into the pool, adding up a resource named twice.
  void copy_uses(Share& share, std::span<const Use> uses) {
    merged_.clear();
    ++merge_epoch_;
    for (const Use& use : uses) {
      checked(use.resource);
      ensure(use.coefficient > 0 && std::isfinite(use.coefficient), "coefficient {} of a use", use.coefficient);
      Merge& merge = merges_[use.resource.index()];
      if (merge.epoch == merge_epoch_) {
        merged_[merge.position].coefficient += use.coefficient;
        continue;
      }
      merge = {merge_epoch_, merged_.size()};
      merged_.push_back({use.coefficient, use.resource.value(), 0});
    }
    share.use_count = static_cast<std::uint32_t>(merged_.size());
    share.uses = uses_.allocate(share.use_count);
    for (std::uint32_t i = 0; i < share.use_count; ++i) uses_[share.uses + i] = merged_[i];
  }

  ActivityId start(const ActivitySpec& spec, FluidListener& listener, std::uint64_t payload) {
    ensure(spec.amount >= 0 && std::isfinite(spec.amount), "activity with amount {}", spec.amount);
    ensure(spec.weight > 0 && std::isfinite(spec.weight), "activity with weight {}", spec.weight);
    ensure(spec.rate_cap > 0, "activity with rate cap {}", spec.rate_cap);
    ensure(spec.latency.count() >= 0, "activity with latency {} ps", spec.latency.count());
    ensure(!spec.uses.empty() || std::isfinite(spec.rate_cap) || spec.amount == 0,
           "activity without uses needs a rate cap");
    const std::uint32_t slot = take_slot();
    Share& share = shares_[slot];
    share.weight = spec.weight;
    share.rate_cap = spec.rate_cap;
    copy_uses(share, spec.uses);
    Activity& activity = activities_[slot];
    progress_[slot] = Progress{};
    progress_[slot].remaining = spec.amount;
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

  /// The latency is over: the activity takes its place on its resources.
  void begin(std::uint32_t slot) {
    Activity& activity = activities_[slot];
    activity.latency_event = EventId{};
    progress_[slot].updated = now();
    if (activity.amount == 0) {
      activity.state = State::moved;
      progress_[slot].finish = now();
      add_due(slot);
      return;
    }
    activity.state = State::running;
    const Share& share = shares_[slot];
    for (std::uint32_t i = 0; i < share.use_count; ++i) {
      UseEntry& use = uses_[share.uses + i];
      std::vector<Member>& members = resources_[use.resource].members;
      use.position = static_cast<std::uint32_t>(members.size());
      members.push_back({use.coefficient, slot, i});
    }
    dirty_activities_.push_back(slot);
    ask_for_solve();
  }

  /// Takes the activity off its resources, crediting each with what was moved, and ends its id.
  void remove(std::uint32_t slot, double moved) {
    Activity& activity = activities_[slot];
    const Share& share = shares_[slot];
    if (activity.state == State::running) {
      for (std::uint32_t i = 0; i < share.use_count; ++i) {
        const UseEntry& use = uses_[share.uses + i];
        std::vector<Member>& members = resources_[use.resource].members;
        const Member last = members.back();
        members[use.position] = last;
        uses_[shares_[last.activity].uses + last.use].position = use.position;
        members.pop_back();
        carried_[use.resource] += use.coefficient * moved;
        mark(use.resource);
      }
      if (progress_[slot].component != kNone) leave_component(progress_[slot].component);
    }
    uses_.release(share.uses, share.use_count);
    activity.state = State::free;
    ++activity.generation;
    // Chains of due activities may still lead through this slot until the component is solved again.
    retired_slots_.push_back(slot);
    ask_for_solve();
    --active_;
    ++activity_events_;
  }

  bool cancel(ActivityId id) {
    if (!alive(id)) return false;
    Activity& activity = activities_[id.slot];
    if (activity.state == State::waiting) simulation_.cancel(activity.latency_event);
    remove(id.slot, activity.amount - remaining_now(progress_[id.slot]));
    return true;
  }

  // ---- components ----
  void leave_component(std::uint32_t index) {
    Component& component = components_[index];
    if (component.live && --component.members == 0) retire_component(index);
  }
  void retire_component(std::uint32_t index) {
    Component& component = components_[index];
    if (!component.live) return;
    simulation_.cancel(component.event);
    component.live = false;
    // Not free yet: when the component has split, the other pieces still carry its index until they are solved.
    retired_components_.push_back(index);
  }
  std::uint32_t take_component() {
    if (free_components_.empty()) {
      components_.emplace_back();
      return static_cast<std::uint32_t>(components_.size() - 1);
    }
    const std::uint32_t index = free_components_.back();
    free_components_.pop_back();
    return index;
  }

  // ---- completion ----
  /// All completions of a tick are gathered by a second event of that tick, so that they are told in start order even
  /// when several components finish together.
  void add_due(std::uint32_t slot) {
    due_.push_back({activities_[slot].sequence, slot, activities_[slot].generation});
    if (delivery_asked_) return;
    delivery_asked_ = true;
    schedule(now(), deliver, 0);
  }

  void component_finished(std::uint32_t index) {
    for (std::uint32_t slot = components_[index].first_due; slot != kNone; slot = progress_[slot].next_due) {
      if (activities_[slot].state == State::running && progress_[slot].finish <= now()) add_due(slot);
    }
  }

  void tell_due() {
    delivery_asked_ = false;
    // A listener may cause more completions in this instant; they get a delivery of their own.
    std::vector<Due> telling;
    telling.swap(spare_due_);
    telling.swap(due_);
    std::sort(telling.begin(), telling.end(), [](const Due& a, const Due& b) { return a.sequence < b.sequence; });
    for (const Due& due : telling) {
      const ActivityId id{due.slot, due.generation};
      if (!alive(id)) continue;  // cancelled by an earlier listener of this instant
      const Activity& activity = activities_[due.slot];
      FluidListener& listener = *activity.listener;
      const std::uint64_t payload = activity.payload;
      remove(due.slot, activity.amount);
      listener.on_activity_done(id, payload);
    }
    telling.clear();
    spare_due_.swap(telling);
  }

  // ---- solving ----
  void solve() {
    if (dirty_resources_.empty() && dirty_activities_.empty() && retired_slots_.empty()) return;
    ++epoch_;
    for (const std::uint32_t slot : dirty_activities_) {
      if (activities_[slot].state == State::running && shares_[slot].visited != epoch_) {
        open_component();
        visit_activity(slot);
        solve_component();
      }
    }
    dirty_activities_.clear();
    for (const std::uint32_t resource : dirty_resources_) {
      resources_[resource].dirty = false;
      if (resources_[resource].visited != epoch_ && !resources_[resource].members.empty()) {
        open_component();
        visit_resource(resource);
        solve_component();
      }
    }
    dirty_resources_.clear();
    free_slots_.insert(free_slots_.end(), retired_slots_.begin(), retired_slots_.end());
    retired_slots_.clear();
    free_components_.insert(free_components_.end(), retired_components_.begin(), retired_components_.end());
    retired_components_.clear();
  }

  void open_component() {
    component_resources_.clear();
    component_activities_.clear();
  }
  void visit_resource(std::uint32_t index) {
    Resource& resource = resources_[index];
    resource.visited = epoch_;
    resource.left = resource.capacity;
    resource.weight = 0;
    resource.open = static_cast<std::uint32_t>(resource.members.size());
    component_resources_.push_back(index);
  }
  void visit_activity(std::uint32_t slot) {
    Share& share = shares_[slot];
    share.visited = epoch_;
    share.new_rate = -1;
    component_activities_.push_back(slot);
    for (std::uint32_t i = share.uses; i < share.uses + share.use_count; ++i) {
      const UseEntry& use = uses_[i];
      Resource& resource = resources_[use.resource];
      if (resource.visited != epoch_) visit_resource(use.resource);
      resource.weight += use.coefficient * share.weight;
    }
  }

  /// Walks the rest of the component whose first resource or activity has been visited, and solves it.
  void solve_component() {
    for (std::size_t i = 0; i < component_resources_.size(); ++i) {
      // Visiting may add resources but never members, so the reference stays good.
      for (const Member& member : resources_[component_resources_[i]].members) {
        if (shares_[member.activity].visited != epoch_) visit_activity(member.activity);
      }
    }
    ++solves_;
    if (component_activities_.size() == 1) {
      fill_single(component_activities_.front());
    } else {
      fill();
    }
    apply_rates();
  }

  /// An activity alone takes the smallest of what its cap and its resources allow.
  void fill_single(std::uint32_t slot) {
    Share& share = shares_[slot];
    double rate = share.rate_cap;
    for (std::uint32_t i = share.uses; i < share.uses + share.use_count; ++i) {
      rate = std::min(rate, resources_[uses_[i].resource].capacity / uses_[i].coefficient);
    }
    share.new_rate = rate;
  }

  /// Progressive filling: the level (rate / weight) of all open activities rises until a resource is used up or a cap
  /// is reached, whose activities are then fixed. Fixing activities at a level never lowers the level at which another
  /// resource is used up, so a heap entry that has become too low is found on top and put back.
  void fill() {
    fill_heaps();
    std::size_t open = component_activities_.size();
    double level = 0;
    while (open > 0) {
      const double cap_level = next_cap();
      const double resource_level = resource_heap_.empty() ? HUGE_VAL : resource_heap_.front().level;
      if (cap_level <= resource_level) {
        ensure(cap_level < HUGE_VAL, "an activity is bounded by nothing");
        level = std::max(level, cap_level);
        const std::uint32_t slot = cap_heap_.front().index;
        fix(slot, shares_[slot].rate_cap);
        --open;
        continue;
      }
      std::pop_heap(resource_heap_.begin(), resource_heap_.end());
      Resource& resource = resources_[resource_heap_.back().index];
      if (resource.open == 0) {
        resource_heap_.pop_back();
        continue;
      }
      const double true_level = std::max(level, resource.left / resource.weight);
      if (true_level > resource_level) {
        resource_heap_.back().level = true_level;
        std::push_heap(resource_heap_.begin(), resource_heap_.end());
        continue;
      }
      resource_heap_.pop_back();
      level = std::max(level, exact_level(resource));
      for (const Member& member : resource.members) {
        if (shares_[member.activity].new_rate >= 0) continue;
        fix(member.activity, level * shares_[member.activity].weight);
        --open;
      }
    }
  }

  void fill_heaps() {
    resource_heap_.clear();
    cap_heap_.clear();
    for (const std::uint32_t index : component_resources_) {
      const Resource& resource = resources_[index];
      resource_heap_.push_back({resource.left / resource.weight, index});
    }
    std::make_heap(resource_heap_.begin(), resource_heap_.end());
    for (const std::uint32_t slot : component_activities_) {
      if (cap_matters(shares_[slot])) cap_heap_.push_back({shares_[slot].rate_cap / shares_[slot].weight, slot});
    }
    std::make_heap(cap_heap_.begin(), cap_heap_.end());
  }

  /// A cap at or above what one of the resources could give the activity alone is never reached first.
  [[nodiscard]] bool cap_matters(const Share& share) const {
    if (share.rate_cap == HUGE_VAL) return false;
    for (std::uint32_t i = share.uses; i < share.uses + share.use_count; ++i) {
      if (share.rate_cap * uses_[i].coefficient >= resources_[uses_[i].resource].capacity) return false;
    }
    return true;
  }

  double next_cap() {
    while (!cap_heap_.empty() && shares_[cap_heap_.front().index].new_rate >= 0) {
      std::pop_heap(cap_heap_.begin(), cap_heap_.end());
      cap_heap_.pop_back();
    }
    return cap_heap_.empty() ? HUGE_VAL : cap_heap_.front().level;
  }

  /// left / weight summed afresh: the running differences lose digits when most of a resource has been given away.
  [[nodiscard]] double exact_level(const Resource& resource) const {
    double given = 0;
    double weight = 0;
    for (const Member& member : resource.members) {
      const Share& share = shares_[member.activity];
      if (share.new_rate >= 0) {
        given += member.coefficient * share.new_rate;
      } else {
        weight += member.coefficient * share.weight;
      }
    }
    return std::max(0.0, resource.capacity - given) / weight;
  }

  void fix(std::uint32_t slot, double rate) {
    Share& share = shares_[slot];
    share.new_rate = rate;
    for (std::uint32_t i = share.uses; i < share.uses + share.use_count; ++i) {
      const UseEntry& use = uses_[i];
      Resource& resource = resources_[use.resource];
      resource.left -= use.coefficient * rate;
      resource.weight -= use.coefficient * share.weight;
      --resource.open;
    }
  }

  /// Brings progress up to date where the rate changed, and schedules the component's earliest completion.
  void apply_rates() {
    const std::uint32_t index = take_component();
    std::int64_t earliest = kNever;
    std::uint32_t first_due = kNone;
    std::uint32_t retired = kNone;
    for (const std::uint32_t slot : component_activities_) {
      Progress& progress = progress_[slot];
      if (progress.component != retired) {
        retired = progress.component;
        if (retired != kNone) retire_component(retired);
      }
      const double rate = shares_[slot].new_rate;
      if (rate != progress.rate) change_rate(progress, rate);
      progress.component = index;
      if (progress.finish > earliest || progress.finish == kNever) continue;
      progress.next_due = progress.finish == earliest ? first_due : kNone;
      first_due = slot;
      earliest = progress.finish;
    }
    Component& component = components_[index];
    component.live = true;
    component.members = static_cast<std::uint32_t>(component_activities_.size());
    component.first_due = first_due;
    component.event = earliest == kNever ? EventId{} : schedule(std::max(earliest, now()), component_due, index);
  }

  void change_rate(Progress& progress, double rate) {
    progress.remaining = remaining_now(progress);
    progress.updated = now();
    progress.rate = rate;
    if (progress.remaining == 0) {
      progress.finish = now();
    } else if (rate == 0) {
      progress.finish = kNever;
    } else {
      const std::int64_t ticks = ticks_until(progress.remaining, rate);
      progress.finish = ticks < kNever - now() ? now() + ticks : kNever;
    }
  }

  // ---- self check ----
  static constexpr double kTolerance = 1e-9;

  void check_invariants() {
    solve();
    std::vector<double> highest_level(resources_.size(), 0);
    std::vector<bool> saturated(resources_.size(), false);
    for (std::size_t i = 0; i < resources_.size(); ++i) {
      const Resource& resource = resources_[i];
      double given = 0;
      for (const Member& member : resource.members) {
        const double rate = progress_[member.activity].rate;
        given += member.coefficient * rate;
        highest_level[i] = std::max(highest_level[i], rate / shares_[member.activity].weight);
      }
      ensure(given <= resource.capacity * (1 + kTolerance), "resource {} gives {} of {}", i, given, resource.capacity);
      saturated[i] = given >= resource.capacity * (1 - kTolerance);
    }
    for (std::size_t slot = 0; slot < activities_.size(); ++slot) {
      if (activities_[slot].state != State::running) continue;
      const double amount = activities_[slot].amount;
      const double remaining = progress_[slot].remaining;
      const double rate = progress_[slot].rate;
      const Share& share = shares_[slot];
      ensure(remaining >= 0 && remaining <= amount, "activity {} has {} of {} left", slot, remaining, amount);
      ensure(rate <= share.rate_cap * (1 + kTolerance), "activity {} is above its cap", slot);
      bool stopped = rate >= share.rate_cap * (1 - kTolerance);
      for (std::uint32_t i = share.uses; i < share.uses + share.use_count; ++i) {
        const std::uint32_t resource = uses_[i].resource;
        stopped = stopped || (saturated[resource] && rate / share.weight >= highest_level[resource] * (1 - kTolerance));
      }
      ensure(stopped, "activity {} at rate {} is stopped by nothing", slot, rate);
    }
  }

  struct Merge {
    std::uint64_t epoch = 0;
    std::size_t position = 0;
  };

  Simulation<Picoseconds>& simulation_;
  EventHandler& handler_;
  InstantHook& hook_;

  std::vector<Resource> resources_;
  std::vector<double> carried_;  // per resource, by activities that have ended
  std::vector<Merge> merges_;    // per resource
  std::uint64_t merge_epoch_ = 0;
  std::vector<UseEntry> merged_;

  std::vector<Activity> activities_;
  std::vector<Share> shares_;       // same slots
  std::vector<Progress> progress_;  // same slots
  BlockPool<UseEntry> uses_;
  std::vector<std::uint32_t> free_slots_;
  std::vector<std::uint32_t> retired_slots_;  // ended since the last solve
  std::vector<Component> components_;
  std::vector<std::uint32_t> free_components_;
  std::vector<std::uint32_t> retired_components_;  // replaced since the last solve

  std::vector<Due> due_;
  std::vector<Due> spare_due_;  // keeps its memory between deliveries
  bool delivery_asked_ = false;

  std::vector<std::uint32_t> dirty_resources_;
  std::vector<std::uint32_t> dirty_activities_;
  bool asked_ = false;
  std::uint64_t epoch_ = 0;
  std::vector<std::uint32_t> component_resources_;
  std::vector<std::uint32_t> component_activities_;
  std::vector<Level> resource_heap_;
  std::vector<Level> cap_heap_;

  std::uint64_t next_sequence_ = 0;
  std::size_t active_ = 0;
  std::uint64_t activity_events_ = 0;
  std::uint64_t solves_ = 0;
};

Fluid::Fluid(Simulation<Picoseconds>& simulation)
    : implementation_(std::make_unique<Implementation>(simulation, static_cast<EventHandler&>(*this),
                                                       static_cast<InstantHook&>(*this))) {}
Fluid::~Fluid() = default;

ResourceId Fluid::add_resource(double capacity) {
  ensure(capacity >= 0 && std::isfinite(capacity), "resource with capacity {}", capacity);
  Implementation& self = *implementation_;
  self.resources_.emplace_back().capacity = capacity;
  self.carried_.push_back(0);
  self.merges_.emplace_back();
  return ResourceId(self.resources_.size() - 1);
}

void Fluid::set_capacity(ResourceId resource, double capacity) {
  ensure(capacity >= 0 && std::isfinite(capacity), "resource with capacity {}", capacity);
  Implementation& self = *implementation_;
  if (self.checked(resource).capacity == capacity) return;
  self.checked(resource).capacity = capacity;
  ++self.activity_events_;
  self.mark(resource.value());
}

double Fluid::capacity(ResourceId resource) const { return implementation_->checked(resource).capacity; }
std::size_t Fluid::resources() const { return implementation_->resources_.size(); }

ActivityId Fluid::start(const ActivitySpec& spec, FluidListener& listener, std::uint64_t payload) {
  return implementation_->start(spec, listener, payload);
}
bool Fluid::cancel(ActivityId id) { return implementation_->cancel(id); }

double Fluid::rate(ActivityId id) {
  implementation_->solve();
  implementation_->checked(id);
  return implementation_->progress_[id.slot].rate;
}

double Fluid::remaining(ActivityId id) {
  implementation_->solve();
  implementation_->checked(id);
  return implementation_->remaining_now(implementation_->progress_[id.slot]);
}

double Fluid::allocated(ResourceId resource) {
  implementation_->solve();
  double sum = 0;
  for (const auto& member : implementation_->checked(resource).members) {
    sum += member.coefficient * implementation_->progress_[member.activity].rate;
  }
  return sum;
}

double Fluid::carried(ResourceId resource) {
  const Implementation& self = *implementation_;
  double sum = 0;
  for (const auto& member : implementation_->checked(resource).members) {
    const double remaining = self.remaining_now(self.progress_[member.activity]);
    sum += member.coefficient * (self.activities_[member.activity].amount - remaining);
  }
  return self.carried_[resource.index()] + sum;
}

std::size_t Fluid::active() const { return implementation_->active_; }

std::size_t Fluid::stalled() {
  implementation_->solve();
  const Implementation& self = *implementation_;
  std::size_t count = 0;
  for (std::size_t slot = 0; slot < self.activities_.size(); ++slot) {
    const bool running = self.activities_[slot].state == Implementation::State::running;
    count += running && self.progress_[slot].rate == 0 ? 1 : 0;
  }
  return count;
}

std::uint64_t Fluid::activity_events() const { return implementation_->activity_events_; }
std::uint64_t Fluid::solves() const { return implementation_->solves_; }
void Fluid::check_invariants() { implementation_->check_invariants(); }

void Fluid::on_event(std::uint64_t payload) {
  const auto index = static_cast<std::uint32_t>(payload);
  switch (static_cast<Implementation::EventKind>(payload >> 32U)) {
    case Implementation::latency_over:
      implementation_->begin(index);
      break;
    case Implementation::component_due:
      implementation_->component_finished(index);
      break;
    case Implementation::deliver:
      implementation_->tell_due();
      break;
  }
}

void Fluid::on_instant_end() {
  implementation_->asked_ = false;
  implementation_->solve();
}

}  // namespace clustersim
