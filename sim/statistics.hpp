// Numbers about numbers: mean with confidence interval, percentiles, time-weighted averages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/units.hpp"

namespace clustersim {

struct Interval {
  double low = 0;
  double high = 0;
};

/// Mean and variance of independent samples (Welford), with a Student-t confidence interval of the mean.
class SampleStatistics {
 public:
  void add(double sample);
  [[nodiscard]] std::size_t count() const { return count_; }
  [[nodiscard]] double mean() const { return mean_; }
  [[nodiscard]] double variance() const;  // unbiased; 0 for fewer than two samples
  [[nodiscard]] double standard_deviation() const;
  [[nodiscard]] double minimum() const { return minimum_; }
  [[nodiscard]] double maximum() const { return maximum_; }
  /// Two-sided interval of the mean; infinite width for fewer than two samples. confidence in (0, 1).
  [[nodiscard]] Interval confidence_interval(double confidence = 0.95) const;

 private:
  std::size_t count_ = 0;
  double mean_ = 0;
  double squares_ = 0;
  double minimum_ = 0;
  double maximum_ = 0;
};

/// The q-quantile by linear interpolation between order statistics (type 7). samples need not be sorted; q in [0, 1].
double percentile(std::span<const double> samples, double q);

/// Exact interval of a Poisson mean from an observed count (Garwood 1936).
Interval poisson_interval(std::uint64_t count, double confidence = 0.95);

/// The time average of a piecewise-constant value.
class TimeWeighted {
 public:
  void set(Picoseconds now, double value);
  [[nodiscard]] double integral(Picoseconds now) const;  // value x seconds since the first set
  [[nodiscard]] double mean(Picoseconds now) const;
  [[nodiscard]] double maximum() const { return maximum_; }

 private:
  Picoseconds start_{-1};
  Picoseconds last_{0};
  double value_ = 0;
  double integral_ = 0;
  double maximum_ = 0;
};

}  // namespace clustersim
