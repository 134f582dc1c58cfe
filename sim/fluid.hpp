// Activities share resources by weighted max-min fairness: one solver for links, NICs, disks and servers.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <vector>

#include "sim/ids.hpp"
#include "sim/simulation.hpp"
#include "sim/units.hpp"

namespace clustersim {

using ResourceId = Id<struct ResourceTag>;

/// One activity at rate r takes coefficient x r of the resource's capacity. coefficient > 0 and finite.
struct Use {
  ResourceId resource;
  double coefficient = 1.0;
};

/// Names a started activity; slots are reused, so an id is dead once its activity has finished or was cancelled.
struct ActivityId {
  std::uint32_t slot = ~std::uint32_t{0};
  std::uint32_t generation = 0;
  bool operator==(const ActivityId&) const = default;
};

/// Told when an activity has delivered its whole amount. `payload` is the number given to start().
class FluidListener {
 public:
  virtual void on_activity_done(ActivityId id, std::uint64_t payload) = 0;

 protected:
  ~FluidListener() = default;
};

struct ActivitySpec {
  double amount = 0;       // units to move (bytes, requests); >= 0 and finite
  Picoseconds latency{0};  // before the first unit moves; no capacity is used meanwhile
  double rate_cap = std::numeric_limits<double>::infinity();  // units per second; > 0
  double weight = 1.0;                                        // share relative to others at a common bottleneck; > 0
  std::span<const Use> uses;  // copied; a resource named twice adds up. Empty needs a finite rate_cap or amount 0
};

/// Rates are the weighted max-min allocation (progressive filling; Bertsekas and Gallager, Data Networks, 6.5.2):
/// sum over activities of coefficient x rate <= capacity on each resource, and each activity is stopped either by its
/// own cap or by a saturated resource on which no other activity has a larger rate / weight.
/// All changes of one instant are solved together at the end of the instant; only what they can reach in the bottleneck
/// structure is solved again (see bottlenecks.hpp).
/// Completion is rounded once, up to the next tick of the clock, so never early; an activity is then credited with
/// exactly its amount. Completions of the same tick are told in the order the activities were started.
/// A completion beyond the range of the clock is not scheduled (the activity is as good as stalled).
/// Asking for the rate or the remainder of a dead id is a bug (BrokenContract).
class Fluid final : private EventHandler, private InstantHook {
 public:
  explicit Fluid(Simulation<Picoseconds>& simulation);
  ~Fluid();
  Fluid(const Fluid&) = delete;
  Fluid& operator=(const Fluid&) = delete;

  /// capacity in units per second; >= 0 (0 stalls whatever uses it until set_capacity raises it).
  ResourceId add_resource(double capacity);
  void set_capacity(ResourceId resource, double capacity);
  [[nodiscard]] double capacity(ResourceId resource) const;
  [[nodiscard]] std::size_t resources() const;

  ActivityId start(const ActivitySpec& spec, FluidListener& listener, std::uint64_t payload);
  /// Stops without telling the listener; what was moved so far stays accounted. False when already finished.
  bool cancel(ActivityId id);

  [[nodiscard]] double rate(ActivityId id);             // units per second now (solves if something changed)
  [[nodiscard]] double remaining(ActivityId id);        // units still to move
  [[nodiscard]] double allocated(ResourceId resource);  // sum of coefficient x rate now

  /// Units carried by the resource so far (finished activities exactly, running ones up to now).
  [[nodiscard]] double carried(ResourceId resource);
  [[nodiscard]] std::size_t active() const;             // started and not finished (latency phase included)
  [[nodiscard]] std::size_t stalled();                  // active with rate 0 after their latency
  [[nodiscard]] std::uint64_t activity_events() const;  // starts + ends + capacity changes so far
  [[nodiscard]] std::uint64_t solves() const;           // times the allocation was brought up to date
  [[nodiscard]] std::uint64_t levelled() const;         // resources whose level was set anew, over all those times
  [[nodiscard]] std::uint64_t refills() const;          // connected components that were filled from nothing

  /// Checks the allocation against its definition (within capacity, every activity bottlenecked); throws
  /// BrokenContract.
  void check_invariants();

 private:
  void on_event(std::uint64_t payload) override;
  void on_instant_end() override;
  struct Implementation;
  std::unique_ptr<Implementation> implementation_;
};

/// Reference allocation for tests and for one-off questions: rates of a fixed set of activities.
struct MaxMinProblem {
  std::vector<double> capacity;        // per resource
  std::vector<std::vector<Use>> uses;  // per activity
  std::vector<double> weight;          // per activity, empty = all 1
  std::vector<double> rate_cap;        // per activity, empty = unbounded
};
std::vector<double> max_min_rates(const MaxMinProblem& problem);

}  // namespace clustersim
