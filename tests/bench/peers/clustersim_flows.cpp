// The traffic of the comparison on the sharing solver: one resource per directed link, phases with a barrier.
#include <memory>
#include <vector>

#include "sim/errors.hpp"
#include "sim/fluid.hpp"
#include "tests/bench/peers/paths.hpp"
#include "tests/bench/peers/patterns.hpp"
#include "tests/bench/peers/program.hpp"

namespace clustersim::peers {
namespace {

class FlowRun final : private EventHandler, private FluidListener {
 public:
  explicit FlowRun(const Options& options)
      : pattern_(options.traffic),
        paths_(make_paths(options.topology, options.traffic.hosts)),
        report_("clustersim", options),
        fluid_(simulation_) {
    links_.reserve(paths_->links());
    for (std::size_t i = 0; i < paths_->links(); ++i) links_.push_back(fluid_.add_resource(options.traffic.bandwidth));
  }

  void run() {
    report_.start_run();
    start_phase();
    simulation_.run();
    ensure(phase_ == pattern_.phases() && unfinished_ == 0, "{} flows never finished", unfinished_);
    report_.finish(to_seconds(simulation_.now()), fluid_.solves());
  }

 private:
  void start_phase() {
    pattern_.next(flows_);
    ++phase_;
    phase_start_ = simulation_.now();
    times_.resize(flows_.size());
    unfinished_ = flows_.size();
    next_ = 0;
    start_due();
  }

  /// Starts what begins now, and comes back for the next.
  void start_due() {
    while (next_ < flows_.size() && phase_start_ + flows_[next_].start <= simulation_.now()) {
      const Flow& flow = flows_[next_];
      paths_->find(flow.source, flow.destination, path_);
      uses_.clear();
      for (const std::uint32_t link : path_) uses_.push_back({links_[link]});
      times_[next_].start = to_seconds(simulation_.now());
      fluid_.start({.amount = static_cast<double>(flow.bytes), .uses = uses_}, *this, next_);
      ++next_;
    }
    if (next_ < flows_.size()) simulation_.schedule(phase_start_ + flows_[next_].start, *this);
  }

  void on_event(std::uint64_t) override { start_due(); }

  void on_activity_done(ActivityId, std::uint64_t flow) override {
    times_[flow].finish = to_seconds(simulation_.now());
    if (--unfinished_ > 0) return;
    report_.add_phase(flows_, times_);
    if (phase_ < pattern_.phases()) start_phase();
  }

  Pattern pattern_;
  std::unique_ptr<Paths> paths_;
  Report report_;
  Simulation<Picoseconds> simulation_;
  Fluid fluid_;
  std::vector<ResourceId> links_;

  std::size_t phase_ = 0;  // how many were started
  Picoseconds phase_start_{0};
  std::vector<Flow> flows_;  // of the present phase, as are the times
  std::vector<Times> times_;
  std::size_t next_ = 0;  // the first flow that has not started
  std::size_t unfinished_ = 0;
  Path path_;
  std::vector<Use> uses_;
};

}  // namespace
}  // namespace clustersim::peers

int main(int argc, char** argv) {
  using namespace clustersim::peers;
  return run_program(argc, argv, "Traffic on clustersim's sharing solver", {},
                     [](const Options& options) { FlowRun(options).run(); });
}
