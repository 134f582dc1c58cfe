// The hold model on SimGrid's kernel timers: its event queue without actors and activities.
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/s4u.hpp>

#include "tests/bench/peers/hold.hpp"

namespace clustersim::peers {
namespace {

void set_timer(Hold& hold) {
  const double date = simgrid::s4u::Engine::get_clock() + hold.increments()[hold.next()];
  simgrid::kernel::timer::Timer::set(date, [&hold] {
    // The rest runs out.
    if (!hold.over() && hold.count()) set_timer(hold);
  });
}

}  // namespace
}  // namespace clustersim::peers

int main(int argc, char** argv) {
  namespace s4u = simgrid::s4u;
  s4u::Engine engine(&argc, argv);
  clustersim::peers::Hold hold(argc, argv);
  auto* const zone = s4u::create_star_zone("zone");
  auto* const host = zone->create_host("host", 1e9)->seal();
  zone->seal();
  for (std::uint64_t i = 0; i < hold.pending(); ++i) clustersim::peers::set_timer(hold);
  // Timers alone do not keep the engine running.
  s4u::Actor::create("keeper", host, [&hold] {
    while (!hold.over()) s4u::this_actor::sleep_for(1e3);
  });
  engine.run();
  hold.report("simgrid");
}
