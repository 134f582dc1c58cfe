// Quantities with their unit in the type: time on two integer clocks, bytes, rates, FLOPs, power, energy, money.
#pragma once

#include <chrono>
#include <compare>
#include <cstdint>
#include <string>
#include <string_view>

namespace clustersim {

/// The clock inside a training step: 64-bit picoseconds, range 106 days.
using Picoseconds = std::chrono::duration<std::int64_t, std::pico>;
/// The clock of a campaign of days to years: 64-bit microseconds, range 292,000 years.
using Microseconds = std::chrono::duration<std::int64_t, std::micro>;

/// A thin tag around a number: same-unit arithmetic and scaling only, no algebra of units.
template <class Unit, class Representation>
class Quantity {
 public:
  using representation = Representation;
  constexpr Quantity() = default;
  constexpr explicit Quantity(Representation value) : value_(value) {}
  [[nodiscard]] constexpr Representation value() const { return value_; }
  constexpr auto operator<=>(const Quantity&) const = default;
  constexpr Quantity operator-() const { return Quantity(-value_); }
  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) { return Quantity(a.value_ + b.value_); }
  friend constexpr Quantity operator-(Quantity a, Quantity b) { return Quantity(a.value_ - b.value_); }
  friend constexpr Quantity operator*(Quantity a, Representation factor) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator*(Representation factor, Quantity a) { return Quantity(a.value_ * factor); }
  friend constexpr Quantity operator/(Quantity a, Representation divisor) { return Quantity(a.value_ / divisor); }
  friend constexpr double operator/(Quantity a, Quantity b) {
    return static_cast<double>(a.value_) / static_cast<double>(b.value_);
  }

 private:
  Representation value_{};
};

using Bytes = Quantity<struct ByteUnit, std::int64_t>;
using Rate = Quantity<struct BytePerSecondUnit, double>;      // bytes per second
using Flops = Quantity<struct FlopUnit, double>;              // a count of floating-point operations
using FlopRate = Quantity<struct FlopPerSecondUnit, double>;  // FLOP/s
using Watts = Quantity<struct WattUnit, double>;
using Joules = Quantity<struct JouleUnit, double>;
using Money = Quantity<struct DollarUnit, double>;  // US dollars

constexpr Rate gigabits_per_second(double value) { return Rate(value * 1e9 / 8.0); }
constexpr Rate gigabytes_per_second(double value) { return Rate(value * 1e9); }
constexpr FlopRate teraflops(double value) { return FlopRate(value * 1e12); }
constexpr Bytes kibibytes(std::int64_t value) { return Bytes(value << 10); }
constexpr Bytes mebibytes(std::int64_t value) { return Bytes(value << 20); }
constexpr Bytes gibibytes(std::int64_t value) { return Bytes(value << 30); }

/// Seconds as a double, for reports and for arithmetic that ends in one rounding.
template <class Representation, class Period>
constexpr double to_seconds(std::chrono::duration<Representation, Period> time) {
  return std::chrono::duration<double>(time).count();
}

/// Rounds to the nearest tick of `Tick`, once. Throws BadInput when the value is not finite or out of range.
template <class Tick>
Tick from_seconds(double seconds);
template <>
Picoseconds from_seconds<Picoseconds>(double seconds);
template <>
Microseconds from_seconds<Microseconds>(double seconds);

/// Time to move `bytes` at `rate`, rounded to the nearest picosecond. Throws BrokenContract when rate <= 0.
Picoseconds operator/(Bytes bytes, Rate rate);

// Text in. The unit is mandatory; bits (b) and bytes (B), decimal (G) and binary (Gi) prefixes are kept apart.
// Each throws BadInput that names the text, what was expected and an example ("80 GiB").
Bytes parse_bytes(std::string_view text);              // "80 GiB", "25 MB", "512 B"
Rate parse_rate(std::string_view text);                // "400 Gb/s", "50 GB/s"
double parse_duration_seconds(std::string_view text);  // "1.5 us", "3 h", "50,677 h" is rejected
Flops parse_flops(std::string_view text);              // "3.8e25 FLOP", "5 EFLOP"
FlopRate parse_flop_rate(std::string_view text);       // "989.4 TFLOP/s"
Watts parse_watts(std::string_view text);              // "700 W", "10.2 kW"
Joules parse_joules(std::string_view text);            // "3.6 MJ", "1 kWh"
Money parse_money(std::string_view text);              // "$30000", "$2.5M"

// Text out, three to four significant digits with the unit a reader expects.
std::string format(Bytes bytes);     // binary prefixes: "79.6 GiB"
std::string format(Rate rate);       // bytes, decimal: "48.1 GB/s"
std::string format_bits(Rate rate);  // bits, decimal: "400 Gb/s"
std::string format(Flops flops);
std::string format(FlopRate rate);  // "401 TFLOP/s"
std::string format(Watts power);
std::string format(Joules energy);
std::string format(Money amount);
std::string format_duration(double seconds);  // "12.34 ms", "6.51 s", "3.2 h"

}  // namespace clustersim
