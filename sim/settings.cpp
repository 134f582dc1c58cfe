// The one place where what the user wrote meets what may be written: every rejection has the same form.
#include "sim/settings.hpp"
#include "sim/text.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>

namespace clustersim {
namespace {

/// In quotes, with control characters made visible and long text cut.
std::string quoted(std::string_view text) {
  constexpr std::size_t kLongest = 80;
  std::string result = "\"";
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool starts_character = (byte & 0xC0U) != 0x80U;
    if (i >= kLongest && starts_character) {
      result += "...";
      break;
    }
    if (byte < 0x20U || byte == 0x7FU) {
      result += fmt::format("\\x{:02x}", byte);
    } else {
      result += text[i];
    }
  }
  return result + "\"";
}

std::string describe_array(const Value::Array& array) {
  constexpr std::size_t kShown = 8;
  const bool plain =
      std::none_of(array.begin(), array.end(), [](const Value& v) { return v.is_table() || v.is_array(); });
  if (!plain || array.size() > kShown) return fmt::format("an array of {} values", array.size());
  std::string text = "[";
  for (const Value& element : array) text += (text.size() > 1 ? ", " : "") + element.describe();
  return text + "]";
}

std::string join_path(std::string_view path, std::string_view name) {
  return path.empty() ? std::string(name) : fmt::format("{}.{}", path, name);
}

/// "scenario.toml:12 cluster.nodes" or "cluster.nodes"; nothing at all for a top-level table from nowhere.
std::string place_of(const SourceLocation& where, std::string_view path) {
  const std::string file = where.text();
  if (file.empty() || path.empty()) return file + std::string(path);
  return fmt::format("{} {}", file, path);
}

std::string_view noun(ValueKind kind) {
  switch (kind) {
    case ValueKind::boolean:
      return "true or false";
    case ValueKind::integer:
      return "a plain count";
    case ValueKind::number:
      return "a number";
    case ValueKind::text:
      return "a text in quotes";
    case ValueKind::choice:
      return "one of";
    case ValueKind::bytes:
      return "an amount of data such as \"80 GiB\"";
    case ValueKind::rate:
      return "a rate such as \"400 Gb/s\"";
    case ValueKind::duration:
      return "a duration such as \"1.5 us\"";
    case ValueKind::flop_rate:
      return "a compute rate such as \"989 TFLOP/s\"";
    case ValueKind::watts:
      return "a power such as \"700 W\"";
    case ValueKind::money:
      return "an amount of US dollars such as \"$30000\"";
    case ValueKind::integers:
      return "an array of plain counts";
    case ValueKind::numbers:
      return "an array of numbers";
    case ValueKind::texts:
      return "an array of texts";
    case ValueKind::table:
      return "a table";
    case ValueKind::tables:
      return "an array of tables";
    case ValueKind::any:
      return "a value";
  }
  return "a value";
}

/// A bound in the unit the user writes.
std::string bound_text(ValueKind kind, double bound) {
  switch (kind) {
    case ValueKind::bytes:
      return format(Bytes(static_cast<std::int64_t>(bound)));
    case ValueKind::rate:
      return format(Rate(bound));
    case ValueKind::duration:
      return format_duration(bound);
    case ValueKind::flop_rate:
      return format(FlopRate(bound));
    case ValueKind::watts:
      return format(Watts(bound));
    case ValueKind::money:
      return format(Money(bound));
    default:
      return fmt::format("{}", bound);
  }
}

constexpr double kUnbounded = 1e300;

/// " >= 1", " between 1 and 8", or "". A tiny positive minimum is how a schema says "more than zero".
std::string range_text(const Parameter& parameter, ValueKind kind) {
  constexpr double kTiny = 1e-15;
  const bool below = parameter.minimum > -kUnbounded;
  const bool above = parameter.maximum < kUnbounded;
  const bool positive = parameter.minimum > 0 && parameter.minimum <= kTiny;
  const std::string minimum = bound_text(kind, parameter.minimum);
  const std::string maximum = bound_text(kind, parameter.maximum);
  if (positive) return above ? fmt::format(" > 0 and <= {}", maximum) : " > 0";
  if (below && above) return fmt::format(" between {} and {}", minimum, maximum);
  if (below) return fmt::format(" >= {}", minimum);
  return above ? fmt::format(" <= {}", maximum) : "";
}

std::vector<std::string> owned(std::span<const std::string_view> names) { return {names.begin(), names.end()}; }

std::string expectation(const Parameter& parameter) {
  if (parameter.kind == ValueKind::choice) {
    return fmt::format("one of {}", fmt::join(parameter.choices, ", "));
  }
  ValueKind element = parameter.kind;
  if (element == ValueKind::integers) element = ValueKind::integer;
  if (element == ValueKind::numbers) element = ValueKind::number;
  return std::string(noun(parameter.kind)) + range_text(parameter, element);
}

[[noreturn]] void wrong(const Value& value, const std::string& path, const std::string& expected,
                        const std::string& hint = "") {
  throw BadInput(fmt::format("{} = {}: expected {}{}{}", place_of(value.where, path), value.describe(), expected,
                             hint.empty() ? "" : "; ", hint));
}

bool within(const Parameter& parameter, double value) {
  return std::isfinite(value) && value >= parameter.minimum && value <= parameter.maximum;
}

std::int64_t parse_integer(const Parameter& parameter, const Value& value, const std::string& path) {
  const std::string expected = std::string(noun(ValueKind::integer)) + range_text(parameter, ValueKind::integer);
  const auto* integer = std::get_if<std::int64_t>(&value.data);
  if (integer != nullptr) {
    if (!within(parameter, static_cast<double>(*integer))) wrong(value, path, expected);
    return *integer;
  }
  if (std::holds_alternative<std::string>(value.data))
    wrong(value, path, expected, "a count is written without quotes");
  if (const auto* number = std::get_if<double>(&value.data); number != nullptr) {
    const bool whole = std::abs(*number) < 1e15 && *number == std::floor(*number);
    wrong(value, path, expected,
          whole ? fmt::format("write {} without a decimal point or exponent", static_cast<std::int64_t>(*number)) : "");
  }
  wrong(value, path, expected);
}

double parse_number(const Parameter& parameter, const Value& value, const std::string& path) {
  const std::string expected = std::string(noun(ValueKind::number)) + range_text(parameter, ValueKind::number);
  double number = 0;
  if (const auto* real = std::get_if<double>(&value.data); real != nullptr) {
    number = *real;
  } else if (const auto* integer = std::get_if<std::int64_t>(&value.data); integer != nullptr) {
    number = static_cast<double>(*integer);
  } else {
    const bool text = std::holds_alternative<std::string>(value.data);
    wrong(value, path, expected, text ? "a plain number is written without quotes and has no unit" : "");
  }
  if (!std::isfinite(number)) wrong(value, path, expected, "it has to be finite");
  if (!within(parameter, number)) wrong(value, path, expected);
  return number;
}

const std::string& parse_text(const Value& value, const std::string& path, const std::string& expected) {
  const auto* text = std::get_if<std::string>(&value.data);
  if (text == nullptr) wrong(value, path, expected);
  if (text->empty()) wrong(value, path, expected, "the text is empty");
  return *text;
}

const std::string& parse_choice(const Parameter& parameter, const Value& value, const std::string& path) {
  const std::string expected = expectation(parameter);
  const std::string& text = parse_text(value, path, expected);
  if (std::find(parameter.choices.begin(), parameter.choices.end(), text) == parameter.choices.end()) {
    throw BadInput(fmt::format("{} = {}: expected {}{}", place_of(value.where, path), value.describe(), expected,
                               did_you_mean(text, owned(parameter.choices))));
  }
  return text;
}

/// A quantity with its unit. `parse` is one of the parsers of units.hpp, whose message starts with the quoted text.
template <class Parse>
auto parse_quantity(const Parameter& parameter, const Value& value, const std::string& path, Parse parse) {
  const auto* text = std::get_if<std::string>(&value.data);
  if (text == nullptr) {
    const bool bare = std::holds_alternative<std::int64_t>(value.data) || std::holds_alternative<double>(value.data);
    wrong(value, path, expectation(parameter), bare ? "a quantity is written in quotes with its unit" : "");
  }
  decltype(parse(std::string_view())) result{};
  try {
    result = parse(*text);
  } catch (const BadInput& error) {
    std::string message = error.what();
    const std::string repeated = fmt::format("\"{}\": ", *text);
    if (message.starts_with(repeated)) message.erase(0, repeated.size());
    throw BadInput(fmt::format("{} = {}: {}", place_of(value.where, path), value.describe(), message));
  }
  double plain = 0;
  if constexpr (std::is_same_v<decltype(result), double>) {
    plain = result;
  } else {
    plain = static_cast<double>(result.value());
  }
  if (!within(parameter, plain)) wrong(value, path, expectation(parameter));
  return result;
}

/// Calls `parse_element(element, path[i])` for each element of an array.
template <class ParseElement>
auto parse_array(const Parameter& parameter, const Value& value, const std::string& path, ParseElement parse_element) {
  const auto* array = std::get_if<Value::Array>(&value.data);
  if (array == nullptr) {
    const bool table = parameter.kind == ValueKind::tables && value.is_table();
    const std::string hint =
        table ? fmt::format("write [[{}]] instead of [{}]", path, path) : "write [ ... ] around it";
    wrong(value, path, expectation(parameter), hint);
  }
  std::vector<decltype(parse_element(value, path))> result;
  result.reserve(array->size());
  for (std::size_t i = 0; i < array->size(); ++i) {
    result.push_back(parse_element((*array)[i], fmt::format("{}[{}]", path, i)));
  }
  return result;
}

template <class Number>
Value default_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  ensure(error == std::errc() && end == text.data() + text.size(), "schema default \"{}\" is not a number", text);
  return Value{number, {}};
}

