// The max-min allocation as a bottleneck structure: which resource limits which activity, and at what level.
#pragma once

#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "sim/block_pool.hpp"
#include "sim/earliest.hpp"

namespace clustersim {

/// Keeps the weighted max-min allocation of activities on resources as either side changes, and the time at which each
/// activity will have moved its amount. Fluid gives it a simulation; this class knows only "now", in ticks of 1 ps.
///
/// A resource that is used up limits some of its activities and runs them all at one level (rate / weight); the others
/// on it are limited elsewhere, at a level that is not higher. So
///   level = (capacity - sum over activities limited elsewhere of load x their level) / (sum of load of its own),
/// load = coefficient x weight, and a level depends on lower levels only. That order is what Ros-Giralt et al. (On the
/// Bottleneck Structure of Congestion-Controlled Networks, SIGMETRICS 2020) read off an allocation, and it says what a
/// change can reach. After a change, resources whose equation no longer holds are taken in order of level: each is set
/// to its new level, what it moves to its neighbours is added to their equations, and activities change hands where a
/// neighbour has become the tighter limit. Everything else stays untouched.
///
/// The activities that a resource limits share one service clock, the integral of its level: an activity ends when the
/// clock reaches the value fixed when it came under this limit. So a change of level costs nothing per activity.
class Bottlenecks {
 public:
  struct Share {
    std::uint32_t resource = 0;
    double coefficient = 1;
  };

  std::uint32_t add_resource(double capacity);
  void set_capacity(std::uint32_t resource, double capacity);
  [[nodiscard]] double capacity(std::uint32_t resource) const { return resources_[resource].capacity; }
  [[nodiscard]] std::size_t resources() const { return resources_.size(); }

  /// Describes an activity that is not running yet. `slot` is the caller's number; numbers should be dense.
  void define(std::uint32_t slot, double weight, double rate_cap, std::span<const Share> shares);
  /// Frees what define() took; the activity must not be running.
  void forget(std::uint32_t slot);
  void begin(std::uint32_t slot, double amount);
  /// Takes a running activity off its resources, crediting each with coefficient x `moved`.
  void end(std::uint32_t slot, double moved);

  /// Time only goes forward.
  void set_now(std::int64_t now) { now_ = now; }
  /// Brings the allocation up to date with all changes so far. Rates, levels and ends below are as of the last call.
  void solve();
  [[nodiscard]] bool changed() const { return !starting_.empty() || !waiting_.empty(); }

  [[nodiscard]] double rate(std::uint32_t slot) const;       // units per second
  [[nodiscard]] double remaining(std::uint32_t slot) const;  // units, now
  [[nodiscard]] double allocated(std::uint32_t resource) const;
  [[nodiscard]] double carried_by_ended(std::uint32_t resource) const { return resources_[resource].carried; }
  /// Calls visit(slot, coefficient) for each running activity on the resource.
  template <class Visit>
  void for_each_on(std::uint32_t resource, const Visit& visit) const {
    for (const Member& member : members_of(resource)) {
      visit(member.activity, member.load / activities_[member.activity].weight);
    }
  }

  /// The earliest tick at which an activity has moved its amount; Earliest::kNever when there is none.
  std::int64_t next_end();
  /// Appends the running activities that have moved their amount by now.
  void collect_ended(std::vector<std::uint32_t>& slots);

  [[nodiscard]] std::uint64_t solves() const { return solves_; }      // solve() calls that found a change
  [[nodiscard]] std::uint64_t levelled() const { return levelled_; }  // resources whose level was set, over all of them
  [[nodiscard]] std::uint64_t refills() const { return refills_; }    // connected components filled from nothing

  /// Compares the allocation with its definition; throws BrokenContract.
  void check_invariants() const;

 private:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};
  static constexpr std::uint32_t kOwnCap = kNone - 1;  // limited by its own rate cap
  static constexpr double kInfinite = std::numeric_limits<double>::infinity();
  /// An activity changes hands only for a limit that is tighter by more than this, or equals would swap it for ever.
  static constexpr double kTighter = 1e-12;
  /// Below this share of capacity left, the running sum of the externals has lost digits and is made anew.
  static constexpr double kLittle = 1e-3;

