// Quantities from text and to text. One table of units serves every kind, so that a wrong kind can be named.
#include "sim/units.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <optional>
#include <span>
#include <vector>

#include "sim/errors.hpp"
#include "sim/text.hpp"

namespace clustersim {
namespace {

enum class Dimension { data, bits, rate, duration, flops, flop_rate, power, energy };

/// A value in this unit is value x multiply / divide in the base unit; a quotient keeps 0.6 us exact to one rounding.
struct Unit {
  Dimension dimension;
  double multiply = 1;
  double divide = 1;
};

struct Kind {
  Dimension dimension;
  std::string_view noun;      // "a rate"
  std::string_view examples;  // "\"400 Gb/s\" or \"50 GB/s\""
  std::string_view usual;     // unit named when the text has none
};
constexpr std::array<Kind, 8> kKinds = {{
    {Dimension::data, "an amount of data", "\"80 GiB\" or \"25 MB\"", "GiB"},
    {Dimension::bits, "an amount of data in bits", "\"80 Gb\"", "Gb"},
    {Dimension::rate, "a rate", "\"400 Gb/s\" or \"50 GB/s\"", "Gb/s"},
    {Dimension::duration, "a duration", "\"1.5 us\" or \"3 h\"", "s"},
    {Dimension::flops, "a number of floating-point operations", "\"3.8e25 FLOP\" or \"5 EFLOP\"", "FLOP"},
    {Dimension::flop_rate, "a compute rate", "\"989.4 TFLOP/s\"", "TFLOP/s"},
    {Dimension::power, "a power", "\"700 W\" or \"10.2 kW\"", "W"},
    {Dimension::energy, "an energy", "\"3.6 MJ\" or \"1 kWh\"", "kWh"},
}};
const Kind& kind_of(Dimension dimension) { return kKinds[static_cast<std::size_t>(dimension)]; }

struct NamedUnit {
  std::string_view name;
  Unit unit;
};
constexpr std::array<NamedUnit, 12> kDurations = {{
    {"ps", {Dimension::duration, 1, 1e12}},
    {"ns", {Dimension::duration, 1, 1e9}},
    {"us", {Dimension::duration, 1, 1e6}},
    {"\u00b5s", {Dimension::duration, 1, 1e6}},  // micro sign
    {"\u03bcs", {Dimension::duration, 1, 1e6}},  // Greek mu
    {"ms", {Dimension::duration, 1, 1e3}},
    {"s", {Dimension::duration}},
    {"min", {Dimension::duration, 60}},
    {"h", {Dimension::duration, 3600}},
    {"d", {Dimension::duration, 86400}},
    {"w", {Dimension::duration, 7 * 86400}},
    {"y", {Dimension::duration, 365.25 * 86400}},
}};
constexpr std::array<NamedUnit, 14> kPrefixed = {{
    {"FLOP/s", {Dimension::flop_rate}},
    {"FLOPS", {Dimension::flop_rate}},
    {"FLOP", {Dimension::flops}},
    {"bit/s", {Dimension::rate, 1, 8}},
    {"b/s", {Dimension::rate, 1, 8}},
    {"bps", {Dimension::rate, 1, 8}},
    {"B/s", {Dimension::rate}},
    {"Bps", {Dimension::rate}},
    {"Wh", {Dimension::energy, 3600}},
    {"W", {Dimension::power}},
    {"J", {Dimension::energy}},
    {"bit", {Dimension::bits, 1, 8}},
    {"b", {Dimension::bits, 1, 8}},
    {"B", {Dimension::data}},
}};

struct Prefix {
  std::string_view name;
  double factor;
};
constexpr std::array<Prefix, 8> kDecimal = {
    {{"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {"E", 1e18}, {"Z", 1e21}, {"Y", 1e24}}};
constexpr std::array<Prefix, 6> kBinary = {
    {{"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}, {"Ei", 0x1p60}}};

std::optional<double> prefix_factor(std::string_view prefix, Dimension dimension) {
  if (prefix.empty()) return 1.0;
  for (const Prefix& known : kDecimal) {
    if (known.name == prefix) return known.factor;
  }
  const bool counts_bytes =
      dimension == Dimension::data || dimension == Dimension::bits || dimension == Dimension::rate;
  for (const Prefix& known : kBinary) {
    if (counts_bytes && known.name == prefix) return known.factor;
  }
  return std::nullopt;
}

std::optional<Unit> find_unit(std::string_view name) {
  for (const NamedUnit& known : kDurations) {
    if (known.name == name) return known.unit;
  }
  for (const NamedUnit& known : kPrefixed) {
    if (!name.ends_with(known.name)) continue;
    const auto factor = prefix_factor(name.substr(0, name.size() - known.name.size()), known.unit.dimension);
    if (factor) return Unit{known.unit.dimension, known.unit.multiply * *factor, known.unit.divide};
  }
  return std::nullopt;
}

/// Every unit of a dimension that has the same letters in another case: "gb/s" -> "Gb/s", "GB/s".
std::vector<std::string> same_letters(std::string_view name, Dimension dimension) {
  const auto equal = [](std::string_view a, std::string_view b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](char x, char y) {
      return std::tolower(static_cast<unsigned char>(x)) == std::tolower(static_cast<unsigned char>(y));
    });
  };
  std::vector<std::string> found;
  const auto consider = [&](std::string candidate) {
    if (equal(candidate, name)) found.push_back(std::move(candidate));
  };
  for (const NamedUnit& known : kDurations) {
    if (dimension == Dimension::duration) consider(std::string(known.name));
  }
  for (const NamedUnit& known : kPrefixed) {
    if (known.unit.dimension != dimension) continue;
    consider(std::string(known.name));
    for (const Prefix& prefix : kDecimal) consider(fmt::format("{}{}", prefix.name, known.name));
    for (const Prefix& prefix : kBinary) {
      if (prefix_factor(prefix.name, dimension)) consider(fmt::format("{}{}", prefix.name, known.name));
    }
  }
  return found;
}

constexpr std::string_view kSpaces = " \t";

struct Number {
  double value = 0;
  std::string_view digits;  // as written
  std::string_view rest;    // what follows, spaces trimmed
};

/// A plain decimal number at the front of the text; nothing when there is none or it does not fit a double.
std::optional<Number> read_number(std::string_view text) {
  text = trimmed(text, kSpaces);
  const std::size_t sign = text.starts_with('-') ? 1 : 0;
  // from_chars would also take "inf" and "nan".
  const bool plain = text.size() > sign && (std::isdigit(static_cast<unsigned char>(text[sign])) != 0 ||
                                            (text[sign] == '.' && text.size() > sign + 1));
  if (!plain) return std::nullopt;
  Number number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number.value);
  if (error != std::errc() || !std::isfinite(number.value)) return std::nullopt;
  number.digits = text.substr(0, static_cast<std::size_t>(end - text.data()));
  number.rest = trimmed(text.substr(number.digits.size()), kSpaces);
  return number;
}

[[noreturn]] void reject(std::string_view text, const Kind& kind, const std::string& hint) {
  bad_input("\"{}\": expected {} such as {}{}{}", text, kind.noun, kind.examples, hint.empty() ? "" : "; ", hint);
}

/// Why a unit of another dimension is not this one, with the text that was probably meant.
std::string other_dimension(const Number& number, std::string_view text, const Kind& wanted, Dimension found) {
  const std::string_view rest = number.rest;
  std::string corrected;
  if (wanted.dimension == Dimension::data && found == Dimension::bits) {
    const std::string prefix(rest.substr(0, rest.find('b')));
    return fmt::format("\"{}\" is in bits; bytes are written \"{} {}B\"", text, number.digits, prefix);
  }
  if (wanted.dimension == Dimension::rate && (found == Dimension::data || found == Dimension::bits)) {
    const std::string prefix(rest.substr(0, rest.find_first_of("bB")));
    corrected = fmt::format("\"{0} {1}B/s\" or \"{0} {1}b/s\"", number.digits, prefix);
  } else if (wanted.dimension == Dimension::data && found == Dimension::rate) {
    corrected = fmt::format("\"{} {}B\"", number.digits, rest.substr(0, rest.find_first_of("bB")));
  } else if (wanted.dimension == Dimension::flop_rate && found == Dimension::flops) {
    corrected = fmt::format("\"{} {}/s\"", number.digits, rest);
  } else if (wanted.dimension == Dimension::flops && found == Dimension::flop_rate) {
    corrected = fmt::format("\"{} {}FLOP\"", number.digits, rest.substr(0, rest.find('F')));
  } else {
    corrected = wanted.examples;
  }
  return fmt::format("\"{}\" is {}; {} is written {}", text, kind_of(found).noun, wanted.noun, corrected);
}

std::string unknown_unit(const Number& number, const Kind& wanted) {
  const std::string_view rest = number.rest;
  if (rest.empty()) {
    return fmt::format("the unit is missing: \"{} {}\"?", number.digits, wanted.usual);
  }
  if (rest.front() == ',') return "numbers are written without thousands separators";
  if (rest.ends_with("FLOPs")) return "\"FLOPs\" is ambiguous: write FLOP for a count, FLOP/s for a rate";
  if (wanted.dimension == Dimension::duration && rest == "m") return "minutes are written \"min\"";
  const std::vector<std::string> meant = same_letters(rest, wanted.dimension);
  if (!meant.empty()) {
    std::string text = fmt::format("upper and lower case matter in \"{}\": did you mean", rest);
    for (std::size_t i = 0; i < meant.size() && i < 2; ++i) {
      text += fmt::format("{} \"{} {}\"", i == 0 ? "" : " or", number.digits, meant[i]);
    }
    return text + "?";
  }
  return fmt::format("\"{}\" is not a known unit", rest);
}

struct Read {
  Number number;
  Unit unit;
  [[nodiscard]] double value() const { return number.value * unit.multiply / unit.divide; }
};

Read read_quantity(std::string_view text, Dimension dimension) {
  const Kind& kind = kind_of(dimension);
  const std::optional<Number> number = read_number(text);
  if (!number) {
    reject(text, kind,
           trimmed(text, kSpaces).empty() ? "the text is empty" : "it has to start with a plain finite number");
  }
  if (number->digits.front() == '-') reject(text, kind, "it must not be negative");
  const std::optional<Unit> unit = find_unit(number->rest);
  if (!unit) reject(text, kind, unknown_unit(*number, kind));
  if (unit->dimension != dimension) reject(text, kind, other_dimension(*number, text, kind, unit->dimension));
  const Read read{*number, *unit};
  if (!std::isfinite(read.value())) reject(text, kind, "it is too large");
  return read;
}

// ---- text out ----

/// Rounded to `digits` significant digits.
double rounded(double value, int digits) {
  double result = 0;
  const std::string text = fmt::format("{:.{}e}", value, digits - 1);
  std::from_chars(text.data(), text.data() + text.size(), result);
  return result;
}

/// Plain decimal notation with `digits` significant digits, trailing zeros removed: 401, 48.1, 2.5, 0.07.
std::string significant(double value, int digits) {
  const double shown = rounded(value, digits);
  const int exponent = shown == 0 ? 0 : static_cast<int>(std::floor(std::log10(std::abs(shown))));
  std::string text = fmt::format("{:.{}f}", shown, std::max(0, digits - 1 - exponent));
  if (text.find('.') != std::string::npos) {
    text.erase(text.find_last_not_of('0') + 1);
    if (text.back() == '.') text.pop_back();
  }
  return text;
}

constexpr int kDigits = 3;

/// The largest prefix that leaves at least 1 in front of the unit, chosen after rounding (999.9 G is 1 T).
std::string with_prefix(double value, std::span<const Prefix> prefixes, std::string_view unit) {
  double factor = 1;
  std::string_view name;
  for (const Prefix& prefix : prefixes) {
    // Three digits decide when 999.9 becomes 1000, the fourth when 1023.99 becomes 1024.
    const double shown =
        std::max(std::abs(rounded(value / factor, kDigits)), std::abs(rounded(value / factor, kDigits + 1)));
    if (shown < prefix.factor / factor) break;
    factor = prefix.factor;
    name = prefix.name;
  }
  // Below a binary prefix step there is room for 1000..1023, which three digits would blur.
  const double scaled = value / factor;
  return fmt::format("{} {}{}", significant(scaled, std::abs(scaled) >= 999.5 ? kDigits + 1 : kDigits), name, unit);
}

}  // namespace

template <>
Picoseconds from_seconds<Picoseconds>(double seconds) {
  const double ticks = seconds * 1e12;
  if (!(std::abs(ticks) < 0x1p63)) bad_input("{} s does not fit the picosecond clock (106 days)", seconds);
  return Picoseconds(std::llround(ticks));
}

template <>
Microseconds from_seconds<Microseconds>(double seconds) {
  const double ticks = seconds * 1e6;
  if (!(std::abs(ticks) < 0x1p63)) bad_input("{} s does not fit the microsecond clock (292,000 years)", seconds);
  return Microseconds(std::llround(ticks));
}

Picoseconds operator/(Bytes bytes, Rate rate) {
  ensure(rate.value() > 0, "bytes divided by a rate of {} B/s", rate.value());
  return from_seconds<Picoseconds>(static_cast<double>(bytes.value()) / rate.value());
}

Bytes parse_bytes(std::string_view text) {
  const Read read = read_quantity(text, Dimension::data);
  const Kind& kind = kind_of(Dimension::data);
  constexpr std::string_view kRange = "it does not fit 64 bits (8 EiB)";
  // A plain integer is scaled in integers: a double would round counts above 2^53.
  std::int64_t whole = 0;
  const std::string_view digits = read.number.digits;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), whole);
  if (error == std::errc() && end == digits.data() + digits.size() && read.unit.multiply < 0x1p63) {
    std::int64_t scaled = 0;
    if (__builtin_mul_overflow(whole, static_cast<std::int64_t>(read.unit.multiply), &scaled)) {
      reject(text, kind, std::string(kRange));
    }
    return Bytes(scaled);
  }
  if (!(read.value() < 0x1p63)) reject(text, kind, std::string(kRange));
  return Bytes(std::llround(read.value()));
}

Rate parse_rate(std::string_view text) { return Rate(read_quantity(text, Dimension::rate).value()); }
double parse_duration_seconds(std::string_view text) { return read_quantity(text, Dimension::duration).value(); }
Flops parse_flops(std::string_view text) { return Flops(read_quantity(text, Dimension::flops).value()); }
FlopRate parse_flop_rate(std::string_view text) { return FlopRate(read_quantity(text, Dimension::flop_rate).value()); }
Watts parse_watts(std::string_view text) { return Watts(read_quantity(text, Dimension::power).value()); }
Joules parse_joules(std::string_view text) { return Joules(read_quantity(text, Dimension::energy).value()); }

Money parse_money(std::string_view text) {
  const auto refuse = [&](std::string_view hint) {
    bad_input("\"{}\": expected an amount of US dollars such as \"$30000\" or \"$2.5M\"; {}", text, hint);
  };
  std::string_view amount = trimmed(text, kSpaces);
  const bool negative = amount.starts_with('-');
  if (negative) amount.remove_prefix(1);
  if (!amount.starts_with('$')) refuse("it has to start with a dollar sign");
  const std::optional<Number> number = read_number(amount.substr(1));
  if (!number || number->digits.front() == '-') refuse("a plain number has to follow the dollar sign");
  double factor = 1;
  if (number->rest == "k") {
    factor = 1e3;
  } else if (number->rest == "M") {
    factor = 1e6;
  } else if (number->rest == "B") {
    factor = 1e9;
  } else if (number->rest.find('/') != std::string_view::npos) {
    refuse("this is a price per unit, not an amount");
  } else if (number->rest.starts_with(',')) {
    refuse("numbers are written without thousands separators");
  } else if (!number->rest.empty()) {
    refuse("only k, M or B (thousand, million, billion) may follow the number");
  }
  return Money((negative ? -1 : 1) * number->value * factor);
}

std::string format(Bytes bytes) { return with_prefix(static_cast<double>(bytes.value()), kBinary, "B"); }
std::string format(Rate rate) { return with_prefix(rate.value(), kDecimal, "B/s"); }
std::string format_bits(Rate rate) { return with_prefix(rate.value() * 8, kDecimal, "b/s"); }
std::string format(Flops flops) { return with_prefix(flops.value(), kDecimal, "FLOP"); }
std::string format(FlopRate rate) { return with_prefix(rate.value(), kDecimal, "FLOP/s"); }
std::string format(Watts power) { return with_prefix(power.value(), kDecimal, "W"); }
std::string format(Joules energy) { return with_prefix(energy.value(), kDecimal, "J"); }

std::string format(Money amount) {
  const double dollars = std::abs(amount.value());
  const std::string_view sign = amount.value() < 0 ? "-" : "";
  const double shown = rounded(dollars, 4);
  if (shown >= 1e9) return fmt::format("{}${}B", sign, significant(dollars / 1e9, 4));
  if (shown >= 1e6) return fmt::format("{}${}M", sign, significant(dollars / 1e6, 4));
  if (shown >= 1e4) return fmt::format("{}${}k", sign, significant(dollars / 1e3, 4));
  return shown >= 1 ? fmt::format("{}${:.2f}", sign, dollars) : fmt::format("{}${}", sign, significant(dollars, 4));
}

std::string format_duration(double seconds) {
  struct Scale {
    double below;  // shown in this unit when the value is smaller
    double unit;
    std::string_view name;
  };
  constexpr std::array<Scale, 9> kScales = {{{1e-9, 1e-12, "ps"},
                                             {1e-6, 1e-9, "ns"},
                                             {1e-3, 1e-6, "us"},
                                             {1, 1e-3, "ms"},
                                             {120, 1, "s"},
                                             {2 * 3600, 60, "min"},
                                             {48 * 3600, 3600, "h"},
                                             {730 * 86400.0, 86400, "d"},
                                             {HUGE_VAL, 365.25 * 86400, "y"}}};
  constexpr int kDurationDigits = 4;
  if (seconds == 0 || !std::isfinite(seconds)) return fmt::format("{} s", seconds);
  const double shown = std::abs(rounded(seconds, kDurationDigits));
  const auto* scale = std::find_if(kScales.begin(), kScales.end() - 1, [&](const Scale& s) { return shown < s.below; });
  return fmt::format("{} {}", significant(seconds / scale->unit, kDurationDigits), scale->name);
}

}  // namespace clustersim
