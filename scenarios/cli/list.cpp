// clustersim list: the reference of everything a scenario may name, with every parameter.
#include <algorithm>
#include <array>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/collectives/collective.hpp"
#include "models/workloads/workload.hpp"
#include "scenarios/cli/command.hpp"
#include "sim/errors.hpp"
#include "topologies/fabric.hpp"
#include "topologies/node.hpp"

namespace clustersim::cli {
namespace {

std::string_view kind_text(ValueKind kind) {
  constexpr std::array<std::string_view, 17> kTexts = {
      "true or false",     "count",           "number",          "text",      "choice",     "data \"80 GiB\"",
      "rate \"400 Gb/s\"", "time \"1.5 us\"", "\"989 TFLOP/s\"", "\"700 W\"", "\"$30000\"", "counts",
      "numbers",           "texts",           "table",           "tables",    "any"};
  return kTexts.at(static_cast<std::size_t>(kind));
}

std::string bounds(const Parameter& parameter) {
  constexpr double kOpen = 1e299;
  const bool low = parameter.minimum > -kOpen;
  const bool high = parameter.maximum < kOpen;
  if (low && high) return fmt::format("{:g} to {:g}", parameter.minimum, parameter.maximum);
  if (low) return fmt::format("at least {:g}", parameter.minimum);
  return high ? fmt::format("at most {:g}", parameter.maximum) : "";
}

void append_schema(std::string& text, std::span<const Parameter> schema, std::size_t indent) {
  for (const Parameter& parameter : schema) {
    std::string type(kind_text(parameter.kind));
    if (parameter.kind == ValueKind::choice) type = fmt::format("{}", fmt::join(parameter.choices, " | "));
    text += fmt::format("{:{}}{:<26} {}\n", "", indent, parameter.name, parameter.help);
    std::string details = type;
    if (parameter.required) details += ", required";
    if (!parameter.default_text.empty()) details += fmt::format(", default {}", parameter.default_text);
    if (const std::string range = bounds(parameter); !range.empty()) details += ", " + range;
    text += fmt::format("{:{}}{:<26}   {}\n", "", indent, "", details);
    append_schema(text, parameter.nested, indent + 4);
  }
}

/// One thing that a scenario may name.
struct Item {
  std::string name;
  std::string help;
  std::span<const Parameter> schema;
};

struct Topic {
  std::string_view name;
  std::string_view title;
  std::vector<Item> (*items)();
};

template <class Entries>
std::vector<Item> with_schema(const Entries& entries) {
  std::vector<Item> items;
  for (const auto& entry : entries) items.push_back({std::string(entry.name), std::string(entry.help), entry.schema});
  return items;
}

template <class Entries>
std::vector<Item> plain(const Entries& entries) {
  std::vector<Item> items;
  for (const auto& entry : entries) items.push_back({std::string(entry.name), std::string(entry.help), {}});
  return items;
}

std::vector<Item> section_items() {
  std::vector<Item> items;
  for (const ScenarioSection& section : scenario_sections()) {
    items.push_back({std::string(section.title), std::string(section.help), section.schema});
  }
  return items;
}

std::vector<Item> library_items() {
  std::vector<Item> items;
  for (auto& [name, description] : library_scenarios()) items.push_back({name, description, {}});
  return items;
}

constexpr std::array<Topic, 6> kTopics = {{
    {"scenario", "Scenario files (TOML), section by section", section_items},
    {"topologies", "Topologies: cluster.network.topology", [] { return with_schema(fabrics()); }},
    {"workloads", "Workloads: jobs[0].workload", [] { return with_schema(workloads()); }},
    {"collectives", "Collective algorithms: communication.algorithm", [] { return plain(collective_algorithms()); }},
    {"interconnects", "Inside a node, for catalog entries of your own", [] { return plain(node_interconnects()); }},
    {"library", "Library scenarios: `clustersim run NAME`", library_items},
}};

struct Arguments {
  std::string topic;
  std::string name;
};

std::vector<std::string> topic_names() {
  std::vector<std::string> names;
  names.reserve(kTopics.size());
  for (const Topic& topic : kTopics) names.emplace_back(topic.name);
  return names;
}

void append_topic(std::string& text, const Topic& topic, const std::string& only) {
  const std::vector<Item> items = topic.items();
  std::vector<std::string> names;
  std::size_t width = 0;
  for (const Item& item : items) {
    names.push_back(item.name);
    width = std::max(width, item.name.size());
  }
  if (!only.empty() && std::find(names.begin(), names.end(), only) == names.end()) {
    bad_input("list {}: there is no \"{}\"{}; there are: {}", topic.name, only, did_you_mean(only, names),
              fmt::join(names, ", "));
  }
  text += fmt::format("{}{}\n", text.empty() ? "" : "\n", topic.title);
  for (const Item& item : items) {
    if (!only.empty() && item.name != only) continue;
    text += fmt::format("{}{:<{}}  {}\n", item.schema.empty() ? "  " : "\n  ", item.name, width, item.help);
    append_schema(text, item.schema, 4);
  }
}

void list(const Arguments& arguments) {
  std::string text;
  bool found = false;
  for (const Topic& topic : kTopics) {
    if (!arguments.topic.empty() && arguments.topic != topic.name) continue;
    append_topic(text, topic, arguments.name);
    found = true;
  }
  if (!found) {
    const std::vector<std::string> names = topic_names();
    bad_input("list {}: unknown topic{}; there are: {}", arguments.topic, did_you_mean(arguments.topic, names),
              fmt::join(names, ", "));
  }
  print(text);
}

}  // namespace

void add_list(CommandLine& line) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      line.app.add_subcommand("list", "The reference: everything a scenario may name, and every parameter");
  command->add_option("TOPIC", arguments->topic,
                      fmt::format("One of: {}; default: all", fmt::join(topic_names(), ", ")));
  command->add_option("NAME", arguments->name, "One entry of the topic");
  command->callback([&line, arguments] { line.action = [arguments] { list(*arguments); }; });
}

}  // namespace clustersim::cli
