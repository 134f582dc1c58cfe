// Scenario files as trees of values: finding and reading them, `extends`, and settings by key path.
#include "scenarios/tree.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cstddef>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <variant>
#include <vector>

#include "models/catalog/catalog.hpp"
#include "scenarios/scenario.hpp"
#include "sim/errors.hpp"
#include "sim/text.hpp"

namespace clustersim {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".toml";
constexpr std::string_view kLibraryPrefix =
    "library:";  // in places, so that "library:x.toml:3" is not taken for a file
constexpr std::size_t kMostStandardInput = std::size_t{16} << 20;
constexpr std::size_t kMostParents = 32;
constexpr std::size_t kDeepestPath = 32;  // trees are walked by recursion

Value* find_mutable(Value& value, std::string_view key) {
  auto* table = std::get_if<Value::Table>(&value.data);
  if (table == nullptr) return nullptr;
  const auto found = std::find_if(table->begin(), table->end(), [&](const auto& item) { return item.first == key; });
  return found == table->end() ? nullptr : &found->second;
}

void erase_key(Value::Table& table, std::string_view key) {
  std::erase_if(table, [&](const auto& item) { return item.first == key; });
}

// ---------------------------------------------------------------- finding and reading

const EmbeddedFile* find_library(std::string_view name) {
  for (const EmbeddedFile& file : embedded_scenarios()) {
    if (file.name == name || file.name == std::string(name) + std::string(kExtension)) return &file;
  }
  return nullptr;
}

std::string library_hint(std::string_view name) {
  std::vector<std::string> names;
  for (const auto& [known, description] : library_scenarios()) names.push_back(known);
  const std::string stem = fs::path(name).stem().string();
  return did_you_mean(stem.empty() ? name : std::string_view(stem), names);
}

std::string read_standard_input() {
  std::string text;
  std::array<char, 65536> chunk{};
  while (std::cin.read(chunk.data(), chunk.size()), std::cin.gcount() > 0) {
    text.append(chunk.data(), static_cast<std::size_t>(std::cin.gcount()));
    if (text.size() > kMostStandardInput) bad_input("standard input: larger than {} MiB", kMostStandardInput >> 20U);
  }
  return text;
}

/// One file of a chain of `extends`, before merging. `identity` is equal exactly for the same file.
struct Source {
  std::string identity;
  fs::path folder;  // where its relative paths start
  Value tree;
};

bool looks_like_path(const std::string& name) {
  return name.find('/') != std::string::npos || name.ends_with(kExtension);
}

Source read_library(const EmbeddedFile& file) {
  const std::string place = std::string(kLibraryPrefix) + std::string(file.name);
  return {place, {}, parse_toml(file.text, place)};
}

/// A plain word is a library scenario when there is one of that name; anything else is a file.
Source read_source(const std::string& name, const fs::path& folder, const std::string& place) {
  if (name.empty()) bad_input("{}the name of the scenario is empty; expected a file or a library scenario", place);
  const EmbeddedFile* library = find_library(name);
  if (library != nullptr && !looks_like_path(name)) return read_library(*library);
  const fs::path path = fs::path(name).is_absolute() ? fs::path(name) : folder / name;
  std::error_code error;
  if (!fs::exists(path, error)) {
    if (library != nullptr) return read_library(*library);
    if (!looks_like_path(name)) {
      bad_input(
          "{}no scenario \"{}\": neither a file nor in the library{}; `clustersim list library` shows what there is",
          place, name, library_hint(name));
    }
    if (const std::string hint = library_hint(name); !hint.empty() && name.find('/') == std::string::npos) {
      bad_input("{}{}: no such file{}", place, path.string(), hint);
    }
  }
  const fs::path canonical = fs::weakly_canonical(path, error);
  Source source{error ? path.string() : canonical.string(), path.parent_path(), {}};
  try {
    source.tree = read_toml_file(path.string());
  } catch (const BadInput& problem) {
    if (place.empty()) throw;
    throw BadInput(place + problem.what());
  }
  return source;
}

/// Follows `extends` upwards from `child`, refusing circles, and merges from the top down.
Value merge_chain(Source child) {
  std::vector<Source> chain;
  chain.push_back(std::move(child));
  while (const Value* extends = chain.back().tree.find("extends")) {
    const auto* name = std::get_if<std::string>(&extends->data);
    const std::string where = extends->where.text();
    if (name == nullptr) {
      bad_input("{} extends = {}: expected the name of one file or library scenario, e.g. \"base.toml\"", where,
                extends->describe());
    }
    Source parent = read_source(*name, chain.back().folder, fmt::format("{} extends = \"{}\": ", where, *name));
    for (const Source& seen : chain) {
      if (seen.identity == parent.identity) {
        bad_input("{} extends = \"{}\": a circle: {} is reached again through its own `extends`", where, *name,
                  parent.identity);
      }
    }
    if (chain.size() > kMostParents) bad_input("{} extends = \"{}\": more than {} levels", where, *name, kMostParents);
    chain.push_back(std::move(parent));
  }
  Value merged = std::move(chain.back().tree);
  for (auto source = std::next(chain.rbegin()); source != chain.rend(); ++source) {
    merged = merge_trees(merged, source->tree);
  }
  if (auto* table = std::get_if<Value::Table>(&merged.data)) erase_key(*table, "extends");
  return merged;
}

// ---------------------------------------------------------------- key paths

/// `a`, `b` or `[0]` of "a.b[0]".
struct PathStep {
  std::string key;
  std::optional<std::size_t> index;
};

bool is_key_character(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-'; }

std::vector<PathStep> parse_path(std::string_view path, const std::string& place) {
  std::vector<PathStep> steps;
  std::size_t at = 0;
  const auto refuse = [&](std::string_view why) {
    bad_input("{}: \"{}\" is not a key path: {} (expected e.g. cluster.nodes or jobs[0].parallel.data)", place, path,
              why);
  };
  while (true) {
    const std::size_t begin = at;
    while (at < path.size() && is_key_character(path[at])) ++at;
    if (at == begin) refuse("a key is missing");
    steps.push_back({std::string(path.substr(begin, at - begin)), std::nullopt});
    while (at < path.size() && path[at] == '[') {
      std::size_t index = 0;
      const char* const first = path.data() + at + 1;
      const char* const last = path.data() + path.size();
      const auto [end, error] = std::from_chars(first, last, index);
      if (error != std::errc{} || end == last || *end != ']') refuse("expected a number and ] after [");
      steps.push_back({{}, index});
      at = static_cast<std::size_t>(end - path.data()) + 1;
    }
    if (steps.size() > kDeepestPath) refuse("too deep");
    if (at == path.size()) return steps;
    if (path[at] != '.') refuse(fmt::format("unexpected '{}'", path[at]));
    ++at;
  }
}

/// The value of an assignment: TOML where it is TOML, plain text otherwise, so that quotes need not survive a shell.
Value parse_set_value(const std::string& text, const std::string& assignment) {
  Value value;
  const auto is_line_break = [](char c) { return c == '\n' || c == '\r'; };
  if (std::any_of(text.begin(), text.end(), is_line_break)) bad_input("--set {}: a value is one line", assignment);
  try {
    Value parsed = parse_toml("value = " + text, "--set");
    value = std::get<Value::Table>(parsed.data).front().second;
  } catch (const BadInput& problem) {
    if (!text.empty() && std::string_view("[{\"'").find(text.front()) != std::string_view::npos) {
      throw BadInput(fmt::format("--set {}: the value is not valid TOML: {}", assignment, problem.what()));
    }
    value.data = text;
  }
  return value;
}

void locate(Value& value, const SourceLocation& where) {
  value.where = where;
  if (auto* array = std::get_if<Value::Array>(&value.data)) {
    for (Value& element : *array) locate(element, where);
  } else if (auto* table = std::get_if<Value::Table>(&value.data)) {
    for (auto& [key, element] : *table) locate(element, where);
  }
}

Value& child_element(Value& value, std::size_t index, const std::string& walked, const std::string& place) {
  auto* array = std::get_if<Value::Array>(&value.data);
  if (array == nullptr) bad_input("{}: {} is {}, not an array", place, walked, value.describe());
  if (index >= array->size()) {
    bad_input("{}: {}[{}] does not exist: there {} {} element{}", place, walked, index,
              array->size() == 1 ? "is" : "are", array->size(), array->size() == 1 ? "" : "s");
  }
  return (*array)[index];
}

Value& child_key(Value& value, const std::string& key, const std::string& walked, const SourceLocation& where,
                 const std::string& place) {
  if (!value.is_table()) bad_input("{}: {} is {}, not a table", place, walked, value.describe());
  if (Value* found = find_mutable(value, key)) return *found;
  auto& table = std::get<Value::Table>(value.data);
  table.push_back({key, Value{Value::Table{}, where}});
  return table.back().second;
}

}  // namespace

Value read_scenario_tree(const std::string& argument) {
  if (argument == "-") {
    return merge_chain({"standard input", {}, parse_toml(read_standard_input(), "standard input")});
  }
  return merge_chain(read_source(argument, {}, ""));
}

Value merge_extended(Value tree) { return merge_chain({"", {}, std::move(tree)}); }

Value merge_trees(const Value& parent, const Value& child) {
  if (!parent.is_table() || !child.is_table()) return child;
  for (const std::string_view selector : {"topology", "workload"}) {
    const Value* before = parent.find(selector);
    const Value* after = child.find(selector);
    if (before != nullptr && after != nullptr && before->data.index() == after->data.index() &&
        before->describe() != after->describe()) {
      return child;
    }
  }
  Value merged = parent;
  merged.where = child.where;
  auto& table = std::get<Value::Table>(merged.data);
  const auto chose = [&](std::string_view chosen, std::string_view other) {
    return child.find(chosen) != nullptr && child.find(other) == nullptr;
  };
  if (chose("groups", "node"))
    std::erase_if(table, [](const auto& i) { return i.first == "node" || i.first == "nodes"; });
  if (chose("node", "groups")) erase_key(table, "groups");
  if (chose("nccl_test", "jobs")) erase_key(table, "jobs");
  if (chose("jobs", "nccl_test")) erase_key(table, "nccl_test");
  for (const auto& [key, value] : std::get<Value::Table>(child.data)) {
    if (Value* existing = find_mutable(merged, key)) {
      *existing = merge_trees(*existing, value);
    } else {
      table.push_back({key, value});
    }
  }
  return merged;
}

void set_by_path(Value& tree, std::string_view path, Value value) {
  const SourceLocation where = value.where;
  const std::string place = fmt::format("{} {}", where.text(), path);
  if (path == "extends" || path == "study" || path.starts_with("study.")) {
    bad_input("{}: `{}` can only be written in a scenario file", place, path.substr(0, path.find('.')));
  }
  Value* at = &tree;
  std::string walked;
  for (const PathStep& step : parse_path(path, place)) {
    if (step.index) {
      at = &child_element(*at, *step.index, walked, place);
      walked += fmt::format("[{}]", *step.index);
    } else {
      at = &child_key(*at, step.key, walked, where, place);
      walked += (walked.empty() ? "" : ".") + step.key;
    }
  }
  *at = std::move(value);
}

void apply_set(Value& tree, const std::string& assignment) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string::npos) {
    bad_input("--set {}: expected key.path=value, e.g. --set cluster.nodes=4", assignment);
  }
  constexpr std::string_view kSpaces = " \t";
  const std::string_view written = assignment;
  Value value = parse_set_value(std::string(trimmed(written.substr(equals + 1), kSpaces)), assignment);
  locate(value, {"--set", 0});
  set_by_path(tree, trimmed(written.substr(0, equals), kSpaces), std::move(value));
}

}  // namespace clustersim
