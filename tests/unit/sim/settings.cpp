// Settings: typed access, defaults, and one rejection test per way of being wrong.
#include "sim/settings.hpp"

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace clustersim;
using namespace std::string_view_literals;

namespace {

constexpr std::string_view kSchedules[] = {"gpipe", "1f1b", "interleaved-1f1b"};
constexpr Parameter kTier[] = {
    {.name = "down", .kind = ValueKind::integer, .help = "ports down", .required = true, .minimum = 1},
    {.name = "oversubscription", .kind = ValueKind::number, .default_text = "1", .help = "ratio", .minimum = 1},
};
constexpr Parameter kPower[] = {
    {.name = "limit", .kind = ValueKind::watts, .default_text = "700 W", .help = "cap"},
};
constexpr Parameter kSchema[] = {
    {.name = "name", .kind = ValueKind::text, .help = "name", .required = true},
    {.name = "nodes", .kind = ValueKind::integer, .default_text = "2", .help = "nodes", .minimum = 1, .maximum = 1e6},
    {.name = "share", .kind = ValueKind::number, .default_text = "0.5", .help = "share", .minimum = 0, .maximum = 1},
    {.name = "positive", .kind = ValueKind::number, .help = "positive", .minimum = 1e-300},
    {.name = "lump", .kind = ValueKind::boolean, .default_text = "true", .help = "lump"},
    {.name = "schedule", .kind = ValueKind::choice, .default_text = "1f1b", .help = "schedule", .choices = kSchedules},
    {.name = "memory", .kind = ValueKind::bytes, .default_text = "80 GiB", .help = "memory", .maximum = 1e12},
    {.name = "link", .kind = ValueKind::rate, .default_text = "400 Gb/s", .help = "link", .minimum = 1e9},
    {.name = "latency", .kind = ValueKind::duration, .default_text = "0.6 us", .help = "latency"},
    {.name = "peak", .kind = ValueKind::flop_rate, .default_text = "989 TFLOP/s", .help = "peak"},
    {.name = "price", .kind = ValueKind::money, .default_text = "$30000", .help = "price"},
    {.name = "sizes", .kind = ValueKind::integers, .help = "sizes", .minimum = 1},
    {.name = "ratios", .kind = ValueKind::numbers, .default_text = "[1, 2.5]", .help = "ratios", .minimum = 0},
    {.name = "files", .kind = ValueKind::texts, .help = "files"},
    {.name = "power", .kind = ValueKind::table, .help = "power", .nested = kPower},
    {.name = "tier", .kind = ValueKind::table, .help = "one tier", .nested = kTier},
    {.name = "tiers", .kind = ValueKind::tables, .help = "tiers", .nested = kTier},
    {.name = "extra", .kind = ValueKind::any, .help = "left alone"},
};

template <class Data>
Value value(Data data, std::uint32_t line = 12) {
  return Value{std::move(data), {"scenario.toml", line}};
}
Value text(std::string data) { return value(std::move(data)); }
Value integer(std::int64_t data) { return value(data); }

/// A table with a name and one more key.
Value table_with(std::string key, Value written) {
  Value::Table table;
  table.emplace_back("name", text("test"));
  table.emplace_back(std::move(key), std::move(written));
  return value(std::move(table), 3);
}
Settings check(const Value& table) { return check_settings(table, kSchema, "cluster"); }

std::string rejection(const std::string& key, Value written) {
  try {
    (void)check(table_with(key, std::move(written)));
  } catch (const BadInput& error) {
    return error.what();
  }
  return "accepted";
}

Value array(std::vector<Value> elements) { return value(Value::Array(std::move(elements))); }

}  // namespace

