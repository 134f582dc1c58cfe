// TOML text to Value trees and back (toml++ does the grammar), with one message for each way a file can be unreadable.
#include <toml++/toml.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "models/catalog/catalog.hpp"
#include "sim/errors.hpp"

namespace clustersim {
namespace {

namespace fs = std::filesystem;

constexpr std::uintmax_t kLargestFile = std::uintmax_t{16} << 20;
// Far above any real file, far below what recursion over the tree can take.
constexpr std::size_t kDeepestKey = 100;

// ---------------------------------------------------------------- text checks

struct TextPosition {
  std::size_t line = 1;
  std::size_t column = 1;
};

TextPosition position_of(std::string_view text, std::size_t offset) {
  const std::string_view before = text.substr(0, offset);
  const std::size_t newline = before.rfind('\n');
  return {1 + static_cast<std::size_t>(std::count(before.begin(), before.end(), '\n')),
          newline == std::string_view::npos ? offset + 1 : offset - newline};
}

/// Length of the well-formed UTF-8 sequence at the front (Unicode table 3-7), 0 when there is none.
std::size_t utf8_sequence(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0U; };
  const auto continues = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xBF) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned lead = byte(0);
  if (lead < 0x80) {
    return 1;
  }
  if (lead >= 0xC2 && lead <= 0xDF) {
    return continues(1) ? 2 : 0;
  }
  if (lead >= 0xE0 && lead <= 0xEF) {  // no overlong forms, no surrogates
    return continues(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF) && continues(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    return continues(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

void check_utf8(std::string_view text, const std::string& file) {
  if (text.starts_with("\xFF\xFE") || text.starts_with("\xFE\xFF")) {
    bad_input("{}: this is UTF-16 text; save it as UTF-8", file);
  }
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = text[i] == '\0' ? 0 : utf8_sequence(text.substr(i));
    if (length == 0) {
      const TextPosition at = position_of(text, i);
      if (text[i] == '\0') {
        bad_input("{}:{}: a NUL byte: this is not a text file", file, at.line);
      }
      bad_input("{}:{}:{}: byte 0x{:02x} is not UTF-8: this is not a text file, or it was saved in another encoding",
                file, at.line, at.column, static_cast<unsigned>(static_cast<unsigned char>(text[i])));
    }
    i += length;
  }
}

/// toml++ nests a table for every part of a dotted key, and frees them by recursion: a key of a million parts would
/// overflow the stack. It bounds arrays and inline tables itself.
void check_key_depth(std::string_view text, const std::string& file) {
  std::size_t dots = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '.') {
      if (++dots > 10 * kDeepestKey) {
        bad_input("{}:{}: more than {} dots in a row: a key cannot be nested that deep", file,
                  position_of(text, i).line, 10 * kDeepestKey);
      }
    } else if (c == '\n' || c == ',' || c == '[' || c == ']' || c == '{' || c == '}') {
      dots = 0;
    }
  }
}

// ---------------------------------------------------------------- toml++ to Value

class Converter {
 public:
  explicit Converter(const std::string& file) : file_(file) {}

  Value convert(const toml::node& node, std::size_t depth) const {
    Value value;
    value.where = {file_, node.source().begin.line};
    if (depth > kDeepestKey) {
      bad_input("{}: nested deeper than {} tables", value.where.text(), kDeepestKey);
    }
    switch (node.type()) {
      case toml::node_type::table:
        value.data = table(*node.as_table(), depth);
        break;
      case toml::node_type::array: {
        Value::Array array;
        for (const toml::node& element : *node.as_array()) {
          array.push_back(convert(element, depth + 1));
        }
        value.data = std::move(array);
        break;
      }
      case toml::node_type::string:
        value.data = node.as_string()->get();
        break;
      case toml::node_type::integer:
        value.data = node.as_integer()->get();
        break;
      case toml::node_type::floating_point:
        value.data = node.as_floating_point()->get();
        break;
      case toml::node_type::boolean:
        value.data = node.as_boolean()->get();
        break;
      default:
        bad_input("{}: a date or time; no setting takes one (write durations as text: \"3 h\")", value.where.text());
    }
    return value;
  }

 private:
  /// toml++ keeps keys sorted by name; messages and listings read better in the order of the file.
  Value::Table table(const toml::table& source, std::size_t depth) const {
    using Position = std::pair<toml::source_index, toml::source_index>;
    std::vector<std::pair<Position, std::pair<std::string, Value>>> ordered;
    for (auto&& [key, node] : source) {
      const toml::source_position& begin = key.source().begin;
      Value value = convert(node, depth + 1);
      if (value.where.line == 0) {
        value.where.line = begin.line;
      }
      ordered.push_back({{begin.line, begin.column}, {std::string(key.str()), std::move(value)}});
    }
    std::sort(ordered.begin(), ordered.end(), [](const auto& a, const auto& b) {
      return std::tie(a.first, a.second.first) < std::tie(b.first, b.second.first);
    });
    Value::Table result;
    for (auto& [position, item] : ordered) {
      result.push_back(std::move(item));
    }
    return result;
  }

