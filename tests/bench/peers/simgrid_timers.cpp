// The hold model on SimGrid's kernel timers: its event queue without actors and activities.
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include "tests/bench/peers/hold.hpp"

namespace clustersim::peers {
namespace {

namespace s4u = simgrid::s4u;

void set_timer(Hold& hold) {
  const double date = s4u::Engine::get_clock() + hold.increments()[hold.next()];
  simgrid::kernel::timer::Timer::set(date, [&hold] {
    // The rest runs out.
    if (!hold.over() && hold.count()) set_timer(hold);
  });
}

void run_timers(s4u::Engine& engine, Hold& hold) {
  auto* const zone = s4u::create_star_zone("zone");
  auto* const host = zone->create_host("host", 1e9)->seal();
  zone->seal();
  for (std::uint64_t i = 0; i < hold.pending(); ++i) set_timer(hold);
  // Timers alone do not keep the engine running.
  s4u::Actor::create("keeper", host, [&hold] {
    while (!hold.over()) s4u::this_actor::sleep_for(1e3);
  });
  engine.run();
}

}  // namespace
}  // namespace clustersim::peers

int main(int argc, char** argv) {
  using namespace clustersim::peers;
  simgrid::s4u::Engine engine(&argc, argv);
  return run_hold(argc, argv, "simgrid", [&engine](Hold& hold) { run_timers(engine, hold); });
}
