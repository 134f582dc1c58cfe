// Counter-based random streams: a stream is a function of (seed, purpose, entity), never of call order elsewhere.
#pragma once

#include <cstdint>
#include <string_view>

namespace clustersim {

/// 64 well-mixed bits of the arguments; the one hash used for colours, ECMP and streams (SplitMix64 finalizer).
constexpr std::uint64_t mix64(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}
constexpr std::uint64_t mix64(std::uint64_t a, std::uint64_t b) { return mix64(mix64(a) ^ b); }

/// Random numbers from Philox4x32-10 (Random123; Salmon et al., SC 2011). Copyable; the state is a key and a counter.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::string_view purpose, std::uint64_t entity = 0);
  std::uint64_t bits();                      // 64 uniform bits
  double uniform();                          // in the open interval (0, 1)
  std::uint64_t below(std::uint64_t bound);  // unbiased in [0, bound); bound > 0
  double exponential(double mean);
  double normal();  // standard normal
  double lognormal(double mu, double sigma);
  double weibull(double shape, double scale);

  // UniformRandomBitGenerator, so that std::shuffle and friends accept a stream.
  using result_type = std::uint64_t;
  static constexpr result_type min() { return 0; }
  static constexpr result_type max() { return ~std::uint64_t{0}; }
  result_type operator()() { return bits(); }

 private:
  std::uint64_t key_;
  std::uint64_t entity_;
  std::uint64_t counter_ = 0;
  std::uint64_t spare_ = 0;
  bool has_spare_ = false;
};

}  // namespace clustersim
