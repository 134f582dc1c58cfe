// Activities on resources: who limits whom, what has moved, and when each will be done.
#include "sim/bottlenecks.hpp"

#include <algorithm>
#include <cmath>

namespace clustersim {
namespace {

constexpr double kTicksPerSecond = 1e12;
/// Ticks until `remaining` > 0 has moved at `rate` > 0, rounded up; kNever when that is beyond the clock.
std::int64_t ticks_until(double remaining, double rate) {
  const double ticks = remaining / rate * kTicksPerSecond;
  if (!(ticks < 0x1p62)) return Earliest::kNever;
  const auto whole = static_cast<std::int64_t>(ticks);
  // The quotient carries a few units of rounding: a whole number of ticks must not become one more because of it.
  constexpr double kRounding = 0x1p-50;
  const bool exact = whole > 0 && ticks - static_cast<double>(whole) <= ticks * kRounding;
  return whole + (exact ? 0 : 1);
}

double seconds(std::int64_t ticks) { return static_cast<double>(ticks) / kTicksPerSecond; }

std::int64_t later(std::int64_t now, std::int64_t ticks) {
  return ticks < Earliest::kNever - now ? now + ticks : Earliest::kNever;
}

}  // namespace

// ---- resources and activities ----

std::uint32_t Bottlenecks::add_resource(double capacity) {
  const auto index = static_cast<std::uint32_t>(resources_.size());
  equations_.emplace_back().left = capacity;
  is_waiting_.push_back(0);
  resources_.emplace_back().capacity = capacity;
  limiters_.emplace_back();
  merged_at_.push_back(0);
  merged_in_.push_back(0);
  resource_visit_.push_back(0);
  open_load_.push_back(0);
  open_count_.push_back(0);
  ends_.grow();
  return index;
}

void Bottlenecks::set_capacity(std::uint32_t index, double capacity) {
  resources_[index].capacity = capacity;
  // What rounding has left in the sum was small against the old capacity.
  sum_externals(index);
  wait(index);
}

void Bottlenecks::define(std::uint32_t slot, double weight, double rate_cap, std::span<const Share> shares) {
  if (slot >= activities_.size()) {
    activities_.resize(slot + std::size_t{1});
    activity_visit_.resize(activities_.size(), 0);
  }
  Activity& activity = activities_[slot];
  activity.weight = weight;
  activity.cap_level = rate_cap / weight;
  activity.left = 0;
  activity.limit = kNone;
  activity.use_count = static_cast<std::uint32_t>(shares.size());
  activity.uses = uses_.allocate(activity.use_count);
  for (std::uint32_t i = 0; i < activity.use_count; ++i) {
    uses_[activity.uses + i] = {shares[i].coefficient * weight, shares[i].resource, 0};
  }
}

void Bottlenecks::forget(std::uint32_t slot) {
  uses_.release(activities_[slot].uses, activities_[slot].use_count);
  activities_[slot].use_count = 0;
}

void Bottlenecks::begin(std::uint32_t slot, double amount) {
  Activity& activity = activities_[slot];
  activity.left = amount;
  activity.since = now_;
  activity.running = true;
  ++running_;
  for (std::uint32_t i = activity.uses; i < activity.uses + activity.use_count; ++i) {
    Use& use = uses_[i];
    use.position = resources_[use.resource].members;
    add_member(use.resource, {use.load, slot, kNone, i});
  }
  starting_.push_back(slot);
}

void Bottlenecks::end(std::uint32_t slot, double moved) {
  Activity& activity = activities_[slot];
  const double level = level_of(activity);
  const std::uint32_t limit = activity.limit;
  if (limit != kNone) lift_limit(slot);
  const double moved_per_weight = moved / activity.weight;
  for (const Use& use : uses_of(activity)) {
    drop_member(use.resource, use.position);
    resources_[use.resource].carried += use.load * moved_per_weight;
    if (use.resource != limit) equations_[use.resource].left += use.load * level;
    forget_externals_if_none(use.resource);
    if (equations_[use.resource].limits()) wait(use.resource);
  }
  activity.running = false;
  activity.limit = kNone;
  --running_;
}

void Bottlenecks::add_member(std::uint32_t index, const Member& member) {
  Resource& resource = resources_[index];
  if (resource.members == resource.room) {
    const std::uint32_t room = std::max(1U, 2 * resource.room);
    const std::uint32_t at = members_.allocate(room);
    std::copy_n(members_.data() + resource.members_at, resource.members, members_.data() + at);
    members_.release(resource.members_at, resource.room);
    resource.members_at = at;
    resource.room = room;
  }
  members_[resource.members_at + resource.members++] = member;
}

void Bottlenecks::drop_member(std::uint32_t index, std::uint32_t position) {
  Resource& resource = resources_[index];
  const Member last = members_[resource.members_at + --resource.members];
  if (position == resource.members) return;
  members_[resource.members_at + position] = last;
  uses_[last.use].position = position;
}

double Bottlenecks::service_now(std::uint32_t index) const {
  const Limiter& limiter = limiters_[index];
  return limiter.service + equations_[index].level * seconds(now_ - limiter.updated);
}

double Bottlenecks::rate(std::uint32_t slot) const {
  const Activity& activity = activities_[slot];
  return activity.running ? level_of(activity) * activity.weight : 0;
}

double Bottlenecks::remaining(std::uint32_t slot) const {
  const Activity& activity = activities_[slot];
  if (activity.limit < kOwnCap) {
    const double target = limiters_[activity.limit].activities[activity.position].target;
    return std::max(0.0, target - service_now(activity.limit)) * activity.weight;
  }
  const double moved = level_of(activity) * activity.weight * seconds(now_ - activity.since);
  return std::max(0.0, activity.left - moved);
}

double Bottlenecks::allocated(std::uint32_t index) const {
  double sum = 0;
  for (const Member& member : members_of(index)) sum += member.load * level_of(member);
  return sum;
}

// ---- who limits an activity ----

void Bottlenecks::set_limit(std::uint32_t slot, std::uint32_t limit) {
  activities_[slot].limit = limit;
  for (const Use& use : uses_of(activities_[slot])) {
    members_[resources_[use.resource].members_at + use.position].limit = limit;
  }
}

void Bottlenecks::limit_by_resource(std::uint32_t slot, std::uint32_t index, double load, double left) {
  Activity& activity = activities_[slot];
  Resource& resource = resources_[index];
  Limiter& limiter = limiters_[index];
  const double need = left / activity.weight;
  if (resource.own_count > 0) {
    limiter.service = service_now(index);
    // A clock that has run far has few digits left for a short activity: set it back to 0.
    if (limiter.service > 0x1p16 * need) {
      for (Limited& limited : limiter.activities) limited.target -= limiter.service;
      limiter.next_target -= limiter.service;
      limiter.service = 0;
    }
  } else {
    limiter.service = 0;
    limiter.next_target = kInfinite;
    limiter.next_target_known = true;
    limiter.lowest_cap = kInfinite;
  }
  limiter.updated = now_;
  set_limit(slot, index);
  activity.position = static_cast<std::uint32_t>(limiter.activities.size());
  limiter.activities.push_back({limiter.service + need, slot});
  limiter.next_target = std::min(limiter.next_target, limiter.service + need);
  limiter.lowest_cap = std::min(limiter.lowest_cap, activity.cap_level);
  if (limiter.influence_known) join_influence(index, activity);
  equations_[index].own += load;
  ++resource.own_count;
  retime(index);
}

void Bottlenecks::limit_by_cap(std::uint32_t slot, double left) {
  Activity& activity = activities_[slot];
  set_limit(slot, kOwnCap);
  activity.left = left;
  activity.since = now_;
  ++activity.generation;
  const double rate = activity.cap_level * activity.weight;
  const std::int64_t time = left > 0 ? later(now_, ticks_until(left, rate)) : now_;
  capped_.push_back({time, slot, activity.generation});
  std::push_heap(capped_.begin(), capped_.end());
  ++capped_count_;
}

/// Takes the activity from what limits it; its share there is not given to anybody yet.
void Bottlenecks::lift_limit(std::uint32_t slot) {
  Activity& activity = activities_[slot];
  const std::uint32_t index = activity.limit;
  if (index == kOwnCap) {
    ++activity.generation;
    --capped_count_;
    return;
  }
  Resource& resource = resources_[index];
  Limiter& limiter = limiters_[index];
  const Limited last = limiter.activities.back();
  if (limiter.activities[activity.position].target <= limiter.next_target) limiter.next_target_known = false;
  limiter.activities[activity.position] = last;
  activities_[last.activity].position = activity.position;
  limiter.activities.pop_back();
  --resource.own_count;
  if (resource.own_count == 0) {
    equations_[index].own = 0;
    equations_[index].level = kInfinite;
    limiter.influence.clear();
    limiter.influence_known = false;
  } else {
    for (const Use& use : uses_of(activity)) {
      if (use.resource == index) equations_[index].own -= use.load;
    }
    if (limiter.influence_known) leave_influence(index, activity);
  }
  retime(index);
}

/// The activity comes under another limit, and takes its level.
void Bottlenecks::move(std::uint32_t slot, std::uint32_t to) {
  const Activity& activity = activities_[slot];
  const std::uint32_t from = activity.limit;
  const double before = level_of(activity);
  const double left = remaining(slot);
  const double after = to == kOwnCap ? activity.cap_level : equations_[to].level;
  lift_limit(slot);
  if (to == kOwnCap) limit_by_cap(slot, left);
  for (const Use& use : uses_of(activity)) {
    if (use.resource == to) {
      limit_by_resource(slot, to, use.load, left);
      equations_[to].left += use.load * before;
      forget_externals_if_none(to);
      wait(to);
    } else {
      add_external(use.resource, use.load * (use.resource == from ? after : after - before), after);
    }
  }
}

// ---- ends ----

void Bottlenecks::retime(std::uint32_t index) {
  if (resources_[index].retimed) return;
  resources_[index].retimed = true;
  retimed_.push_back(index);
}

std::int64_t Bottlenecks::end_of(const Limiter& limiter, double level, double target) const {
  const double need = target - limiter.service;
  if (need <= 0) return limiter.updated;
  return level > 0 ? later(limiter.updated, ticks_until(need, level)) : Earliest::kNever;
}

void Bottlenecks::update_ends() {
  for (const std::uint32_t index : retimed_) {
    Resource& resource = resources_[index];
    Limiter& limiter = limiters_[index];
    resource.retimed = false;
    if (resource.own_count == 0) {
      ends_.set(index, Earliest::kNever);
      continue;
    }
    if (!limiter.next_target_known) {
      limiter.next_target = kInfinite;
      for (const Limited& limited : limiter.activities) {
        limiter.next_target = std::min(limiter.next_target, limited.target);
      }
      limiter.next_target_known = true;
    }
    ends_.set(index, std::max(now_, end_of(limiter, equations_[index].level, limiter.next_target)));
  }
  retimed_.clear();
}

void Bottlenecks::drop_stale_caps() {
  const auto stale = [this](const CappedEnd& end) { return activities_[end.activity].generation != end.generation; };
  while (!capped_.empty() && stale(capped_.front())) {
    std::pop_heap(capped_.begin(), capped_.end());
    capped_.pop_back();
  }
  if (capped_.size() <= 2 * capped_count_ + 64) return;
  std::erase_if(capped_, stale);
  std::make_heap(capped_.begin(), capped_.end());
}

std::int64_t Bottlenecks::next_end() {
  update_ends();
  drop_stale_caps();
  return std::min(ends_.first(), capped_.empty() ? Earliest::kNever : capped_.front().time);
}

void Bottlenecks::collect_ended(std::vector<std::uint32_t>& slots) {
  update_ends();
  ends_.for_each_until(now_, [&](std::size_t index) {
    const Limiter& limiter = limiters_[index];
    const double level = equations_[index].level;
    // Anything further away than a tick (and rounding) cannot end now; the exact rule is costlier.
    const double reach = (service_now(static_cast<std::uint32_t>(index)) + level / kTicksPerSecond) * (1 + kTighter);
    for (const Limited& limited : limiter.activities) {
      if (limited.target <= reach && end_of(limiter, level, limited.target) <= now_) slots.push_back(limited.activity);
    }
  });
  for (drop_stale_caps(); !capped_.empty() && capped_.front().time <= now_; drop_stale_caps()) {
    slots.push_back(capped_.front().activity);
    std::pop_heap(capped_.begin(), capped_.end());
    capped_.pop_back();
  }
}

// ---- self check ----

void Bottlenecks::check_invariants() const {
  constexpr double kTolerance = 1e-9;
  std::vector<double> highest(resources_.size(), 0);
  std::vector<bool> used_up(resources_.size(), false);
  double largest = 0;
  for (const Resource& resource : resources_) largest = std::max(largest, resource.capacity);
  for (std::uint32_t r = 0; r < resources_.size(); ++r) {
    const Equation& equation = equations_[r];
    const double capacity = resources_[r].capacity;
    double given = 0;
    double external = 0;
    double own = 0;
    for (const Member& member : members_of(r)) {
      const double level = level_of(member);
      ensure(member.limit == activities_[member.activity].limit, "resource {}: stale limit of a member", r);
      given += member.load * level;
      (member.limit == r ? own : external) += member.limit == r ? member.load : member.load * level;
      highest[r] = std::max(highest[r], level);
    }
    ensure(given <= capacity * (1 + kTolerance), "resource {} gives {} of {}", r, given, capacity);
    ensure(std::abs(capacity - external - equation.left) <= kTolerance * std::max(capacity, kLittle * largest),
           "resource {}: {} is taken by activities limited elsewhere, not {}", r, external, capacity - equation.left);
    ensure(std::abs(own - equation.own) <= kTolerance * own, "resource {}: own load is {}, not {}", r, own,
           equation.own);
    used_up[r] = given >= capacity * (1 - kTolerance);
  }
  for (std::size_t slot = 0; slot < activities_.size(); ++slot) {
    const Activity& activity = activities_[slot];
    if (!activity.running) continue;
    const double level = level_of(activity);
    ensure(activity.limit != kNone, "activity {} has no limit", slot);
    ensure(level <= activity.cap_level * (1 + kTolerance), "activity {} is above its cap", slot);
    bool stopped = level >= activity.cap_level * (1 - kTolerance);
    for (const Use& use : uses_of(activity)) {
      stopped = stopped || (used_up[use.resource] && level >= highest[use.resource] * (1 - kTolerance));
    }
    ensure(stopped, "activity {} at level {} is stopped by nothing", slot, level);
  }
}

}  // namespace clustersim