  struct Use {
    double load;  // coefficient x weight
    std::uint32_t resource;
    std::uint32_t position;  // among the resource's members
  };
  /// A running activity on a resource, with all that a look over the members needs.
  struct Member {
    double load;
    std::uint32_t activity;
    std::uint32_t limit;  // of the activity
    std::uint32_t use;    // that this is the other end of
  };
  /// The equation of a resource: own x level = left. These are read and written at random all the time, so they sit
  /// apart from the rest, two to a cache line.
  struct alignas(32) Equation {
    double left = 0;           // capacity - sum of load x level of the activities limited elsewhere
    double level = kInfinite;  // of the activities it limits; infinite when there are none
    double own = 0;            // sum of load of the activities it limits
    double external_top = 0;   // no activity limited elsewhere has a higher level than this
    [[nodiscard]] bool limits() const { return level < kInfinite; }
    [[nodiscard]] bool may_fail() const { return limits() || left < 0; }
  };
  struct Resource {
    double capacity = 0;
    double carried = 0;  // by activities that have ended
    std::uint32_t members_at = 0;
    std::uint32_t members = 0;    // activities on it
    std::uint32_t own_count = 0;  // activities it limits
    std::uint32_t room = 0;       // for members, without moving them
    bool retimed = false;         // its earliest end may have changed
  };
  struct Limited {
    double target;  // value of the service clock at which the activity ends
    std::uint32_t activity;
  };
  /// What one unit of level adds to another resource's external.
  struct Influence {
    double load;
    std::uint32_t resource;
    std::uint32_t activities;  // limited activities that use that resource
  };
  /// What a resource needs only while it limits activities.
  struct Limiter {
    std::vector<Limited> activities;
    std::vector<Influence> influence;
    bool influence_known = false;
    bool next_target_known = true;
    double service = 0;  // integral of level over time, at `updated`
    std::int64_t updated = 0;
    double next_target = kInfinite;
    double lowest_cap = kInfinite;  // no limited activity's own cap is at a lower level
  };
  struct Activity {
    double weight = 1;
    double cap_level = kInfinite;  // rate cap / weight
    double left = 0;               // not limited by a resource: units to move at `since`
    std::int64_t since = 0;
    std::uint32_t uses = 0;
    std::uint32_t use_count = 0;
    std::uint32_t limit = kNone;   // resource, kOwnCap, or kNone before the first solve
    std::uint32_t position = 0;    // in the limiter's activities
    std::uint32_t generation = 0;  // of its entry in capped_
    bool running = false;
  };
  struct Waiting {
    double level;
    std::uint32_t resource;
    bool operator<(const Waiting& other) const {
      return level != other.level ? level > other.level : resource > other.resource;
    }
  };
  struct CappedEnd {
    std::int64_t time;
    std::uint32_t activity;
    std::uint32_t generation;
    bool operator<(const CappedEnd& other) const {
      return time != other.time ? time > other.time : activity > other.activity;
    }
  };
  struct Claim {
    double level;
    double load;
    std::uint32_t activity;
  };

  [[nodiscard]] std::span<Use> uses_of(const Activity& activity) {
    return {uses_.data() + activity.uses, activity.use_count};
  }
  [[nodiscard]] std::span<const Use> uses_of(const Activity& activity) const {
    return {uses_.data() + activity.uses, activity.use_count};
  }
  [[nodiscard]] std::span<Member> members_of(std::uint32_t resource) {
    return {members_.data() + resources_[resource].members_at, resources_[resource].members};
  }
  [[nodiscard]] std::span<const Member> members_of(std::uint32_t resource) const {
    return {members_.data() + resources_[resource].members_at, resources_[resource].members};
  }
  [[nodiscard]] double level_of(const Activity& activity) const {
    if (activity.limit < kOwnCap) return equations_[activity.limit].level;
    return activity.limit == kOwnCap ? activity.cap_level : 0;
  }
  [[nodiscard]] double level_of(const Member& member) const {
    return member.limit < kOwnCap ? equations_[member.limit].level : level_of(activities_[member.activity]);
  }
  [[nodiscard]] double service_now(std::uint32_t resource) const;