TEST_CASE("defaults are parsed like the user's text") {
  const Settings settings = check(table_with("nodes", integer(7)));
  CHECK(settings.text("name") == "test");
  CHECK(settings.integer("nodes") == 7);
  CHECK(settings.given("nodes"));
  CHECK(settings.number("share") == 0.5);
  CHECK_FALSE(settings.given("share"));
  CHECK(settings.has("share"));
  CHECK(settings.boolean("lump"));
  CHECK(settings.text("schedule") == "1f1b");
  CHECK(settings.bytes("memory") == gibibytes(80));
  CHECK(settings.rate("link") == gigabits_per_second(400));
  CHECK(settings.duration("latency") == std::chrono::nanoseconds(600));
  CHECK(settings.seconds("latency") == 0.6e-6);
  CHECK(settings.flop_rate("peak") == teraflops(989));
  CHECK(settings.money("price") == Money(30000));
  CHECK(settings.numbers("ratios") == std::vector<double>{1, 2.5});
  CHECK(settings.table("power").watts("limit") == Watts(700));
  CHECK(settings.path() == "cluster");
}

TEST_CASE("absent is absent: no value, an empty list, or no table when it has required keys") {
  const Settings settings = check(table_with("nodes", integer(7)));
  CHECK_FALSE(settings.has("positive"));
  CHECK_THROWS_AS(settings.number("positive"), BrokenContract);
  CHECK_FALSE(settings.has("sizes"));
  CHECK(settings.integers("sizes").empty());
  CHECK(settings.texts("files").empty());
  CHECK(settings.tables("tiers").empty());
  CHECK_FALSE(settings.has("tier"));
  CHECK_THROWS_AS(settings.table("tier"), BrokenContract);
  CHECK(settings.has("power"));
  CHECK_FALSE(settings.given("power"));
  CHECK_FALSE(settings.has("extra"));
}

TEST_CASE("asking against the schema is a bug") {
  const Settings settings = check(table_with("nodes", integer(7)));
  CHECK_THROWS_AS(settings.integer("nodez"), BrokenContract);
  CHECK_THROWS_AS(settings.number("nodes"), BrokenContract);
  CHECK_THROWS_AS(settings.rate("memory"), BrokenContract);
}

TEST_CASE("what the user writes is read") {
  Value::Table tier;
  tier.emplace_back("down", integer(16));
  Value::Table table;
  table.emplace_back("name", text("all"));
  table.emplace_back("share", integer(1));  // a number accepts a whole one
  table.emplace_back("sizes", array({integer(8), integer(16)}));
  table.emplace_back("files", array({text("a.toml")}));
  table.emplace_back("tiers", array({value(tier), value(tier)}));
  table.emplace_back("extra", value(tier));
  const Settings settings = check(value(table));
  CHECK(settings.number("share") == 1);
  CHECK(settings.integers("sizes") == std::vector<std::int64_t>{8, 16});
  CHECK(settings.texts("files") == std::vector<std::string>{"a.toml"});
  CHECK(settings.tables("tiers").size() == 2);
  CHECK(settings.tables("tiers")[1].integer("down") == 16);
  CHECK(settings.tables("tiers")[1].path() == "cluster.tiers[1]");
  CHECK(settings.any("extra").find("down") != nullptr);
  CHECK(settings.any("extra").find("up") == nullptr);
}

TEST_CASE("the form of every rejection: place, key, value, expectation") {
  CHECK(rejection("share", integer(2)) == "scenario.toml:12 cluster.share = 2: expected a number between 0 and 1");
  CHECK(rejection("nodes", integer(0)) ==
        "scenario.toml:12 cluster.nodes = 0: expected a plain count between 1 and 1000000");
  CHECK(rejection("nodez", integer(4))
            .starts_with("scenario.toml:12 cluster.nodez = 4: unknown key (did you mean \"nodes\"?); keys here are: "
                         "name, nodes, share"));
  CHECK(rejection("positive", integer(0)) == "scenario.toml:12 cluster.positive = 0: expected a number > 0");
}

