// The traffic of the comparison on a plain solver: every start and every finish fills all links again from nothing.
// It shares no code with the engine's solver and keeps time in seconds, so it also checks the completion times.
#include <algorithm>
#include <functional>
#include <limits>
#include <memory>
#include <queue>
#include <utility>
#include <vector>

#include "tests/bench/peers/paths.hpp"
#include "tests/bench/peers/patterns.hpp"
#include "tests/bench/peers/program.hpp"

namespace clustersim::peers {
namespace {

struct Active {
  std::size_t flow = 0;
  Path path;
  double left = 0;  // bytes
  double rate = 0;  // bytes per second; negative while not yet known
};

/// Max-min fair rates by progressive filling: the link with the smallest share per flow is full first and fixes the
/// flows that cross it. Shares only grow, so a heap with stale keys finds the next one: O(path elements x log links).
class Filling {
 public:
  Filling(std::size_t links, double bandwidth) : bandwidth_(bandwidth), room_(links), open_(links), users_(links) {}

  void solve(std::vector<Active>& flows) {
    for (Active& flow : flows) {
      flow.rate = -1;
      for (const std::uint32_t link : flow.path) {
        if (open_[link]++ == 0) {
          room_[link] = bandwidth_;
          touched_.push_back(link);
        }
        users_[link].push_back(&flow);
      }
    }
    for (const std::uint32_t link : touched_) heap_.push({share(link), link});
    while (!heap_.empty()) {
      const auto [key, link] = heap_.top();
      heap_.pop();
      if (open_[link] == 0) continue;
      if (share(link) > key) {
        heap_.push({share(link), link});
      } else {
        fix_users(link);
      }
    }
    for (const std::uint32_t link : touched_) users_[link].clear();
    touched_.clear();
  }

 private:
  [[nodiscard]] double share(std::uint32_t link) const { return room_[link] / open_[link]; }

  void fix_users(std::uint32_t link) {
    const double rate = share(link);
    for (Active* flow : users_[link]) {
      if (flow->rate >= 0) continue;
      flow->rate = rate;
      for (const std::uint32_t crossed : flow->path) {
        --open_[crossed];
        room_[crossed] -= rate;
      }
    }
  }

  using Item = std::pair<double, std::uint32_t>;
  double bandwidth_;
  std::vector<double> room_;         // of each link, bytes per second not yet given away
  std::vector<std::uint32_t> open_;  // of each link, flows without a rate
  std::vector<std::vector<Active*>> users_;
  std::vector<std::uint32_t> touched_;
  std::priority_queue<Item, std::vector<Item>, std::greater<>> heap_;
};

class FlowRun {
 public:
  explicit FlowRun(const Options& options)
      : pattern_(options.traffic),
        paths_(make_paths(options.topology, options.traffic.hosts)),
        report_("reference", options),
        filling_(paths_->links(), options.traffic.bandwidth) {}

  void run() {
    report_.start_run();
    for (std::size_t phase = 0; phase < pattern_.phases(); ++phase) {
      pattern_.next(flows_);
      run_phase();
      report_.add_phase(flows_, times_);
    }
    report_.finish(now_, solves_);
  }

 private:
  void run_phase() {
    const double phase_start = now_;
    times_.assign(flows_.size(), {});
    for (std::size_t i = 0; i < flows_.size(); ++i) times_[i].start = phase_start + to_seconds(flows_[i].start);
    std::size_t next = 0;
    while (next < flows_.size() || !active_.empty()) {
      for (; next < flows_.size() && times_[next].start <= now_; ++next) start(next);
      filling_.solve(active_);
      ++solves_;
      advance(next < flows_.size() ? times_[next].start : std::numeric_limits<double>::infinity());
    }
  }

  void start(std::size_t flow) {
    Active& active = active_.emplace_back();
    active.flow = flow;
    active.left = static_cast<double>(flows_[flow].bytes);
    paths_->find(flows_[flow].source, flows_[flow].destination, active.path);
  }

  /// To the next finish or the next arrival, whichever is earlier.
  void advance(double arrival) {
    double step = arrival - now_;
    for (const Active& active : active_) step = std::min(step, active.left / active.rate);
    const double time = step == arrival - now_ ? arrival : now_ + step;
    std::size_t kept = 0;
    for (Active& active : active_) {
      // The same instant but for rounding.
      if (active.left / active.rate <= step * (1 + 1e-13)) {
        times_[active.flow].finish = time;
        continue;
      }
      active.left -= active.rate * step;
      std::swap(active_[kept++], active);
    }
    active_.resize(kept);
    now_ = time;
  }

  Pattern pattern_;
  std::unique_ptr<Paths> paths_;
  Report report_;
  Filling filling_;
  std::vector<Flow> flows_;
  std::vector<Times> times_;
  std::vector<Active> active_;
  double now_ = 0;
  std::uint64_t solves_ = 0;
};

}  // namespace
}  // namespace clustersim::peers

int main(int argc, char** argv) {
  using namespace clustersim::peers;
  return run_program(argc, argv, "Traffic on a plain max-min solver that starts anew at every event", {},
                     [](const Options& options) { FlowRun(options).run(); });
}
