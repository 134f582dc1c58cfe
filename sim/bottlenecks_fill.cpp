// Fills a connected component of resources and activities from nothing.
#include "sim/bottlenecks.hpp"

#include <algorithm>
#include <cmath>

namespace clustersim {

void Bottlenecks::refill_from_resource(std::uint32_t index) {
  begin_component();
  visit_resource(index);
  refill_component();
}

void Bottlenecks::refill_from_activity(std::uint32_t slot) {
  begin_component();
  visit_activity(slot);
  refill_component();
}

void Bottlenecks::begin_component() {
  ++visit_;
  component_resources_.clear();
  component_activities_.clear();
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

/// Walks the rest of the component and fills it.
void Bottlenecks::refill_component() {
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

}  // namespace clustersim
