// Random streams: the generator's published vectors, independence of streams, and the shape of each distribution.
#include "sim/random.hpp"

#include <Random123/philox.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <vector>

#include "sim/errors.hpp"
#include "sim/statistics.hpp"
#include "tests/catch.hpp"

using namespace clustersim;

TEST_CASE("Philox4x32-10 gives its known answers") {
  // kat_vectors of Random123 1.14: philox4x32 10
  using Philox = r123::Philox4x32;
  const auto check = [](Philox::ctr_type counter, Philox::key_type key, Philox::ctr_type expected) {
    CHECK(Philox()(counter, key) == expected);
  };
  check({{0, 0, 0, 0}}, {{0, 0}}, {{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}});
  check({{~0U, ~0U, ~0U, ~0U}}, {{~0U, ~0U}}, {{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}});
  check({{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}}, {{0xa4093822, 0x299f31d0}},
        {{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}});
}

TEST_CASE("mix64 is SplitMix64") { CHECK(mix64(0) == 0xe220a8397b1dcdafULL); }

TEST_CASE("a stream is Philox with key (seed, purpose) and counter (draw, entity)") {
  std::uint64_t name = 0xcbf29ce484222325ULL;  // FNV-1a of the purpose
  for (const char c : std::string("failure/gpu")) name = (name ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  const std::uint64_t key = mix64(42, name);
  RandomStream stream(42, "failure/gpu", 0x500000003ULL);
  for (std::uint32_t draw = 0; draw < 4; ++draw) {
    const auto block = r123::Philox4x32()({{draw, 0, 3, 5}},
                                          {{static_cast<std::uint32_t>(key), static_cast<std::uint32_t>(key >> 32U)}});
    CHECK(stream.bits() == (std::uint64_t{block[1]} << 32U | block[0]));
    CHECK(stream.bits() == (std::uint64_t{block[3]} << 32U | block[2]));
  }
}

TEST_CASE("streams differ by seed, purpose and entity, and a copy repeats") {
  RandomStream a(1, "x", 0);
  RandomStream copy = a;
  const std::uint64_t first = a.bits();
  CHECK(copy.bits() == first);
  CHECK(RandomStream(2, "x", 0).bits() != first);
  CHECK(RandomStream(1, "y", 0).bits() != first);
  CHECK(RandomStream(1, "x", 1).bits() != first);
}

TEST_CASE("below is uniform and in range") {
  RandomStream stream(3, "below");
  // 6 faces, 60,000 throws: chi-squared with 5 degrees of freedom is below 20.5 with probability 0.999.
  std::vector<double> faces(6, 0);
  for (int i = 0; i < 60000; ++i) ++faces[stream.below(6)];
  double chi_squared = 0;
  for (const double count : faces) chi_squared += (count - 10000) * (count - 10000) / 10000;
  CHECK(chi_squared < 20.5);
  // A bound just above 2^63: half of all raw values would be rejected by a sloppy method, or biased.
  const std::uint64_t bound = (std::uint64_t{1} << 63U) + 1;
  for (int i = 0; i < 1000; ++i) CHECK(stream.below(bound) < bound);
  CHECK(stream.below(1) == 0);
  CHECK_THROWS_AS(stream.below(0), BrokenContract);
}

TEST_CASE("moments of the distributions") {
  // 200,000 draws: the mean lies within 5 standard errors with probability 1 - 6e-7; the streams are fixed by the seed.
  RandomStream stream(4, "moments");
  const auto mean_is = [&](auto draw, double mean, double deviation) {
    SampleStatistics samples;
    for (int i = 0; i < 200000; ++i) samples.add(draw());
    INFO("mean " << samples.mean() << " expected " << mean);
    CHECK(std::abs(samples.mean() - mean) < 5 * deviation / std::sqrt(200000.0));
    CHECK(samples.standard_deviation() == Approx(deviation).epsilon(0.03));
  };
  mean_is([&] { return stream.uniform(); }, 0.5, std::sqrt(1.0 / 12));
  mean_is([&] { return stream.exponential(3); }, 3, 3);
  mean_is([&] { return stream.normal(); }, 0, 1);
  // lognormal: mean exp(mu + s^2/2), variance (exp(s^2) - 1) exp(2 mu + s^2)
  mean_is([&] { return stream.lognormal(0.5, 0.4); }, std::exp(0.58), std::sqrt((std::exp(0.16) - 1) * std::exp(1.16)));
  // Weibull: scale Gamma(1 + 1/k), variance scale^2 (Gamma(1 + 2/k) - Gamma(1 + 1/k)^2)
  const double g1 = std::tgamma(1 + 1 / 1.5);
  const double g2 = std::tgamma(1 + 2 / 1.5);
  mean_is([&] { return stream.weibull(1.5, 2); }, 2 * g1, 2 * std::sqrt(g2 - g1 * g1));
}

TEST_CASE("uniform never returns an end") {
  RandomStream stream(5, "ends");
  for (int i = 0; i < 100000; ++i) {
    const double u = stream.uniform();
    REQUIRE(u > 0);
    REQUIRE(u < 1);
  }
}

TEST_CASE("std::shuffle accepts a stream") {
  std::vector<int> values(100);
  std::iota(values.begin(), values.end(), 0);
  const std::vector<int> original = values;
  RandomStream stream(6, "shuffle");
  std::shuffle(values.begin(), values.end(), stream);
  CHECK(values != original);
  CHECK(std::is_permutation(values.begin(), values.end(), original.begin()));
}