TEST_CASE("missing keys say what they are") {
  const auto missing = [](const Value& table, std::string path) -> std::string {
    try {
      (void)check_settings(table, kSchema, std::move(path));
    } catch (const BadInput& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK(missing(value(Value::Table{}, 3), "cluster") ==
        "scenario.toml:3 cluster: missing key \"name\" (a text in quotes)");
  CHECK(missing(value(Value::Table{}, 1), "") == "scenario.toml:1: missing key \"name\" (a text in quotes)");
  CHECK(missing(Value{Value::Table{}, {}}, "") == "missing key \"name\" (a text in quotes)");
  CHECK(missing(integer(3), "cluster") == "scenario.toml:12 cluster = 3: expected a table");
}

TEST_CASE("the wrong kind of value") {
  CHECK(rejection("nodes", text("4")) ==
        "scenario.toml:12 cluster.nodes = \"4\": expected a plain count between 1 and "
        "1000000; a count is written without quotes");
  CHECK(rejection("nodes", value(4.0)).find("; write 4 without a decimal point") != std::string::npos);
  CHECK(rejection("nodes", value(4.5)).find("expected a plain count") != std::string::npos);
  CHECK(rejection("nodes", value(true)).find("= true: expected a plain count") != std::string::npos);
  CHECK(rejection("share", value(true)).find("expected a number") != std::string::npos);
  CHECK(rejection("share", text("50%")).find("without quotes and has no unit") != std::string::npos);
  CHECK(rejection("lump", integer(1)).find("expected true or false") != std::string::npos);
  CHECK(rejection("lump", text("true")).find("without quotes") != std::string::npos);
  Value::Table unnamed;
  unnamed.emplace_back("name", integer(1));
  CHECK_THROWS_AS(check(value(unnamed)), BadInput);
  CHECK(rejection("power", integer(1)).find("= 1: expected a table") != std::string::npos);
  CHECK(rejection("sizes", integer(1)).find("write [ ... ] around it") != std::string::npos);
  CHECK(rejection("tiers", value(Value::Table{})).find("[[cluster.tiers]]") != std::string::npos);
  CHECK(rejection("memory", array({})).find("= []: expected an amount of data") != std::string::npos);
}

TEST_CASE("numbers are finite") {
  CHECK(rejection("positive", value(HUGE_VAL)).find("it has to be finite") != std::string::npos);
  CHECK(rejection("share", value(std::numeric_limits<double>::quiet_NaN())).find("it has to be finite") !=
        std::string::npos);
  CHECK(rejection("positive", value(-HUGE_VAL)).find("it has to be finite") != std::string::npos);
}

TEST_CASE("quantities need their unit") {
  CHECK(
      rejection("link", text("400 GB")) ==
      "scenario.toml:12 cluster.link = \"400 GB\": expected a rate such as \"400 Gb/s\" or \"50 GB/s\"; \"400 GB\" is "
      "an amount of data; a rate is written \"400 GB/s\" or \"400 Gb/s\"");
  CHECK(rejection("link", integer(400)).find("a quantity is written in quotes with its unit") != std::string::npos);
  CHECK(rejection("link", text("1 MB/s")) ==
        "scenario.toml:12 cluster.link = \"1 MB/s\": expected a rate such as \"400 Gb/s\" >= 1 GB/s");
  CHECK(rejection("memory", text("2 TB")).find(" <= 931 GiB") != std::string::npos);
  CHECK(rejection("price", text("30000")).find("dollar sign") != std::string::npos);
  CHECK(rejection("latency", text("")).find("= \"\": expected a duration") != std::string::npos);
}

TEST_CASE("a duration that is too long for the clock is only refused when it is asked for") {
  const Settings settings = check(table_with("latency", text("1 y")));
  CHECK(settings.seconds("latency") == 365.25 * 86400);
  CHECK_THROWS_AS(settings.duration("latency"), BadInput);
}

TEST_CASE("choices and empty texts") {
  CHECK(rejection("schedule", text("1f1p")) ==
        "scenario.toml:12 cluster.schedule = \"1f1p\": expected one of gpipe, 1f1b, interleaved-1f1b (did you mean "
        "\"1f1b\"?)");
  CHECK(rejection("schedule", integer(1)).find("expected one of") != std::string::npos);
  CHECK(rejection("files", array({text("")})).find("the text is empty") != std::string::npos);
}

TEST_CASE("the offending element of an array is named") {
  CHECK(rejection("sizes", array({integer(1), integer(2), integer(0)})) ==
        "scenario.toml:12 cluster.sizes[2] = 0: expected a plain count >= 1");
  CHECK(rejection("ratios", array({integer(1), text("x")})).find("cluster.ratios[1] = \"x\"") != std::string::npos);
  CHECK(rejection("files", array({integer(3)})).find("cluster.files[0] = 3") != std::string::npos);
  CHECK(rejection("tiers", array({value(Value::Table{}, 9)})) ==
        "scenario.toml:9 cluster.tiers[0]: missing key \"down\" (a plain count >= 1)");
  CHECK(rejection("tiers", array({integer(4)})).find("cluster.tiers[0] = 4: expected a table") != std::string::npos);
}

TEST_CASE("deeper faults are reported with place()") {
  const Settings settings = check(table_with("nodes", integer(7)));
  CHECK(settings.place("nodes") == "scenario.toml:12 cluster.nodes = 7");
  CHECK(settings.place("link") == "scenario.toml:3 cluster.link = \"400 Gb/s\" (default)");
  CHECK(settings.place("positive") == "scenario.toml:3 cluster.positive");
  try {
    settings.reject("nodes", "expected a multiple of {}", 4);
    FAIL("accepted");
  } catch (const BadInput& error) {
    CHECK(std::string(error.what()) == "scenario.toml:12 cluster.nodes = 7: expected a multiple of 4");
  }
}

TEST_CASE("resolved: every value in schema order, readable again with the same meaning") {
  Value::Table tier;
  tier.emplace_back("down", integer(16));
  const Settings settings = check(table_with("tiers", array({value(tier)})));
  const Value resolved = settings.resolved();
  std::vector<std::string> keys;
  for (const auto& [key, written] : std::get<Value::Table>(resolved.data)) keys.push_back(key);
  CHECK(keys == std::vector<std::string>{"name", "nodes", "share", "lump", "schedule", "memory", "link", "latency",
                                         "peak", "price", "ratios", "power", "tiers"});
  CHECK(resolved.find("power")->find("limit")->describe() == "\"700 W\"");
  const Value& resolved_tier = std::get<Value::Array>(resolved.find("tiers")->data).front();
  CHECK(resolved_tier.find("oversubscription")->describe() == "1");
  const Settings again = check(resolved);
  CHECK(again.rate("link") == settings.rate("link"));
  CHECK(again.integer("nodes") == settings.integer("nodes"));
  CHECK(again.given("nodes"));
}

TEST_CASE("values describe themselves for messages") {
  CHECK(text("40 GB").describe() == "\"40 GB\"");
  CHECK(integer(12).describe() == "12");
  CHECK(value(0.1).describe() == "0.1");
  CHECK(value(false).describe() == "false");
  CHECK(value(Value::Table{}).describe() == "a table");
  CHECK(array({integer(1), text("x")}).describe() == "[1, \"x\"]");
  CHECK(array(std::vector<Value>(9, integer(1))).describe() == "an array of 9 values");
  CHECK(text("a\nb\x01").describe() == "\"a\\x0ab\\x01\"");
  std::string written(79, 'a');
  written += "\u00b5\u00b5\u00b5";
  const std::string longest = text(written).describe();
  CHECK(longest == "\"" + std::string(79, 'a') + "\u00b5...\"");  // never cut inside a character
  CHECK(Value{}.describe() == "nothing");
}

TEST_CASE("a wrong schema is a bug, not bad input") {
  static constexpr Parameter kBad[] = {{.name = "nodes", .kind = ValueKind::integer, .default_text = "two"}};
  CHECK_THROWS_AS(check_settings(value(Value::Table{}), kBad, ""), BrokenContract);
}
