// Quantities: exact conversions, strict text in, readable text out.
#include "sim/units.hpp"

#include <cmath>
#include <limits>
#include <string>

#include "sim/errors.hpp"
#include "sim/random.hpp"
#include "tests/catch.hpp"

using namespace clustersim;

namespace {

template <class Parse>
std::string rejection(Parse parse, std::string_view text) {
  try {
    (void)parse(text);
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

bool contains(const std::string& text, std::string_view part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("bytes over rate is a time, rounded once") {
  // 16 MB at 400 Gb/s = 16e6 / 50e9 s = 320 us
  CHECK(Bytes(16'000'000) / gigabits_per_second(400) == std::chrono::microseconds(320));
  CHECK(Bytes(0) / gigabits_per_second(400) == Picoseconds(0));
  CHECK(Bytes(1) / Rate(3e12) == Picoseconds(0));  // 0.33 ps rounds down
  CHECK(Bytes(2) / Rate(3e12) == Picoseconds(1));  // 0.67 ps rounds up
  CHECK_THROWS_AS(Bytes(1) / Rate(0), BrokenContract);
  CHECK_THROWS_AS(Bytes(1) / Rate(-1), BrokenContract);
  CHECK_THROWS_AS(Bytes(1) / Rate(std::numeric_limits<double>::quiet_NaN()), BrokenContract);
}

TEST_CASE("seconds become ticks of either clock") {
  CHECK(from_seconds<Picoseconds>(1.5e-6) == Picoseconds(1'500'000));
  CHECK(from_seconds<Picoseconds>(0.6e-12) == Picoseconds(1));
  CHECK(from_seconds<Microseconds>(3600) == std::chrono::hours(1));
  CHECK_THROWS_AS(from_seconds<Picoseconds>(1e7), BadInput);  // 115 days; the clock holds 106
  CHECK_NOTHROW(from_seconds<Microseconds>(1e7));
  CHECK_THROWS_AS(from_seconds<Picoseconds>(HUGE_VAL), BadInput);
  CHECK_THROWS_AS(from_seconds<Microseconds>(std::numeric_limits<double>::quiet_NaN()), BadInput);
}

TEST_CASE("bits and bytes, decimal and binary prefixes are kept apart") {
  CHECK(parse_bytes("512 B") == Bytes(512));
  CHECK(parse_bytes("80 GiB") == gibibytes(80));
  CHECK(parse_bytes("80 GB") == Bytes(80'000'000'000));
  CHECK(parse_bytes("1.5KiB") == Bytes(1536));
  CHECK(parse_bytes("  25 MB ") == Bytes(25'000'000));
  CHECK(parse_bytes("9223372036854775807 B") == Bytes(std::numeric_limits<std::int64_t>::max()));  // not via a double
  CHECK(parse_rate("400 Gb/s") == gigabits_per_second(400));
  CHECK(parse_rate("400 Gbps") == gigabits_per_second(400));
  CHECK(parse_rate("400 Gbit/s") == gigabits_per_second(400));
  CHECK(parse_rate("50 GB/s") == gigabits_per_second(400));
  CHECK(parse_rate("1 GiB/s") == Rate(1073741824.0));
}

TEST_CASE("every duration unit") {
  CHECK(parse_duration_seconds("3 ps") == 3e-12);
  CHECK(parse_duration_seconds("3 ns") == 3e-9);
  CHECK(parse_duration_seconds("0.6 us") == 0.6e-6);
  CHECK(parse_duration_seconds("0.6 \u00b5s") == 0.6e-6);
  CHECK(parse_duration_seconds("0.6 \u03bcs") == 0.6e-6);
  CHECK(parse_duration_seconds("3 ms") == 3e-3);
  CHECK(parse_duration_seconds("3 s") == 3);
  CHECK(parse_duration_seconds("3 min") == 180);
  CHECK(parse_duration_seconds("3h") == 10800);
  CHECK(parse_duration_seconds("54 d") == 54 * 86400);
  CHECK(parse_duration_seconds("2 w") == 14 * 86400);
  CHECK(parse_duration_seconds("4 y") == (4 * 365 + 1) * 86400);
}

TEST_CASE("compute, power, energy, money") {
  CHECK(parse_flops("3.8e25 FLOP") == Flops(3.8e25));
  CHECK(parse_flops("5 EFLOP") == Flops(5e18));
  CHECK(parse_flop_rate("989.4 TFLOP/s").value() == Approx(989.4e12).epsilon(1e-15));
  CHECK(parse_flop_rate("989 TFLOPS") == teraflops(989));
  CHECK(parse_watts("10.2 kW") == Watts(10200));
  CHECK(parse_joules("1 kWh") == Joules(3.6e6));
  CHECK(parse_joules("3.6 MJ").value() == Approx(3.6e6).epsilon(1e-15));
  CHECK(parse_money("$30000") == Money(30000));
  CHECK(parse_money("$2.5M") == Money(2.5e6));
  CHECK(parse_money("$3k") == Money(3000));
  CHECK(parse_money("$1.2B") == Money(1.2e9));
  CHECK(parse_money("-$5") == Money(-5));
}

TEST_CASE("a rejected text is named with what was expected and an example") {
  const std::string message = rejection(parse_rate, "fast");
  CHECK(contains(message, "\"fast\": expected a rate such as \"400 Gb/s\""));
  for (const char* text : {"", " ", "GB", "nan GB", "inf GB", "-inf GB", "1e999 GB", "0x10 GB", "+5 GB", "--5 GB",
                           "5 5 GB", "5 GB GB", "5 gigabytes", "5 G B", ".", ". GB", "5_000 GB", "1e GB", "-5 GB"}) {
    INFO(text);
    const std::string text_message = rejection(parse_bytes, text);
    CHECK(contains(text_message, "expected an amount of data such as \"80 GiB\""));
    CHECK(contains(text_message, std::string("\"") + text + "\""));
  }
}

TEST_CASE("recognizable slips get a hint") {
  CHECK(contains(rejection(parse_rate, "400 GB"),
                 "\"400 GB\" is an amount of data; a rate is written \"400 GB/s\" or \"400 Gb/s\""));
  CHECK(contains(rejection(parse_rate, "400"), "the unit is missing: \"400 Gb/s\"?"));
  CHECK(contains(rejection(parse_rate, "400 gb/s"), "did you mean \"400 Gb/s\" or \"400 GB/s\"?"));
  CHECK(contains(rejection(parse_bytes, "80 Gb"), "is in bits; bytes are written \"80 GB\""));
  CHECK(contains(rejection(parse_bytes, "80 GB/s"), "is a rate; an amount of data is written \"80 GB\""));
  CHECK(contains(rejection(parse_bytes, "80 KB"), "did you mean \"80 kB\""));
  CHECK(contains(rejection(parse_bytes, "8 EiB"), "does not fit 64 bits"));
  CHECK(contains(rejection(parse_bytes, "9223372036854775808 B"), "does not fit 64 bits"));
  CHECK(contains(rejection(parse_bytes, "1e30 B"), "does not fit 64 bits"));
  CHECK(contains(rejection(parse_bytes, "1 YB"), "does not fit 64 bits"));
  CHECK(contains(rejection(parse_duration_seconds, "50,677 h"), "without thousands separators"));
  CHECK(contains(rejection(parse_duration_seconds, "5 m"), "\"min\""));
  CHECK(contains(rejection(parse_duration_seconds, "-1 s"), "must not be negative"));
  CHECK(contains(rejection(parse_flop_rate, "989 TFLOP"), "is written \"989 TFLOP/s\""));
  CHECK(contains(rejection(parse_flops, "3 TFLOP/s"), "is written \"3 TFLOP\""));
  CHECK(contains(rejection(parse_flops, "3 TFLOPs"), "ambiguous"));
  CHECK(contains(rejection(parse_watts, "1 kWh"), "is an energy; a power is written \"700 W\""));
  CHECK(contains(rejection(parse_money, "30000"), "dollar sign"));
  CHECK(contains(rejection(parse_money, "$2.10/h"), "price per unit"));
  CHECK(contains(rejection(parse_money, "$30,000"), "thousands separators"));
  CHECK(contains(rejection(parse_money, "$"), "plain number"));
  CHECK(contains(rejection(parse_money, "$5 G"), "only k, M or B"));
}

TEST_CASE("text out has three to four significant digits and the expected unit") {
  CHECK(format(Bytes(0)) == "0 B");
  CHECK(format(Bytes(1023)) == "1023 B");
  CHECK(format(Bytes(1024)) == "1 KiB");
  CHECK(format(Bytes(85'520'809'984)) == "79.6 GiB");
  CHECK(format(Bytes((1 << 20) - 1)) == "1 MiB");  // 1023.999 KiB
  CHECK(format(Rate(48.06e9)) == "48.1 GB/s");
  CHECK(format(Rate(999.9e9)) == "1 TB/s");
  CHECK(format_bits(gigabits_per_second(400)) == "400 Gb/s");
  CHECK(format(teraflops(401.2)) == "401 TFLOP/s");
  CHECK(format(Flops(3.8e25)) == "38 YFLOP");
  CHECK(format(Watts(10200)) == "10.2 kW");
  CHECK(format(Joules(3.6e6)) == "3.6 MJ");
  CHECK(format(Money(12.5)) == "$12.50");
  CHECK(format(Money(30000)) == "$30k");
  CHECK(format(Money(-2.5e6)) == "-$2.5M");
  CHECK(format(Money(0.0042)) == "$0.0042");
  CHECK(format_duration(0) == "0 s");
  CHECK(format_duration(0.01234) == "12.34 ms");
  CHECK(format_duration(6.51) == "6.51 s");
  CHECK(format_duration(3.2 * 3600) == "3.2 h");
  CHECK(format_duration(54 * 86400.0) == "54 d");
  CHECK(format_duration(0.99999e-3) == "1 ms");
}

TEST_CASE("what is written can be read back") {
  RandomStream random(7, "units round trip");
  const auto close = [](double a, double b) { return std::abs(a - b) <= 0.0051 * std::abs(b); };
  for (int i = 0; i < 2000; ++i) {
    const double value = std::exp(random.uniform() * 50 - 8);
    INFO(value);
    const Bytes bytes(static_cast<std::int64_t>(value) + 1);
    CHECK(close(static_cast<double>(parse_bytes(format(bytes)).value()), static_cast<double>(bytes.value())));
    const double large = value + 1;  // below 1 three digits are decimals of the base unit
    CHECK(close(parse_rate(format(Rate(large))).value(), large));
    CHECK(close(parse_rate(format_bits(Rate(large))).value(), large));
    CHECK(close(parse_flops(format(Flops(large))).value(), large));
    CHECK(close(parse_flop_rate(format(FlopRate(large))).value(), large));
    CHECK(close(parse_watts(format(Watts(large))).value(), large));
    CHECK(close(parse_joules(format(Joules(large))).value(), large));
    CHECK(close(parse_money(format(Money(large))).value(), large));
    CHECK(close(parse_duration_seconds(format_duration(value * 1e-9)), value * 1e-9));
  }
}
