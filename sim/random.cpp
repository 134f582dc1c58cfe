// Random streams on Philox4x32-10: the key is (seed, purpose), the counter is (draw, entity).
#include "sim/random.hpp"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>

#include "sim/errors.hpp"

namespace clustersim {
namespace {

__extension__ using Wide = unsigned __int128;

/// FNV-1a: a name becomes 64 bits, the same on every machine.
std::uint64_t hash_name(std::string_view name) {
  std::uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : name) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3ULL;
  }
  return hash;
}

std::uint32_t low(std::uint64_t x) { return static_cast<std::uint32_t>(x); }
std::uint32_t high(std::uint64_t x) { return static_cast<std::uint32_t>(x >> 32U); }
std::uint64_t join(std::uint32_t low_half, std::uint32_t high_half) {
  return (std::uint64_t{high_half} << 32U) | low_half;
}

}  // namespace

RandomStream::RandomStream(std::uint64_t seed, std::string_view purpose, std::uint64_t entity)
    : key_(mix64(seed, hash_name(purpose))), entity_(entity) {}

std::uint64_t RandomStream::bits() {
  if (has_spare_) {
    has_spare_ = false;
    return spare_;
  }
  const r123::Philox4x32::ctr_type counter = {{low(counter_), high(counter_), low(entity_), high(entity_)}};
  const r123::Philox4x32::key_type key = {{low(key_), high(key_)}};
  const r123::Philox4x32::ctr_type block = r123::Philox4x32()(counter, key);
  ++counter_;
  spare_ = join(block[2], block[3]);
  has_spare_ = true;
  return join(block[0], block[1]);
}

double RandomStream::uniform() {
  // 52 bits and a half: the largest value, 1 - 2^-53, is still representable, so neither end is ever returned.
  return (static_cast<double>(bits() >> 12U) + 0.5) * 0x1.0p-52;
}

std::uint64_t RandomStream::below(std::uint64_t bound) {
  ensure(bound > 0, "a random number below 0 was asked for");
  // Lemire, "Fast Random Integer Generation in an Interval", ACM TOMACS 29 (2019): the high half of bits x bound,
  // with the few low halves that would make some values likelier drawn again.
  Wide product = Wide{bits()} * bound;
  if (static_cast<std::uint64_t>(product) < bound) {
    const std::uint64_t threshold = (0 - bound) % bound;
    while (static_cast<std::uint64_t>(product) < threshold) product = Wide{bits()} * bound;
  }
  return static_cast<std::uint64_t>(product >> 64U);
}

double RandomStream::exponential(double mean) { return -mean * std::log(uniform()); }

double RandomStream::normal() {
  // Box and Muller (1958). The second value of the pair is not kept, so that a draw depends on its index alone.
  const double radius = std::sqrt(-2.0 * std::log(uniform()));
  return radius * std::cos(2.0 * std::numbers::pi * uniform());
}

double RandomStream::lognormal(double mu, double sigma) { return std::exp(mu + sigma * normal()); }

double RandomStream::weibull(double shape, double scale) { return scale * std::pow(-std::log(uniform()), 1.0 / shape); }

}  // namespace clustersim
