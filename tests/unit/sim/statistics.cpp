// Intervals and averages against tables and hand calculation.
#include "sim/statistics.hpp"

#include <cmath>
#include <vector>

#include "sim/errors.hpp"
#include "sim/random.hpp"
#include "tests/catch.hpp"

using namespace clustersim;

TEST_CASE("mean, variance and Student-t interval") {
  SampleStatistics samples;
  CHECK(samples.variance() == 0);
  for (const double x : {2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0}) samples.add(x);
  CHECK(samples.count() == 8);
  CHECK(samples.mean() == Approx(5).epsilon(1e-14));
  CHECK(samples.variance() == Approx(32.0 / 7).epsilon(1e-14));  // sum of squared deviations 32, n - 1 = 7
  CHECK(samples.minimum() == 2);
  CHECK(samples.maximum() == 9);
  // t(0.975, 7) = 2.36462425 (tables)
  const Interval interval = samples.confidence_interval(0.95);
  const double half = 2.36462425159 * std::sqrt(32.0 / 7 / 8);
  CHECK(interval.low == Approx(5 - half).epsilon(1e-9));
  CHECK(interval.high == Approx(5 + half).epsilon(1e-9));
  CHECK_THROWS_AS(samples.confidence_interval(1), BrokenContract);
}

TEST_CASE("one sample tells nothing about its spread") {
  SampleStatistics samples;
  samples.add(3);
  CHECK(std::isinf(samples.confidence_interval().low));
  CHECK(std::isinf(samples.confidence_interval().high));
}

TEST_CASE("a large offset costs no digits") {
  SampleStatistics samples;
  for (const double x : {1e9 + 4, 1e9 + 7, 1e9 + 13, 1e9 + 16}) samples.add(x);
  CHECK(samples.variance() == Approx(30).epsilon(1e-9));
}

TEST_CASE("the interval covers the mean as often as it says") {
  // 2000 experiments of 5 normal samples: 95 % cover; the binomial standard deviation is 0.49 %.
  RandomStream random(1, "coverage");
  int covered = 0;
  for (int experiment = 0; experiment < 2000; ++experiment) {
    SampleStatistics samples;
    for (int i = 0; i < 5; ++i) samples.add(random.normal());
    const Interval interval = samples.confidence_interval(0.95);
    covered += interval.low <= 0 && 0 <= interval.high ? 1 : 0;
  }
  CHECK(covered / 2000.0 == Approx(0.95).margin(0.02));
}

TEST_CASE("percentiles interpolate between order statistics") {
  const std::vector<double> samples = {15, 50, 20, 40, 35};
  CHECK(percentile(samples, 0) == 15);
  CHECK(percentile(samples, 1) == 50);
  CHECK(percentile(samples, 0.5) == 35);
  CHECK(percentile(samples, 0.4) == Approx(29).epsilon(1e-12));  // position 1.6: 20 + 0.6 x 15
  CHECK(percentile(std::vector<double>{7}, 0.3) == 7);
  CHECK_THROWS_AS(percentile({}, 0.5), BrokenContract);
  CHECK_THROWS_AS(percentile(samples, 1.1), BrokenContract);
}

TEST_CASE("exact Poisson intervals") {
  // Garwood's tables: 0 -> (0, 3.689), 1 -> (0.0253, 5.572), 10 -> (4.795, 18.39)
  CHECK(poisson_interval(0).low == 0);
  CHECK(poisson_interval(0).high == Approx(-std::log(0.025)).epsilon(1e-12));  // P(0; m) = exp(-m)
  CHECK(poisson_interval(1).low == Approx(-std::log(0.975)).epsilon(1e-12));
  CHECK(poisson_interval(1).high == Approx(5.5716).epsilon(1e-4));
  CHECK(poisson_interval(10).low == Approx(4.7954).epsilon(1e-4));
  CHECK(poisson_interval(10).high == Approx(18.3904).epsilon(1e-4));
  // Normal limit: k -+ 1.96 sqrt(k)
  CHECK(poisson_interval(1'000'000).low == Approx(1e6 - 1960).epsilon(1e-5));
}

TEST_CASE("time-weighted average") {
  using namespace std::chrono_literals;
  TimeWeighted value;
  CHECK(value.mean(5s) == 0);
  value.set(1s, 10);
  CHECK(value.mean(1s) == 10);
  value.set(3s, 0);
  value.set(4s, 4);
  value.set(4s, 5);  // the last value of an instant counts
  // 10 x 2 s + 0 x 1 s + 5 x 2 s over 5 s
  CHECK(value.integral(6s) == Approx(30).epsilon(1e-15));
  CHECK(value.mean(6s) == Approx(6).epsilon(1e-15));
  CHECK(value.maximum() == 10);
  CHECK_THROWS_AS(value.integral(2s), BrokenContract);
}
