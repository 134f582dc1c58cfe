// Traffic that any simulator can be given: lists of flows, phase by phase, from a name, sizes and a seed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "sim/units.hpp"

namespace clustersim::peers {

struct Flow {
  std::uint32_t source = 0;
  std::uint32_t destination = 0;
  std::int64_t bytes = 0;
  Picoseconds start{0};  // after the start of its phase; never decreases within a phase
};

struct Traffic {
  std::string pattern = "permutation";
  std::uint32_t hosts = 16;
  std::int64_t bytes = 1'000'000;  // per flow; ring-all-reduce and hierarchical: the buffer of a rank
  std::uint32_t rounds = 1;        // permutation: how many at once; poisson: arrivals per host
  std::uint32_t shift = 0;         // shift: distance; 0 is half of the hosts
  std::uint32_t group = 8;         // hierarchical: hosts per group
  double jitter = 0;               // sizes are multiplied by 1 + jitter x (uniform on -1..1)
  double bandwidth = 12.5e9;       // of every link, bytes per second
  double load = 0.5;               // poisson: offered bytes as a fraction of what the hosts' links carry
  std::uint64_t seed = 42;
};

/// SplitMix64 (Steele, Lea and Flood, OOPSLA 2014): short enough to be written again in any language.
class SplitMix64 {
 public:
  explicit SplitMix64(std::uint64_t seed) : state_(seed) {}
  std::uint64_t next();
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(next() % bound); }
  double uniform() { return static_cast<double>(next() >> 11U) * 0x1p-53; }  // [0, 1)

 private:
  std::uint64_t state_;
};

/// Flows of a phase start when all flows of the phase before have finished.
class Pattern {
 public:
  /// Throws BadInput when the pattern is unknown or does not fit the number of hosts.
  explicit Pattern(const Traffic& traffic);
  [[nodiscard]] std::size_t phases() const { return phases_; }
  /// The flows of the next phase; call it phases() times.
  void next(std::vector<Flow>& flows);

 private:
  struct Entry {
    const char* name;
    void (Pattern::*fill)();
  };
  static const Entry kPatterns[];

  void add(std::uint32_t source, std::uint32_t destination, std::int64_t bytes, Picoseconds start = Picoseconds{0});
  void shuffle();
  void permutation();
  void shift();
  void poisson();
  void incast();
  void all_to_all();
  void both_neighbours();
  void ring_all_reduce();
  void hierarchical();

  Traffic traffic_;
  const Entry* entry_ = nullptr;
  std::size_t phases_ = 1;
  std::size_t phase_ = 0;
  SplitMix64 random_;
  std::vector<std::uint32_t> shuffled_;
  std::vector<Flow>* flows_ = nullptr;  // being filled
};

}  // namespace clustersim::peers