Value default_scalar(ValueKind kind, std::string_view text) {
  switch (kind) {
    case ValueKind::boolean:
      ensure(text == "true" || text == "false", "schema default \"{}\" is not true or false", text);
      return Value{text == "true", {}};
    case ValueKind::integer:
      return default_number<std::int64_t>(text);
    case ValueKind::number:
      return default_number<double>(text);
    default:
      return Value{std::string(text), {}};
  }
}

/// What the user would have written for the schema's default text.
Value default_value(const Parameter& parameter) {
  std::string_view text = parameter.default_text;
  ValueKind element = ValueKind::any;
  switch (parameter.kind) {
    case ValueKind::integers:
      element = ValueKind::integer;
      break;
    case ValueKind::numbers:
      element = ValueKind::number;
      break;
    case ValueKind::texts:
      element = ValueKind::text;
      break;
    case ValueKind::table:
    case ValueKind::tables:
      throw BrokenContract(fmt::format("schema default of table \"{}\" must be empty", parameter.name));
    default:
      return default_scalar(parameter.kind, text);
  }
  if (text.starts_with('[') && text.ends_with(']')) text = text.substr(1, text.size() - 2);
  Value::Array array;
  while (!trimmed(text).empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    array.push_back(default_scalar(element, trimmed(text.substr(0, comma))));
    text = text.substr(std::min(comma + 1, text.size()));
  }
  return Value{std::move(array), {}};
}