  // bottlenecks_repair.cpp
  void wait(std::uint32_t index) {
    if (is_waiting_[index] == 0) put_in_line(index);
  }
  void put_in_line(std::uint32_t index);
  void add_external(std::uint32_t index, double change, double level);
  void forget_externals_if_none(std::uint32_t index);
  void sum_externals(std::uint32_t index);
  double fair_level(std::uint32_t index);
  [[nodiscard]] double order_of(std::uint32_t index) const;
  void insert(std::uint32_t slot);
  [[nodiscard]] bool alone(const Activity& activity) const;
  [[nodiscard]] bool fits_at_cap(const Activity& activity) const;
  void learn_influence(std::uint32_t index);
  void join_influence(std::uint32_t index, const Activity& activity);
  void leave_influence(std::uint32_t index, const Activity& activity);
  std::size_t note_uses(const Activity& activity, std::uint32_t except);
  void set_level(std::uint32_t index, double level);
  void release_to(std::uint32_t index, std::uint32_t blocker);
  void release_to_caps(std::uint32_t index);
  [[nodiscard]] std::uint32_t tightest(const Activity& activity, std::uint32_t except, double below) const;
  void claim(std::uint32_t index);
  void repair();
  void settle(std::uint32_t index);

  // bottlenecks.cpp
  void add_member(std::uint32_t index, const Member& member);
  void drop_member(std::uint32_t index, std::uint32_t position);
  void set_limit(std::uint32_t slot, std::uint32_t limit);
  void limit_by_resource(std::uint32_t slot, std::uint32_t index, double load, double left);
  void limit_by_cap(std::uint32_t slot, double left);
  void lift_limit(std::uint32_t slot);
  void move(std::uint32_t slot, std::uint32_t to);
  void retime(std::uint32_t index);
  [[nodiscard]] std::int64_t end_of(const Limiter& limiter, double level, double target) const;
  void update_ends();
  void drop_stale_caps();

  // bottlenecks_fill.cpp
  void refill_from_resource(std::uint32_t index);
  void refill_from_activity(std::uint32_t slot);
  void begin_component();
  void refill_component();
  void visit_resource(std::uint32_t index);
  void visit_activity(std::uint32_t slot);
  void fill();
  void fix(std::uint32_t slot, double level);

  std::vector<Equation> equations_;       // per resource, as the next three
  std::vector<std::uint8_t> is_waiting_;  // its equation may not hold
  std::vector<Resource> resources_;
  std::vector<Limiter> limiters_;
  std::vector<Activity> activities_;
  BlockPool<Use> uses_;
  BlockPool<Member> members_;
  std::size_t running_ = 0;

  std::vector<std::uint32_t> starting_;  // begun since the last solve
  std::vector<Waiting> waiting_;         // a heap while repairing, else unordered without levels
  bool repairing_ = false;
  std::vector<std::uint32_t> together_;  // starting activities that do not simply fit
  std::vector<Claim> claims_;
  std::vector<std::uint32_t> to_wait_;    // resources told of the level being set whose equation may fail
  std::vector<std::uint32_t> blocking_;   // resources that keep activities from the level being set
  std::vector<std::uint32_t> merged_at_;  // per resource: position in the list being put together
  std::vector<std::uint32_t> merged_in_;  // per resource: which list that was
  std::uint32_t merge_ = 0;

  // Filling a component from nothing.
  std::vector<std::uint32_t> resource_visit_;  // per resource: the walk that met it last
  std::vector<std::uint32_t> activity_visit_;
  std::uint32_t visit_ = 0;
  std::vector<std::uint32_t> component_resources_;
  std::vector<std::uint32_t> component_activities_;
  std::vector<double> open_load_;          // per resource: load of activities not yet fixed
  std::vector<std::uint32_t> open_count_;  // per resource
  std::vector<Waiting> resource_heap_;
  std::vector<Waiting> cap_heap_;

  std::int64_t now_ = 0;
  Earliest ends_;                       // per resource: the earliest end of the activities it limits
  std::vector<std::uint32_t> retimed_;  // resources whose entry there may be wrong
  std::vector<CappedEnd> capped_;       // heap of ends of activities limited by their own cap; stale ones stay
  std::size_t capped_count_ = 0;        // entries that are not stale

  std::uint64_t solves_ = 0;
  std::uint64_t levelled_ = 0;
  std::uint64_t refills_ = 0;
};

}  // namespace clustersim
