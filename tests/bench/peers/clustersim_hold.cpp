// The hold model on clustersim's simulation loop.
#include <vector>

#include "sim/simulation.hpp"
#include "tests/bench/peers/hold.hpp"

namespace clustersim::peers {
namespace {

class Timers final : public EventHandler {
 public:
  explicit Timers(Hold& hold) : hold_(hold) {
    for (const double increment : hold.increments()) increments_.push_back(from_seconds<Picoseconds>(increment));
    for (std::uint64_t i = 0; i < hold.pending(); ++i) schedule();
  }
  void on_event(std::uint64_t) override {
    // The rest runs out.
    if (!hold_.over() && hold_.count()) schedule();
  }
  void run() { simulation_.run(); }

 private:
  void schedule() { simulation_.schedule_after(increments_[hold_.next()], *this); }

  Hold& hold_;
  Simulation<Picoseconds> simulation_;
  std::vector<Picoseconds> increments_;
};

}  // namespace
}  // namespace clustersim::peers

int main(int argc, char** argv) {
  using namespace clustersim::peers;
  return run_hold(argc, argv, "clustersim", [](Hold& hold) { Timers(hold).run(); });
}