/// An absent table is filled with defaults only when that gives a complete one.
bool complete_when_empty(std::span<const Parameter> schema) {
  return std::none_of(schema.begin(), schema.end(), [](const Parameter& p) { return p.required; });
}

void refuse_unknown_keys(const Value::Table& table, std::span<const Parameter> schema, const std::string& path) {
  std::vector<std::string> names;
  for (const Parameter& parameter : schema) names.emplace_back(parameter.name);
  for (const auto& [key, value] : table) {
    if (std::find(names.begin(), names.end(), key) != names.end()) continue;
    throw BadInput(fmt::format("{} = {}: unknown key{}; keys here are: {}", place_of(value.where, join_path(path, key)),
                               value.describe(), did_you_mean(key, names), fmt::join(names, ", ")));
  }
}

}  // namespace

Value::Value() = default;
Value::Value(Data written, SourceLocation place) : data(std::move(written)), where(std::move(place)) {}
Value::Value(const Value&) = default;
Value::Value(Value&&) noexcept = default;
Value& Value::operator=(const Value&) = default;
Value& Value::operator=(Value&&) noexcept = default;
Value::~Value() = default;

const Value* Value::find(std::string_view key) const {
  const auto* table = std::get_if<Table>(&data);
  if (table == nullptr) return nullptr;
  const auto found = std::find_if(table->begin(), table->end(), [&](const auto& entry) { return entry.first == key; });
  return found == table->end() ? nullptr : &found->second;
}

std::string Value::describe() const {
  struct Describe {
    std::string operator()(std::monostate) const { return "nothing"; }
    std::string operator()(bool value) const { return value ? "true" : "false"; }
    std::string operator()(std::int64_t value) const { return fmt::format("{}", value); }
    std::string operator()(double value) const { return fmt::format("{}", value); }
    std::string operator()(const std::string& value) const { return quoted(value); }
    std::string operator()(const Array& value) const { return describe_array(value); }
    std::string operator()(const Table&) const { return "a table"; }
  };
  return std::visit(Describe{}, data);
}

/// Turns the values of one table into the items of one Settings.
class SettingsParser {
 public:
  using Parsed = Settings::Parsed;

