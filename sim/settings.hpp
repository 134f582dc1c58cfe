// Checked settings: a schema says what may be written, a Value tree says what was, Settings is the two together.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "sim/errors.hpp"
#include "sim/units.hpp"

namespace clustersim {

/// A value as the user wrote it, with its place. Independent of the file format it came from.
struct Value {
  using Array = std::vector<Value>;
  using Table = std::vector<std::pair<std::string, Value>>;  // in file order, keys unique
  using Data = std::variant<std::monostate, bool, std::int64_t, double, std::string, Array, Table>;

  // Defined out of line: inline ones would need pair<string, Value> while Value is incomplete.
  Value();
  Value(Data data, SourceLocation where);
  Value(const Value&);
  Value(Value&&) noexcept;
  Value& operator=(const Value&);
  Value& operator=(Value&&) noexcept;
  ~Value();

  Data data;
  SourceLocation where;

  [[nodiscard]] bool is_table() const { return std::holds_alternative<Table>(data); }
  [[nodiscard]] bool is_array() const { return std::holds_alternative<Array>(data); }
  [[nodiscard]] const Value* find(std::string_view key) const;  // nullptr when absent or not a table
  [[nodiscard]] std::string describe() const;                   // `"40 GB"`, `12`, `a table`, for messages
};

enum class ValueKind {
  boolean,
  integer,  // plain count
  number,   // plain dimensionless number, finite
  text,
  choice,     // one of Parameter::choices
  bytes,      // "80 GiB"
  rate,       // "400 Gb/s"
  duration,   // "1.5 us"
  flop_rate,  // "989 TFLOP/s"
  watts,
  money,
  integers,  // array of plain counts
  numbers,   // array of plain numbers
  texts,     // array of strings
  table,     // nested, checked with Parameter::nested
  tables,    // array of tables, each checked with Parameter::nested
  any,       // left as written for a later schema (e.g. the parameters of the chosen topology)
};

/// One key that may be written. All text must outlive the schema (string literals do).
struct Parameter {
  std::string_view name;
  ValueKind kind = ValueKind::text;
  std::string_view default_text = {};  // as it would be written in TOML without quotes; "" = no default
  std::string_view help = {};          // one line
  bool required = false;
  double minimum = -1e300;  // in SI units (bytes, bytes/s, seconds, FLOP/s, W, $) or plain; also per array element
  double maximum = 1e300;
  std::span<const std::string_view> choices = {};
  std::span<const Parameter> nested = {};
};

/// A checked table: typed access by name. Asking for a name outside the schema, or a kind it does not have, is a bug.
class Settings {
 public:
  /// Written by the user or defaulted. Absent lists read as empty; an absent table reads as its defaults unless it has
  /// required keys, in which case it is absent as a whole.
  [[nodiscard]] bool has(std::string_view name) const;
  [[nodiscard]] bool given(std::string_view name) const;  // written by the user
  [[nodiscard]] bool boolean(std::string_view name) const;
  [[nodiscard]] std::int64_t integer(std::string_view name) const;
  [[nodiscard]] double number(std::string_view name) const;
  [[nodiscard]] const std::string& text(std::string_view name) const;  // text and choice
  [[nodiscard]] Bytes bytes(std::string_view name) const;
  [[nodiscard]] Rate rate(std::string_view name) const;
  [[nodiscard]] double seconds(std::string_view name) const;
  [[nodiscard]] Picoseconds duration(std::string_view name) const;
  [[nodiscard]] FlopRate flop_rate(std::string_view name) const;
  [[nodiscard]] Watts watts(std::string_view name) const;
  [[nodiscard]] Money money(std::string_view name) const;
  [[nodiscard]] const std::vector<std::int64_t>& integers(std::string_view name) const;
  [[nodiscard]] const std::vector<double>& numbers(std::string_view name) const;
  [[nodiscard]] const std::vector<std::string>& texts(std::string_view name) const;
  [[nodiscard]] const Settings& table(std::string_view name) const;
  [[nodiscard]] const std::vector<Settings>& tables(std::string_view name) const;
  [[nodiscard]] const Value& any(std::string_view name) const;

  [[nodiscard]] const std::string& path() const { return path_; }  // "jobs[0].parallel"
  /// "file:line key = value" of a key, for messages written by whoever finds a deeper fault.
  [[nodiscard]] std::string place(std::string_view name) const;
  /// Throws BadInput "file:line path.name = value: text".
  template <class... Arguments>
  [[noreturn]] void reject(std::string_view name, fmt::format_string<Arguments...> text,
                           Arguments&&... arguments) const {
    throw BadInput(place(name) + ": " + fmt::format(text, std::forward<Arguments>(arguments)...));
  }
  /// The table with defaults filled in, in schema order.
  [[nodiscard]] Value resolved() const;

 private:
  friend class SettingsParser;  // settings.cpp
  friend Settings check_settings(const Value&, std::span<const Parameter>, std::string);
  using Parsed = std::variant<std::monostate, bool, std::int64_t, double, std::string, std::vector<std::int64_t>,
                              std::vector<double>, std::vector<std::string>, std::shared_ptr<Settings>,
                              std::vector<Settings>, Value>;
  struct Item {
    const Parameter* parameter = nullptr;
    Parsed parsed;
    Value written;  // as given, or the default
    bool given = false;
  };
  [[nodiscard]] const Item& item(std::string_view name) const;
  std::vector<Item> items_;
  std::string path_;
  SourceLocation where_;
};

/// Checks `table` against `schema`: unknown keys (with the nearest valid name), missing required keys, wrong kind,
/// missing or wrong unit, value out of range, NaN. `path` is the key path of the table, "" at the top.
/// The schema must outlive the Settings. Throws BadInput.
Settings check_settings(const Value& table, std::span<const Parameter> schema, std::string path);

}  // namespace clustersim
