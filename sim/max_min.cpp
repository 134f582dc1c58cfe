// The reference allocation: progressive filling written out plainly, sharing no code with the incremental solver.
#include <algorithm>
#include <cmath>

#include "sim/fluid.hpp"

namespace clustersim {
namespace {

/// Level (rate / weight) at which each resource would be used up if all open activities rose together.
std::vector<double> saturation_levels(const MaxMinProblem& problem, const std::vector<double>& weight,
                                      const std::vector<double>& rate, const std::vector<bool>& open) {
  std::vector<double> left = problem.capacity;
  std::vector<double> demand(problem.capacity.size(), 0);
  for (std::size_t a = 0; a < problem.uses.size(); ++a) {
    for (const Use& use : problem.uses[a]) {
      if (open[a]) {
        demand[use.resource.index()] += use.coefficient * weight[a];
      } else {
        left[use.resource.index()] -= use.coefficient * rate[a];
      }
    }
  }
  std::vector<double> level(left.size(), HUGE_VAL);
  for (std::size_t r = 0; r < left.size(); ++r) {
    if (demand[r] > 0) level[r] = std::max(0.0, left[r]) / demand[r];
  }
  return level;
}

bool uses_resource(const std::vector<Use>& uses, std::size_t resource) {
  return std::any_of(uses.begin(), uses.end(), [&](const Use& use) { return use.resource.index() == resource; });
}

}  // namespace

std::vector<double> max_min_rates(const MaxMinProblem& problem) {
  const std::size_t count = problem.uses.size();
  const std::vector<double> weight = problem.weight.empty() ? std::vector<double>(count, 1.0) : problem.weight;
  const std::vector<double> cap = problem.rate_cap.empty() ? std::vector<double>(count, HUGE_VAL) : problem.rate_cap;
  ensure(weight.size() == count && cap.size() == count, "max-min problem with lists of different lengths");
  std::vector<double> rate(count, 0);
  std::vector<bool> open(count, true);
  while (std::find(open.begin(), open.end(), true) != open.end()) {
    const std::vector<double> level = saturation_levels(problem, weight, rate, open);
    const auto tightest = std::min_element(level.begin(), level.end());
    const double resource_level = tightest == level.end() ? HUGE_VAL : *tightest;
    std::size_t first_capped = count;
    for (std::size_t a = 0; a < count; ++a) {
      const bool lower = first_capped == count || cap[a] / weight[a] < cap[first_capped] / weight[first_capped];
      if (open[a] && lower) first_capped = a;
    }
    if (cap[first_capped] / weight[first_capped] <= resource_level) {
      ensure(std::isfinite(cap[first_capped]), "activity {} is bounded by nothing", first_capped);
      rate[first_capped] = cap[first_capped];
      open[first_capped] = false;
      continue;
    }
    const auto saturated = static_cast<std::size_t>(tightest - level.begin());
    for (std::size_t a = 0; a < count; ++a) {
      if (!open[a] || !uses_resource(problem.uses[a], saturated)) continue;
      rate[a] = resource_level * weight[a];
      open[a] = false;
    }
  }
  return rate;
}

}  // namespace clustersim