  static Parsed parse(const Parameter& parameter, const Value& value, const std::string& path) {
    switch (parameter.kind) {
      case ValueKind::boolean:
        if (!std::holds_alternative<bool>(value.data)) {
          const bool text = std::holds_alternative<std::string>(value.data);
          wrong(value, path, expectation(parameter), text ? "it is written without quotes" : "");
        }
        return std::get<bool>(value.data);
      case ValueKind::integer:
        return parse_integer(parameter, value, path);
      case ValueKind::number:
        return parse_number(parameter, value, path);
      case ValueKind::text:
        return parse_text(value, path, expectation(parameter));
      case ValueKind::choice:
        return parse_choice(parameter, value, path);
      case ValueKind::any:
        return value;
      case ValueKind::integers:
      case ValueKind::numbers:
      case ValueKind::texts:
        return parse_list(parameter, value, path);
      case ValueKind::table:
        return std::make_shared<Settings>(check_settings(value, parameter.nested, path));
      case ValueKind::tables:
        return parse_array(parameter, value, path, [&](const Value& element, const std::string& element_path) {
          return check_settings(element, parameter.nested, element_path);
        });
      default:
        return parse_unit(parameter, value, path);
    }
  }

 private:
  static Parsed parse_list(const Parameter& parameter, const Value& value, const std::string& path) {
    if (parameter.kind == ValueKind::integers) {
      return parse_array(parameter, value, path, [&](const Value& element, const std::string& element_path) {
        return parse_integer(parameter, element, element_path);
      });
    }
    if (parameter.kind == ValueKind::numbers) {
      return parse_array(parameter, value, path, [&](const Value& element, const std::string& element_path) {
        return parse_number(parameter, element, element_path);
      });
    }
    return parse_array(parameter, value, path, [&](const Value& element, const std::string& element_path) {
      return std::string(parse_text(element, element_path, std::string(noun(ValueKind::text))));
    });
  }

  static Parsed parse_unit(const Parameter& parameter, const Value& value, const std::string& path) {
    switch (parameter.kind) {
      case ValueKind::bytes:
        return parse_quantity(parameter, value, path, parse_bytes).value();
      case ValueKind::rate:
        return parse_quantity(parameter, value, path, parse_rate).value();
      case ValueKind::duration:
        return parse_quantity(parameter, value, path, parse_duration_seconds);
      case ValueKind::flop_rate:
        return parse_quantity(parameter, value, path, parse_flop_rate).value();
      case ValueKind::watts:
        return parse_quantity(parameter, value, path, parse_watts).value();
      case ValueKind::money:
        return parse_quantity(parameter, value, path, parse_money).value();
      default:
        throw BrokenContract("a kind of value without a parser");
    }
  }
};

namespace {

/// The value of an absent key: nothing, an empty list, or the default text parsed like the user's.
std::optional<Value> absent_value(const Parameter& parameter) {
  if (!parameter.default_text.empty()) return default_value(parameter);
  switch (parameter.kind) {
    case ValueKind::integers:
    case ValueKind::numbers:
    case ValueKind::texts:
    case ValueKind::tables:
      return Value{Value::Array{}, {}};
    case ValueKind::table:
      if (complete_when_empty(parameter.nested)) return Value{Value::Table{}, {}};
      return std::nullopt;
    default:
      return std::nullopt;
  }
}

}  // namespace

Settings check_settings(const Value& table, std::span<const Parameter> schema, std::string path) {
  const auto* entries = std::get_if<Value::Table>(&table.data);
  if (entries == nullptr) wrong(table, path, "a table");
  refuse_unknown_keys(*entries, schema, path);
  Settings settings;
  settings.where_ = table.where;
  settings.items_.reserve(schema.size());
  for (const Parameter& parameter : schema) {
    Settings::Item item;
    item.parameter = &parameter;
    const std::string key_path = join_path(path, parameter.name);
    if (const Value* value = table.find(parameter.name); value != nullptr) {
      item.given = true;
      item.written = *value;
      item.parsed = SettingsParser::parse(parameter, *value, key_path);
    } else if (parameter.required) {
      const std::string place = place_of(table.where, path);
      throw BadInput(fmt::format("{}{}missing key \"{}\" ({})", place, place.empty() ? "" : ": ", parameter.name,
                                 expectation(parameter)));
    } else if (std::optional<Value> absent = absent_value(parameter); absent) {
      item.parsed = SettingsParser::parse(parameter, *absent, key_path);
      item.written = *std::move(absent);
    }
    settings.items_.push_back(std::move(item));
  }
  settings.path_ = std::move(path);
  return settings;
}

const Settings::Item& Settings::item(std::string_view name) const {
  for (const Item& item : items_) {
    if (item.parameter->name == name) return item;
  }
  throw BrokenContract(fmt::format("\"{}\" is not in the schema of \"{}\"", name, path_));
}

