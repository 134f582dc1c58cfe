// Any bytes as a scenario file: parsed and checked, not simulated. Only BadInput and Infeasible may come out.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "scenarios/scenario.hpp"
#include "sim/errors.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  clustersim::Scenario scenario;
  try {
    scenario = clustersim::load_scenario_text(text, "fuzz.toml");
  } catch (const clustersim::BadInput&) {
    return 0;
  } catch (const clustersim::Infeasible&) {
    return 0;
  }
  // What was accepted is written out in full; that must be accepted too, and mean the same.
  const clustersim::Scenario again = clustersim::load_scenario_text(scenario.resolved_text, "resolved.toml");
  if (again.hash != scenario.hash) __builtin_trap();
  return 0;
}