  const std::string& file_;
};

// ---------------------------------------------------------------- Value to TOML

std::string quote_toml(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    switch (c) {
      case '"':
        out += "\\\"";
        break;
      case '\\':
        out += "\\\\";
        break;
      case '\n':
        out += "\\n";
        break;
      case '\t':
        out += "\\t";
        break;
      case '\r':
        out += "\\r";
        break;
      default:
        if (static_cast<unsigned char>(c) < 0x20 || c == 0x7F) {
          out += fmt::format("\\u{:04X}", static_cast<unsigned>(static_cast<unsigned char>(c)));
        } else {
          out += c;
        }
    }
  }
  return out + '"';
}

std::string key_text(std::string_view key) {
  const bool bare = !key.empty() && std::all_of(key.begin(), key.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-';
  });
  return bare ? std::string(key) : quote_toml(key);
}

/// The shortest text that reads back as the same number, recognizable as a TOML float.
std::string float_text(double number) {
  if (std::isnan(number)) {
    return "nan";
  }
  if (std::isinf(number)) {
    return number < 0 ? "-inf" : "inf";
  }
  std::string text = fmt::format("{}", number);
  if (text.find_first_of(".e") == std::string::npos) {
    text += ".0";
  }
  return text;
}

bool is_table_array(const Value& value) {
  const auto* array = std::get_if<Value::Array>(&value.data);
  return array != nullptr && !array->empty() &&
         std::all_of(array->begin(), array->end(), [](const Value& element) { return element.is_table(); });
}

std::string inline_text(const Value& value) {
  struct Writer {
    std::string operator()(std::monostate) const { throw BrokenContract("to_toml: a value without data"); }
    std::string operator()(bool flag) const { return flag ? "true" : "false"; }
    std::string operator()(std::int64_t count) const { return fmt::format("{}", count); }
    std::string operator()(double number) const { return float_text(number); }
    std::string operator()(const std::string& text) const { return quote_toml(text); }
    std::string operator()(const Value::Array& array) const {
      std::string out;
      for (const Value& element : array) {
        out += (out.empty() ? "" : ", ") + inline_text(element);
      }
      return "[" + out + "]";
    }
    std::string operator()(const Value::Table& table) const {
      std::string out;
      for (const auto& [key, element] : table) {
        out += (out.empty() ? "" : ", ") + key_text(key) + " = " + inline_text(element);
      }
      return "{" + out + "}";
    }
  };
  return std::visit(Writer{}, value.data);
}

/// Plain keys must come before the first [header], whatever their order in the tree.
void write_table(const Value::Table& table, const std::string& path, std::string& out) {
  for (const auto& [key, value] : table) {
    if (!value.is_table() && !is_table_array(value)) {
      out += key_text(key) + " = " + inline_text(value) + "\n";
    }
  }
  for (const auto& [key, value] : table) {
    const std::string name = path.empty() ? key_text(key) : path + "." + key_text(key);
    if (const auto* nested = std::get_if<Value::Table>(&value.data)) {
      out += (out.empty() ? "[" : "\n[") + name + "]\n";
      write_table(*nested, name, out);
    } else if (is_table_array(value)) {
      for (const Value& element : std::get<Value::Array>(value.data)) {
        out += (out.empty() ? "[[" : "\n[[") + name + "]]\n";
        write_table(std::get<Value::Table>(element.data), name, out);
      }
    }
  }
}

// ---------------------------------------------------------------- files

std::string nearest_file(const fs::path& path) {
  std::error_code error;
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::vector<std::string> names;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end; entry.increment(error)) {
    names.push_back(entry->path().filename().string());
  }
  std::sort(names.begin(), names.end());  // directory order is not the same on every machine
  return did_you_mean(path.filename().string(), names);
}

std::string read_text(const std::string& path) {
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (status.type() == fs::file_type::not_found) {
    bad_input("{}: no such file{}", path, nearest_file(path));
  }
  if (error) {
    bad_input("{}: cannot be read: {}", path, error.message());
  }
  if (fs::is_directory(status)) {
    bad_input("{}: is a folder; expected a TOML file", path);
  }
  std::ifstream stream(path, std::ios::binary);
  if (!stream) {
    bad_input("{}: cannot be opened for reading (check its permissions)", path);
  }
  // Counts what it reads rather than asking for the size, which pipes and /proc files do not have.
  std::string text;
  std::array<char, 65536> chunk{};
  while (stream.read(chunk.data(), chunk.size()), stream.gcount() > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(stream.gcount()));
    if (text.size() > kLargestFile) {
      bad_input("{}: larger than {} MiB; expected a TOML file written by hand", path, kLargestFile >> 20);
    }
  }
  if (stream.bad()) {
    bad_input("{}: reading failed", path);
  }
  return text;
}

}  // namespace

Value parse_toml(std::string_view text, const std::string& file) {
  check_utf8(text, file);
  check_key_depth(text, file);
  try {
    const toml::table table = toml::parse(text, file);
    Value value = Converter(file).convert(table, 0);
    value.where.line = 1;
    return value;
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw BadInput(fmt::format("{}:{}:{}: {}", file, at.line, at.column, error.description()));
  }
}

Value read_toml_file(const std::string& path) { return parse_toml(read_text(path), path); }

std::string to_toml(const Value& table) {
  const auto* content = std::get_if<Value::Table>(&table.data);
  ensure(content != nullptr, "to_toml: the outermost value must be a table");
  std::string out;
  write_table(*content, "", out);
  return out;
}

}  // namespace clustersim
