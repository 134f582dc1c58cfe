// Means with confidence intervals, quantiles, and averages over time.
#include "sim/statistics.hpp"

#include <algorithm>
#include <boost/math/distributions/chi_squared.hpp>
#include <boost/math/distributions/students_t.hpp>
#include <cmath>
#include <limits>

#include "sim/errors.hpp"

namespace clustersim {

void SampleStatistics::add(double sample) {
  // Welford, Technometrics 4 (1962): no cancellation between the sum of squares and the square of the sum.
  ++count_;
  const double before = sample - mean_;
  mean_ += before / static_cast<double>(count_);
  squares_ += before * (sample - mean_);
  minimum_ = count_ == 1 ? sample : std::min(minimum_, sample);
  maximum_ = count_ == 1 ? sample : std::max(maximum_, sample);
}

double SampleStatistics::variance() const { return count_ < 2 ? 0 : squares_ / static_cast<double>(count_ - 1); }

double SampleStatistics::standard_deviation() const { return std::sqrt(variance()); }

Interval SampleStatistics::confidence_interval(double confidence) const {
  ensure(confidence > 0 && confidence < 1, "confidence {} is outside (0, 1)", confidence);
  if (count_ < 2) return {-std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
  const boost::math::students_t distribution(static_cast<double>(count_ - 1));
  const double factor = boost::math::quantile(boost::math::complement(distribution, (1 - confidence) / 2));
  const double half_width = factor * std::sqrt(variance() / static_cast<double>(count_));
  return {mean_ - half_width, mean_ + half_width};
}

double percentile(std::span<const double> samples, double q) {
  ensure(!samples.empty(), "percentile of no samples");
  ensure(q >= 0 && q <= 1, "percentile {} is outside [0, 1]", q);
  // Hyndman and Fan, The American Statistician 50 (1996), definition 7: position (n - 1) q between order statistics.
  std::vector<double> sorted(samples.begin(), samples.end());
  const double position = q * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(position);
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(below);
  std::nth_element(sorted.begin(), middle, sorted.end());
  if (below + 1 == sorted.size()) return *middle;
  const double next = *std::min_element(middle + 1, sorted.end());
  return *middle + (position - static_cast<double>(below)) * (next - *middle);
}

Interval poisson_interval(std::uint64_t count, double confidence) {
  ensure(confidence > 0 && confidence < 1, "confidence {} is outside (0, 1)", confidence);
  // Garwood, Biometrika 28 (1936): the Poisson tail sums are chi-squared tails with 2k and 2k + 2 degrees of freedom.
  const double tail = (1 - confidence) / 2;
  const auto k = static_cast<double>(count);
  Interval interval;
  if (count > 0) interval.low = boost::math::quantile(boost::math::chi_squared(2 * k), tail) / 2;
  interval.high = boost::math::quantile(boost::math::complement(boost::math::chi_squared(2 * k + 2), tail)) / 2;
  return interval;
}

void TimeWeighted::set(Picoseconds now, double value) {
  if (start_.count() < 0) {
    start_ = now;
    maximum_ = value;
  } else {
    integral_ = integral(now);
    maximum_ = std::max(maximum_, value);
  }
  last_ = now;
  value_ = value;
}

double TimeWeighted::integral(Picoseconds now) const {
  if (start_.count() < 0) return 0;
  ensure(now >= last_, "time average asked for {} ps before its last change", (last_ - now).count());
  return integral_ + value_ * to_seconds(now - last_);
}

double TimeWeighted::mean(Picoseconds now) const {
  // An average over no time is the value itself.
  if (start_.count() < 0 || now == start_) return value_;
  return integral(now) / to_seconds(now - start_);
}

}  // namespace clustersim