bool Settings::has(std::string_view name) const {
  const Item& found = item(name);
  if (std::holds_alternative<std::monostate>(found.parsed)) return false;
  const auto* array = std::get_if<Value::Array>(&found.written.data);
  const bool empty_by_default = !found.given && array != nullptr && array->empty();
  return !empty_by_default;
}

bool Settings::given(std::string_view name) const { return item(name).given; }

namespace {

/// The parsed value of a key, after checking that the schema gives it one of the kinds asked for.
template <class Type, class Item>
const Type& typed(const Item& item, std::initializer_list<ValueKind> kinds) {
  const Parameter& parameter = *item.parameter;
  ensure(std::find(kinds.begin(), kinds.end(), parameter.kind) != kinds.end(), "\"{}\" has another kind in its schema",
         parameter.name);
  const Type* value = std::get_if<Type>(&item.parsed);
  ensure(value != nullptr, "\"{}\" was neither given nor defaulted: ask has() first", parameter.name);
  return *value;
}

}  // namespace

bool Settings::boolean(std::string_view name) const { return typed<bool>(item(name), {ValueKind::boolean}); }

std::int64_t Settings::integer(std::string_view name) const {
  return typed<std::int64_t>(item(name), {ValueKind::integer});
}

double Settings::number(std::string_view name) const { return typed<double>(item(name), {ValueKind::number}); }

const std::string& Settings::text(std::string_view name) const {
  return typed<std::string>(item(name), {ValueKind::text, ValueKind::choice});
}

Bytes Settings::bytes(std::string_view name) const {
  return Bytes(typed<std::int64_t>(item(name), {ValueKind::bytes}));
}

Rate Settings::rate(std::string_view name) const { return Rate(typed<double>(item(name), {ValueKind::rate})); }

double Settings::seconds(std::string_view name) const { return typed<double>(item(name), {ValueKind::duration}); }

Picoseconds Settings::duration(std::string_view name) const {
  const double value = seconds(name);
  // Whole days and years are valid durations, but not every one fits the clock of a step.
  if (!(value * 1e12 < 0x1p63)) reject(name, "expected a duration below 106 days");
  return from_seconds<Picoseconds>(value);
}

FlopRate Settings::flop_rate(std::string_view name) const {
  return FlopRate(typed<double>(item(name), {ValueKind::flop_rate}));
}

Watts Settings::watts(std::string_view name) const { return Watts(typed<double>(item(name), {ValueKind::watts})); }

Money Settings::money(std::string_view name) const { return Money(typed<double>(item(name), {ValueKind::money})); }

const std::vector<std::int64_t>& Settings::integers(std::string_view name) const {
  return typed<std::vector<std::int64_t>>(item(name), {ValueKind::integers});
}

const std::vector<double>& Settings::numbers(std::string_view name) const {
  return typed<std::vector<double>>(item(name), {ValueKind::numbers});
}

const std::vector<std::string>& Settings::texts(std::string_view name) const {
  return typed<std::vector<std::string>>(item(name), {ValueKind::texts});
}

const Settings& Settings::table(std::string_view name) const {
  return *typed<std::shared_ptr<Settings>>(item(name), {ValueKind::table});
}

const std::vector<Settings>& Settings::tables(std::string_view name) const {
  return typed<std::vector<Settings>>(item(name), {ValueKind::tables});
}

const Value& Settings::any(std::string_view name) const { return typed<Value>(item(name), {ValueKind::any}); }

std::string Settings::place(std::string_view name) const {
  const Item& found = item(name);
  const std::string key = join_path(path_, name);
  if (std::holds_alternative<std::monostate>(found.written.data)) return place_of(where_, key);
  const SourceLocation& where = found.given ? found.written.where : where_;
  return fmt::format("{} = {}{}", place_of(where, key), found.written.describe(), found.given ? "" : " (default)");
}

Value Settings::resolved() const {
  Value::Table table;
  for (const Item& item : items_) {
    if (!has(item.parameter->name)) continue;
    Value value = item.written;
    if (const auto* nested = std::get_if<std::shared_ptr<Settings>>(&item.parsed); nested != nullptr) {
      value.data = (*nested)->resolved().data;
    } else if (const auto* list = std::get_if<std::vector<Settings>>(&item.parsed); list != nullptr) {
      Value::Array array;
      for (const Settings& element : *list) array.push_back(element.resolved());
      value.data = std::move(array);
    }
    table.emplace_back(item.parameter->name, std::move(value));
  }
  return Value{std::move(table), where_};
}

}  // namespace clustersim
