// Repair of the bottleneck structure: what a change reaches, in order of level.
#include "sim/bottlenecks.hpp"

#include <algorithm>
#include <cmath>

namespace clustersim {

namespace {

/// Levels closer than this are the same: sums of many terms do not agree to more digits.
constexpr double kSame = 1e-13;

}  // namespace

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

// ---- starting activities ----

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

// ---- influence ----

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
      refill_from_resource(index);
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

}  // namespace clustersim
