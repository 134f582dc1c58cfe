// Keeps the bottleneck structure as activities and capacities change: repair what a change reaches, or fill afresh.
#include "sim/bottlenecks.hpp"

#include <algorithm>
#include <cmath>

namespace clustersim {
namespace {

constexpr double kTicksPerSecond = 1e12;
/// Levels closer than this are the same: sums of many terms do not agree to more digits.
constexpr double kSame = 1e-13;
/// An activity changes hands only for a limit that is tighter by more than this, or equals would swap it for ever.
constexpr double kTighter = 1e-12;
/// Below this share of capacity left, the running sum of the externals has lost digits and is made anew.
constexpr double kLittle = 1e-3;

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

// ---- the equation of a resource ----

/// Puts a resource whose equation may not hold on the list of those to settle.
void Bottlenecks::put_in_line(std::uint32_t index) {
  is_waiting_[index] = 1;
  if (!repairing_) {
    waiting_.push_back({0, index});
    return;
  }
  waiting_.push_back({order_of(index), index});
  std::push_heap(waiting_.begin(), waiting_.end());
}

void Bottlenecks::retime(std::uint32_t index) {
  if (resources_[index].retimed) return;
  resources_[index].retimed = true;
  retimed_.push_back(index);
}

/// `level` is the one that activities limited elsewhere now have, of which this resource is told.
void Bottlenecks::add_external(std::uint32_t index, double change, double level) {
  Equation& equation = equations_[index];
  equation.left -= change;
  equation.external_top = std::max(equation.external_top, level);
  if (equation.may_fail()) wait(index);
}

/// A sum over nothing is 0, whatever rounding has left in it.
void Bottlenecks::forget_externals_if_none(std::uint32_t index) {
  const Resource& resource = resources_[index];
  if (resource.members != resource.own_count) return;
  equations_[index].left = resource.capacity;
  equations_[index].external_top = 0;
}

void Bottlenecks::sum_externals(std::uint32_t index) {
  double sum = 0;
  double top = 0;
  for (const Member& member : members_of(index)) {
    if (member.limit == index) continue;
    const double level = level_of(member);
    sum += member.load * level;
    top = std::max(top, level);
  }
  equations_[index].left = resources_[index].capacity - sum;
  equations_[index].external_top = top;
}

/// The level at which the resource's own activities use up what the others leave.
double Bottlenecks::fair_level(std::uint32_t index) {
  const Equation& equation = equations_[index];
  const Resource& resource = resources_[index];
  const bool few_digits = equation.left < kLittle * resource.capacity || equation.left > resource.capacity;
  if (few_digits && resource.members != resource.own_count) sum_externals(index);
  return std::max(0.0, equation.left) / equation.own;
}

/// Where in the order of levels the resource's equation begins to fail: at its old or its new level, whichever is
/// lower. A resource that limits nothing yet is put where its fastest activities would be slowed down to.
double Bottlenecks::order_of(std::uint32_t index) const {
  const Equation& equation = equations_[index];
  if (equation.limits()) return std::min(equation.level, equation.left / equation.own);
  const double capacity = resources_[index].capacity;
  return equation.external_top * (capacity / std::max(capacity - equation.left, 1e-300));
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

bool Bottlenecks::alone(const Activity& activity) const {
  for (const Use& use : uses_of(activity)) {
    if (resources_[use.resource].members != 1) return false;
  }
  return true;
}

bool Bottlenecks::fits_at_cap(const Activity& activity) const {
  if (activity.cap_level == kInfinite) return false;
  for (const Use& use : uses_of(activity)) {
    const Equation& equation = equations_[use.resource];
    if (equation.limits() || use.load * activity.cap_level > equation.left) return false;
  }
  return true;
}

/// Puts a starting activity under the limit that looks tightest. Where that is a guess, settling corrects it.
void Bottlenecks::insert(std::uint32_t slot) {
  const Activity& activity = activities_[slot];
  double lowest = activity.cap_level;
  std::uint32_t limit = kOwnCap;
  double load = 0;
  for (const Use& use : uses_of(activity)) {
    const Equation& equation = equations_[use.resource];
    const double level = std::max(0.0, equation.left) / (equation.own + use.load);
    if (level >= lowest) continue;
    lowest = level;
    limit = use.resource;
    load = use.load;
  }
  ensure(lowest < kInfinite, "an activity is bounded by nothing");
  if (limit == kOwnCap) {
    limit_by_cap(slot, activity.left);
  } else {
    if (equations_[limit].limits()) {
      set_level(limit, lowest);
    } else {
      equations_[limit].level = lowest;
    }
    limit_by_resource(slot, limit, load, activity.left);
    if (resources_[limit].members > 1) wait(limit);
  }
  for (const Use& use : uses_of(activity)) {
    if (use.resource != limit) add_external(use.resource, use.load * lowest, lowest);
  }
}

// ---- repair ----

/// Adds to a known list of influences what an activity, newly limited by resource `index`, does to its other resources.
void Bottlenecks::join_influence(std::uint32_t index, const Activity& activity) {
  std::vector<Influence>& influence = limiters_[index].influence;
  std::size_t missing = note_uses(activity, index);
  for (Influence& known : influence) {
    if (missing == 0) break;
    if (merged_in_[known.resource] != merge_) continue;
    known.load += uses_[merged_at_[known.resource]].load;
    ++known.activities;
    merged_in_[known.resource] = 0;
    --missing;
  }
  if (missing == 0) return;
  for (const Use& use : uses_of(activity)) {
    if (merged_in_[use.resource] == merge_) influence.push_back({use.load, use.resource, 1});
  }
}

/// The opposite: entries of resources that no limited activity uses any more must go, or they would seem to block it.
void Bottlenecks::leave_influence(std::uint32_t index, const Activity& activity) {
  std::vector<Influence>& influence = limiters_[index].influence;
  std::size_t missing = note_uses(activity, index);
  for (std::size_t i = 0; missing > 0;) {
    Influence& known = influence[i];
    if (merged_in_[known.resource] != merge_) {
      ++i;
      continue;
    }
    --missing;
    known.load -= uses_[merged_at_[known.resource]].load;
    if (--known.activities > 0) {
      ++i;
      continue;
    }
    known = influence.back();
    influence.pop_back();
  }
}

/// Marks the activity's resources other than `except` in merged_in_, with its uses in merged_at_; returns how many.
std::size_t Bottlenecks::note_uses(const Activity& activity, std::uint32_t except) {
  ++merge_;
  for (std::uint32_t i = activity.uses; i < activity.uses + activity.use_count; ++i) {
    if (uses_[i].resource == except) continue;
    merged_in_[uses_[i].resource] = merge_;
    merged_at_[uses_[i].resource] = i;
  }
  return activity.use_count - 1;
}

/// Puts the list of influences together, one entry per resource, and with it the sums that lose digits over time.
void Bottlenecks::learn_influence(std::uint32_t index) {
  Limiter& limiter = limiters_[index];
  limiter.influence.clear();
  ++merge_;
  double own = 0;
  for (const Limited& limited : limiter.activities) {
    for (const Use& use : uses_of(activities_[limited.activity])) {
      if (use.resource == index) {
        own += use.load;
      } else if (merged_in_[use.resource] == merge_) {
        Influence& known = limiter.influence[merged_at_[use.resource]];
        known.load += use.load;
        ++known.activities;
      } else {
        merged_in_[use.resource] = merge_;
        merged_at_[use.resource] = static_cast<std::uint32_t>(limiter.influence.size());
        limiter.influence.push_back({use.load, use.resource, 1});
      }
    }
  }
  limiter.influence_known = true;
  equations_[index].own = own;
}

void Bottlenecks::set_level(std::uint32_t index, double level) {
  ++levelled_;
  Limiter& limiter = limiters_[index];
  limiter.service = service_now(index);
  limiter.updated = now_;
  if (!limiter.influence_known) learn_influence(index);
  const double change = level - equations_[index].level;
  equations_[index].level = level;
  retime(index);
  // Nearly all the time goes into the two loops below; which resources need more is collected without branches, since
  // that is hard to guess.
  if (to_wait_.size() < limiter.influence.size()) {
    to_wait_.resize(2 * limiter.influence.size());
    blocking_.resize(2 * limiter.influence.size());
  }
  std::uint32_t* last = to_wait_.data();
  Equation* const equations = equations_.data();
  const std::uint8_t* const is_waiting = is_waiting_.data();
  if (change < 0) {
    for (const Influence& influence : limiter.influence) {
      Equation& other = equations[influence.resource];
      other.left -= influence.load * change;
      *last = influence.resource;
      last += static_cast<int>(other.limits()) & static_cast<int>(is_waiting[influence.resource] == 0);
    }
    for (const std::uint32_t* i = to_wait_.data(); i != last; ++i) put_in_line(*i);
    return;
  }
  const double enough = level * (1 - kTighter);
  std::uint32_t* last_blocking = blocking_.data();
  for (const Influence& influence : limiter.influence) {
    Equation& other = equations[influence.resource];
    other.left -= influence.load * change;
    const bool blocks = other.level < enough;
    *last_blocking = influence.resource;
    last_blocking += static_cast<int>(blocks);
    other.external_top = std::max(other.external_top, blocks ? 0.0 : level);
    *last = influence.resource;
    last += (static_cast<int>(other.limits()) | static_cast<int>(other.left < 0)) &
            static_cast<int>(is_waiting[influence.resource] == 0);
  }
  for (const std::uint32_t* i = to_wait_.data(); i != last; ++i) put_in_line(*i);
  if (limiter.lowest_cap < enough) release_to_caps(index);
  for (const std::uint32_t* i = blocking_.data(); i != last_blocking; ++i) release_to(index, *i);
}

/// Gives activities that use a tighter resource to it, or to the tightest other limit they have.
void Bottlenecks::release_to(std::uint32_t index, std::uint32_t blocker) {
  const double enough = equations_[index].level * (1 - kTighter);
  for (const Member& member : members_of(blocker)) {
    if (member.limit == index) move(member.activity, tightest(activities_[member.activity], index, enough));
  }
}

void Bottlenecks::release_to_caps(std::uint32_t index) {
  Limiter& limiter = limiters_[index];
  const double enough = equations_[index].level * (1 - kTighter);
  double lowest_cap = kInfinite;
  for (std::size_t i = limiter.activities.size(); i-- > 0;) {
    const std::uint32_t slot = limiter.activities[i].activity;
    const Activity& activity = activities_[slot];
    if (activity.cap_level < enough) {
      move(slot, tightest(activity, index, enough));
    } else {
      lowest_cap = std::min(lowest_cap, activity.cap_level);
    }
  }
  limiter.lowest_cap = lowest_cap;
}

/// The limit with the lowest level below `below`, other than resource `except`; there must be one.
std::uint32_t Bottlenecks::tightest(const Activity& activity, std::uint32_t except, double below) const {
  double lowest = std::min(activity.cap_level, below);
  std::uint32_t limit = activity.cap_level < below ? kOwnCap : except;
  for (const Use& use : uses_of(activity)) {
    const double level = equations_[use.resource].level;
    if (use.resource == except || level >= lowest) continue;
    lowest = level;
    limit = use.resource;
  }
  return limit;
}

/// Looks at every activity on the resource and takes those that run faster than their fair share here.
void Bottlenecks::claim(std::uint32_t index) {
  Equation& equation = equations_[index];
  const double capacity = resources_[index].capacity;
  const double floor = equation.limits() ? fair_level(index) : 0;
  claims_.clear();
  double external = 0;
  double top = 0;
  for (const Member& member : members_of(index)) {
    if (member.limit == index) continue;
    const double level = level_of(member);
    if (level > floor) {
      claims_.push_back({level, member.load, member.activity});
    } else {
      external += member.load * level;
      top = std::max(top, level);
    }
  }
  // The level with all candidates taken is a lower bound; dropping those below it only raises it.
  double level = 0;
  for (std::size_t dropped = 1; dropped > 0 && (!claims_.empty() || equation.limits());) {
    double own = equation.own;
    for (const Claim& claim : claims_) own += claim.load;
    level = std::max(0.0, capacity - external) / own;
    dropped = std::erase_if(claims_, [&](const Claim& claim) {
      if (claim.level > level * (1 + kTighter)) return false;
      external += claim.load * claim.level;
      top = std::max(top, claim.level);
      return true;
    });
  }
  equation.left = capacity - external;
  for (const Claim& claim : claims_) equation.left -= claim.load * claim.level;
  equation.external_top = top;
  if (!equation.limits()) {
    if (claims_.empty()) return;
    equation.level = level;
  } else if (std::abs(level - equation.level) > equation.level * kSame) {
    set_level(index, level);
  }
  for (const Claim& claim : claims_) {
    // Raising the level may have given all it had to other resources.
    if (!equation.limits()) equation.level = level;
    if (activities_[claim.activity].limit != index) move(claim.activity, index);
  }
}

void Bottlenecks::settle(std::uint32_t index) {
  const Equation& equation = equations_[index];
  is_waiting_[index] = 0;
  if (!equation.limits()) {
    if (equation.left < -kTighter * resources_[index].capacity) claim(index);
    return;
  }
  const double level = fair_level(index);
  if (equation.external_top > level * (1 + kTighter)) {
    claim(index);
  } else if (std::abs(level - equation.level) > equation.level * kSame) {
    set_level(index, level);
  }
}

void Bottlenecks::repair() {
  repairing_ = true;
  for (Waiting& waiting : waiting_) waiting.level = order_of(waiting.resource);
  std::make_heap(waiting_.begin(), waiting_.end());
  // Taken in order, each resource settles a few times at most. The budget only guards against endless swapping between
  // limits that differ by rounding.
  constexpr std::size_t kTurns = 64;
  std::size_t most = waiting_.size();
  std::size_t budget = kTurns * (1 + most);
  while (!waiting_.empty()) {
    std::pop_heap(waiting_.begin(), waiting_.end());
    const std::uint32_t index = waiting_.back().resource;
    waiting_.pop_back();
    if (budget == 0) {
      refill(index);
      is_waiting_[index] = 0;
      budget = kTurns * (1 + most);
      continue;
    }
    --budget;
    const double order = order_of(index);
    if (!waiting_.empty() && order > waiting_.front().level) {
      waiting_.push_back({order, index});
      std::push_heap(waiting_.begin(), waiting_.end());
      continue;
    }
    settle(index);
    if (waiting_.size() > most) {
      budget += kTurns * (waiting_.size() - most);
      most = waiting_.size();
    }
  }
  repairing_ = false;
}

void Bottlenecks::solve() {
  if (!changed()) return;
  ++solves_;
  together_.clear();
  for (const std::uint32_t slot : starting_) {
    const Activity& activity = activities_[slot];
    if (!activity.running || activity.limit != kNone) continue;
    if (alone(activity) || fits_at_cap(activity)) {
      insert(slot);
    } else {
      together_.push_back(slot);
    }
  }
  starting_.clear();
  // Many newcomers at once change the structure as a whole: filling afresh is cheaper than one by one.
  constexpr std::size_t kMany = 8;
  if (together_.size() >= kMany && 4 * together_.size() >= running_) {
    for (const std::uint32_t slot : together_) {
      if (activities_[slot].limit == kNone) refill_from_activity(slot);
    }
  } else {
    for (const std::uint32_t slot : together_) {
      if (activities_[slot].limit == kNone) insert(slot);
    }
  }
  repair();
}

// ---- filling a component from nothing ----

void Bottlenecks::refill(std::uint32_t resource) {
  ++visit_;
  component_resources_.clear();
  component_activities_.clear();
  visit_resource(resource);
  walk_component();
}

void Bottlenecks::refill_from_activity(std::uint32_t slot) {
  ++visit_;
  component_resources_.clear();
  component_activities_.clear();
  visit_activity(slot);
  walk_component();
}

void Bottlenecks::visit_resource(std::uint32_t index) {
  resource_visit_[index] = visit_;
  component_resources_.push_back(index);
  open_load_[index] = 0;
  open_count_[index] = 0;
}

void Bottlenecks::visit_activity(std::uint32_t slot) {
  activity_visit_[slot] = visit_;
  component_activities_.push_back(slot);
  for (const Use& use : uses_of(activities_[slot])) {
    if (resource_visit_[use.resource] != visit_) visit_resource(use.resource);
    open_load_[use.resource] += use.load;
    ++open_count_[use.resource];
  }
}

void Bottlenecks::walk_component() {
  for (std::size_t r = 0; r < component_resources_.size(); ++r) {
    for (const Member& member : members_of(component_resources_[r])) {
      if (activity_visit_[member.activity] != visit_) visit_activity(member.activity);
    }
  }
  ++refills_;
  for (const std::uint32_t slot : component_activities_) {
    Activity& activity = activities_[slot];
    activity.left = remaining(slot);
    activity.since = now_;
    if (activity.limit == kOwnCap) {
      ++activity.generation;
      --capped_count_;
    }
  }
  for (const std::uint32_t slot : component_activities_) set_limit(slot, kNone);
  for (const std::uint32_t index : component_resources_) {
    limiters_[index].activities.clear();
    limiters_[index].influence.clear();
    limiters_[index].influence_known = false;
    equations_[index] = {resources_[index].capacity, kInfinite, 0, 0};
    resources_[index].own_count = 0;
    retime(index);
  }
  fill();
}

/// Progressive filling: the level of all open activities rises until a resource is used up or a cap is reached, whose
/// activities are then fixed. Fixing activities never lowers the level at which another resource is used up, so a heap
/// entry that has become too low is found on top and put back.
void Bottlenecks::fill() {
  resource_heap_.clear();
  cap_heap_.clear();
  for (const std::uint32_t index : component_resources_) {
    if (open_count_[index] > 0) resource_heap_.push_back({resources_[index].capacity / open_load_[index], index});
  }
  for (const std::uint32_t slot : component_activities_) {
    if (activities_[slot].cap_level < kInfinite) cap_heap_.push_back({activities_[slot].cap_level, slot});
  }
  std::make_heap(resource_heap_.begin(), resource_heap_.end());
  std::make_heap(cap_heap_.begin(), cap_heap_.end());
  double level = 0;
  for (std::size_t open = component_activities_.size(); open > 0;) {
    while (!cap_heap_.empty() && activities_[cap_heap_.front().resource].limit != kNone) {
      std::pop_heap(cap_heap_.begin(), cap_heap_.end());
      cap_heap_.pop_back();
    }
    const double cap_level = cap_heap_.empty() ? kInfinite : cap_heap_.front().level;
    const double resource_level = resource_heap_.empty() ? kInfinite : resource_heap_.front().level;
    if (cap_level <= resource_level) {
      ensure(cap_level < kInfinite, "an activity is bounded by nothing");
      level = std::max(level, cap_level);
      const std::uint32_t slot = cap_heap_.front().resource;
      limit_by_cap(slot, activities_[slot].left);
      fix(slot, cap_level);
      --open;
      continue;
    }
    std::pop_heap(resource_heap_.begin(), resource_heap_.end());
    const std::uint32_t index = resource_heap_.back().resource;
    Equation& equation = equations_[index];
    if (open_count_[index] == 0) {
      resource_heap_.pop_back();
      continue;
    }
    const double left = std::max(0.0, equation.left);
    const double true_level = std::max(level, left / open_load_[index]);
    if (true_level > resource_level) {
      resource_heap_.back().level = true_level;
      std::push_heap(resource_heap_.begin(), resource_heap_.end());
      continue;
    }
    resource_heap_.pop_back();
    // Summed afresh: the running difference loses digits when most of the load has been fixed.
    double load = 0;
    for (const Member& member : members_of(index)) {
      if (member.limit == kNone) load += member.load;
    }
    level = std::max(level, left / load);
    equation.level = level;
    for (const Member& member : members_of(index)) {
      if (member.limit != kNone) continue;
      limit_by_resource(member.activity, index, member.load, activities_[member.activity].left);
      fix(member.activity, level);
      --open;
    }
  }
}

/// Tells the resources of an activity, limited just now, what it takes of them.
void Bottlenecks::fix(std::uint32_t slot, double level) {
  const Activity& activity = activities_[slot];
  for (const Use& use : uses_of(activity)) {
    open_load_[use.resource] -= use.load;
    --open_count_[use.resource];
    if (use.resource == activity.limit) continue;
    equations_[use.resource].left -= use.load * level;
    equations_[use.resource].external_top = level;
  }
}

// ---- ends ----

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
