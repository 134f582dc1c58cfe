// Every pattern is one function that adds the flows of the present phase, and one line in the table.
#include "tests/bench/peers/patterns.hpp"

#include <cmath>
#include <span>
#include <utility>

#include "sim/errors.hpp"

namespace clustersim::peers {

const Pattern::Entry Pattern::kPatterns[] = {
    {"permutation", &Pattern::permutation},     // every host sends to another one, `rounds` times over
    {"shift", &Pattern::shift},                 // host i to host i + shift
    {"poisson", &Pattern::poisson},             // arrivals at random times between uniform pairs
    {"incast", &Pattern::incast},               // everybody to host 0
    {"all-to-all", &Pattern::all_to_all},       // every pair
    {"neighbours", &Pattern::both_neighbours},  // to the next and to the previous host
    {"ring-all-reduce", &Pattern::ring_all_reduce},
    {"hierarchical", &Pattern::hierarchical},  // all-reduce within groups, across them, and back
};

std::uint64_t SplitMix64::next() {
  std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
  z = (z ^ (z >> 30U)) * 0xBF58476D1CE4E5B9U;
  z = (z ^ (z >> 27U)) * 0x94D049BB133111EBU;
  return z ^ (z >> 31U);
}

Pattern::Pattern(const Traffic& traffic) : traffic_(traffic), random_(traffic.seed) {
  std::vector<std::string> names;
  for (const Entry& entry : kPatterns) {
    names.emplace_back(entry.name);
    if (traffic.pattern == entry.name) entry_ = &entry;
  }
  if (entry_ == nullptr) {
    bad_input("unknown pattern \"{}\"{}; there are: {}", traffic.pattern, did_you_mean(traffic.pattern, names),
              fmt::join(names, ", "));
  }
  if (traffic.hosts < 2) bad_input("{} hosts; a pattern needs at least 2", traffic.hosts);
  if (traffic.bytes < traffic.hosts) bad_input("{} bytes; at least one per host is needed", traffic.bytes);
  if (!(traffic.jitter >= 0 && traffic.jitter < 1)) bad_input("jitter {}, outside 0 to below 1", traffic.jitter);
  if (!(traffic.bandwidth > 0 && traffic.load > 0)) {
    bad_input("bandwidth {} and load {}; both are above 0", traffic.bandwidth, traffic.load);
  }
  const std::size_t hosts = traffic.hosts;
  const std::size_t group = traffic.group;
  if (entry_->fill == &Pattern::ring_all_reduce) phases_ = 2 * (hosts - 1);
  if (entry_->fill == &Pattern::hierarchical) {
    if (group < 2 || hosts % group != 0) bad_input("groups of {} hosts out of {}", group, hosts);
    phases_ = 2 * (group - 1) + 2 * (hosts / group - 1);
  }
}

void Pattern::next(std::vector<Flow>& flows) {
  ensure(phase_ < phases_, "phase {} of {}", phase_, phases_);
  flows.clear();
  flows_ = &flows;
  (this->*entry_->fill)();
  ++phase_;
}

void Pattern::add(std::uint32_t source, std::uint32_t destination, std::int64_t bytes, Picoseconds start) {
  if (traffic_.jitter > 0) {
    const double factor = 1 + traffic_.jitter * (2 * random_.uniform() - 1);
    bytes = static_cast<std::int64_t>(static_cast<double>(bytes) * factor);
  }
  flows_->push_back({source, destination, bytes, start});
}

/// Fisher-Yates; then nobody may be its own destination.
void Pattern::shuffle() {
  const std::uint32_t hosts = traffic_.hosts;
  shuffled_.resize(hosts);
  for (std::uint32_t i = 0; i < hosts; ++i) shuffled_[i] = i;
  for (std::uint32_t i = hosts - 1; i > 0; --i) std::swap(shuffled_[i], shuffled_[random_.below(i + 1)]);
  for (std::uint32_t i = 0; i < hosts; ++i) {
    if (shuffled_[i] == i) std::swap(shuffled_[i], shuffled_[(i + 1) % hosts]);
  }
}

void Pattern::permutation() {
  for (std::uint32_t round = 0; round < traffic_.rounds; ++round) {
    shuffle();
    for (std::uint32_t i = 0; i < traffic_.hosts; ++i) add(i, shuffled_[i], traffic_.bytes);
  }
}

void Pattern::shift() {
  const std::uint32_t distance = traffic_.shift > 0 ? traffic_.shift : traffic_.hosts / 2;
  for (std::uint32_t i = 0; i < traffic_.hosts; ++i) add(i, (i + distance) % traffic_.hosts, traffic_.bytes);
}

void Pattern::poisson() {
  const std::uint32_t hosts = traffic_.hosts;
  const double gap = static_cast<double>(traffic_.bytes) / (traffic_.bandwidth * traffic_.load * hosts);
  double seconds = 0;
  for (std::uint64_t i = 0; i < std::uint64_t{traffic_.rounds} * hosts; ++i) {
    seconds += -gap * std::log1p(-random_.uniform());
    const std::uint32_t source = random_.below(hosts);
    const std::uint32_t destination = (source + 1 + random_.below(hosts - 1)) % hosts;
    add(source, destination, traffic_.bytes, from_seconds<Picoseconds>(seconds));
  }
}

void Pattern::incast() {
  for (std::uint32_t i = 1; i < traffic_.hosts; ++i) add(i, 0, traffic_.bytes);
}

void Pattern::all_to_all() {
  for (std::uint32_t distance = 1; distance < traffic_.hosts; ++distance) {
    for (std::uint32_t i = 0; i < traffic_.hosts; ++i) add(i, (i + distance) % traffic_.hosts, traffic_.bytes);
  }
}

void Pattern::both_neighbours() {
  for (std::uint32_t i = 0; i < traffic_.hosts; ++i) {
    add(i, (i + 1) % traffic_.hosts, traffic_.bytes);
    add(i, (i + traffic_.hosts - 1) % traffic_.hosts, traffic_.bytes);
  }
}

/// One of the 2 (hosts - 1) steps: everybody passes a part of its buffer on.
void Pattern::ring_all_reduce() {
  for (std::uint32_t i = 0; i < traffic_.hosts; ++i) {
    add(i, (i + 1) % traffic_.hosts, traffic_.bytes / traffic_.hosts);
  }
}

/// Ring reduce-scatter in each group, ring all-reduce among hosts of equal place in their groups, ring all-gather.
void Pattern::hierarchical() {
  const std::uint32_t group = traffic_.group;
  const std::uint32_t groups = traffic_.hosts / group;
  const std::size_t across_end = (group - 1) + 2 * std::size_t{groups - 1};
  const bool within = phase_ < group - 1 || phase_ >= across_end;
  for (std::uint32_t i = 0; i < traffic_.hosts; ++i) {
    if (within) {
      add(i, i / group * group + (i % group + 1) % group, traffic_.bytes / group);
    } else {
      add(i, (i + group) % traffic_.hosts, traffic_.bytes / group / groups);
    }
  }
}

}  // namespace clustersim::peers
