// Which algorithm an operation gets, asked for by name or the cheapest, and the plans that follow.
#include <algorithm>
#include <cmath>
#include <utility>

#include "models/collectives/layout.hpp"
#include "models/collectives/plan_basis.hpp"
#include "sim/errors.hpp"
#include "sim/text.hpp"

namespace clustersim {
namespace {

std::string group_text(const Group& group) {
  const GroupLayout layout(group, {});
  if (layout.nodes() == 1) return fmt::format("{} GPUs of one node", group.size());
  return fmt::format("{} GPUs on {} nodes", group.size(), layout.nodes());
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

// uncontended_time() from what the basis knows already.
Picoseconds uncontended(const Group& group, const CommunicationModel& model, const PlanBasis& basis,
                        CollectivePlan& plan) {
  if (plan.amount <= 0) return plan.latency;
  const double rate = std::min(plan.rate_cap, basis.rate);
  if (rate > 0 && std::isfinite(rate)) return plan.latency + from_seconds<Picoseconds>(plan.amount / rate);
  plan.uses = basis.uses;
  return uncontended_time(plan, group.cluster.network(), model);  // says which resource is in the way
}

}  // namespace

/// The algorithms that may do a collective, laid over the network.
struct GroupPlanner::Candidates {
  struct Laid {
    const CollectiveAlgorithm* algorithm = nullptr;
    PlanBasis basis;
  };
  std::vector<Laid> laid;
  bool forced = false;
};

GroupPlanner::GroupPlanner(const Group& group, const CommunicationModel& model) : group_(group), model_(model) {}
GroupPlanner::~GroupPlanner() = default;

const GroupPlanner::Candidates& GroupPlanner::candidates(Collective collective) {
  std::unique_ptr<Candidates>& known = candidates_[collective];
  if (known) return *known;
  auto found = std::make_unique<Candidates>();
  const auto lay = [&](const CollectiveAlgorithm& algorithm) {
    const Schedule schedule = algorithm.schedule(collective, group_, model_);
    found->laid.push_back({&algorithm, lay_schedule(group_, model_, schedule, schedule.pipelined)});
  };
  if (const CollectiveAlgorithm* forced = checked_forced(group_, model_, collective)) {
    found->forced = true;
    lay(*forced);
  } else {
    for (const CollectiveAlgorithm& algorithm : collective_algorithms()) {
      if (algorithm.automatic && algorithm.supports(collective, group_)) lay(algorithm);
    }
    if (found->laid.empty()) infeasible("no algorithm for {} over {}", name(collective), group_text(group_));
  }
  known = std::move(found);
  return *known;
}

CollectivePlan GroupPlanner::plan(Collective collective, Bytes bytes) {
  if (group_.size() < 2) {
    CollectivePlan empty;
    empty.algorithm = "none";
    empty.reason = "one rank has nobody to talk to";
    return empty;
  }
  const Candidates& known = candidates(collective);
  struct Sized {
    double weighed = 0;  // seconds as the library's cost model sees them
    std::size_t place = 0;
    Picoseconds time{0};
    CollectivePlan plan;  // without its uses
  };
  std::vector<Sized> sized;
  for (const Candidates::Laid& laid : known.laid) {
    CollectivePlan plan = laid.basis.without_uses(bytes);
    plan.algorithm = laid.algorithm->name;
    const Picoseconds time = known.forced ? Picoseconds{0} : uncontended(group_, model_, laid.basis, plan);
    sized.push_back({to_seconds(time) * plan.handicap, sized.size(), time, std::move(plan)});
  }
  // Of equally cheap ones the first in the table.
  std::sort(sized.begin(), sized.end(), [](const Sized& a, const Sized& b) {
    return std::pair(a.weighed, a.place) < std::pair(b.weighed, b.place);
  });
  CollectivePlan& best = sized.front().plan;
  best.uses = known.laid[sized.front().place].basis.uses;
  if (known.forced) {
    best.reason = kForced;
    return std::move(best);
  }
  if (group_text_.empty()) group_text_ = group_text(group_);
  if (sized.size() == 1) {
    best.reason = fmt::format("the only automatic algorithm for {} over {}", name(collective), group_text_);
    return std::move(best);
  }
  std::string times;
  for (const Sized& one : sized) {
    times +=
        fmt::format("{}{} {}", times.empty() ? "" : ", ", one.plan.algorithm, format_duration(to_seconds(one.time)));
  }
  best.reason = fmt::format("{} at {} over {}", times, format(bytes), group_text_);
  return std::move(best);
}

CollectivePlan plan_collective(const Group& group, const CommunicationModel& model, Collective collective,
                               Bytes bytes) {
  return GroupPlanner(group, model).plan(collective, bytes);
}

AlgorithmChoice choose_algorithm(const Group& group, const CommunicationModel& model, Collective collective,
                                 Bytes bytes) {
  const CollectiveAlgorithm* forced = checked_forced(group, model, collective);
  if (forced != nullptr) return {forced, std::string(kForced)};
  if (group.size() < 2) infeasible("no algorithm for {} over {}", name(collective), group_text(group));
  CollectivePlan plan = plan_collective(group, model, collective, bytes);
  return {&find_algorithm(plan.algorithm), std::move(plan.reason)};
}

}  // namespace clustersim
