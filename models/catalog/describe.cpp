// Catalog::describe: an entry as a listing, each figure with its meaning and a numbered source or assumption.
#include <algorithm>
#include <vector>

#include "models/catalog/catalog.hpp"
#include "models/catalog/resolve.hpp"
#include "models/catalog/schemas.hpp"

namespace clustersim {
namespace {

std::string figure_text(const Value& value) {
  if (const auto* text = std::get_if<std::string>(&value.data)) {
    return *text;  // quantities are text with their unit
  }
  if (const auto* array = std::get_if<Value::Array>(&value.data)) {
    std::string out;
    for (const Value& element : *array) {
      out += (out.empty() ? "" : ", ") + element.describe();
    }
    return "[" + out + "]";
  }
  return value.describe();
}

/// Numbers the distinct notes in order of appearance.
class Notes {
 public:
  std::string mark(const Provenance& from) {
    const std::string text = from.source.empty() ? "no source given" : from.source;
    const std::string note = from.assumed ? "assumed: " + text : text;
    auto found = std::find(notes_.begin(), notes_.end(), note);
    if (found == notes_.end()) {
      found = notes_.insert(notes_.end(), note);
    }
    return fmt::format("[{}]{}", found - notes_.begin() + 1, from.assumed ? " assumed" : "");
  }
  [[nodiscard]] std::string listing() const {
    std::string out;
    for (std::size_t i = 0; i < notes_.size(); ++i) {
      out += fmt::format("  [{}] {}\n", i + 1, notes_[i]);
    }
    return out;
  }

 private:
  std::vector<std::string> notes_;
};

}  // namespace

std::string Catalog::describe_entry(const std::string& key) const {
  const Value& entry = raw_.find(key)->second;
  const auto slash = key.find('/');
  const std::string name = key.substr(slash + 1);
  const EntryKind& kind = entry_kind(key.substr(0, slash), entry.where);
  std::map<std::string, Provenance> provenance = provenance_of(kind, entry);
  std::map<std::string, std::string> derived;  // what a node takes from its GPU and NIC
  if (kind.name == "node") {
    const NodeSpec& spec = node(name);
    provenance = spec.provenance;
    derived["gpu_link"] = fmt::format("{} (of {})", format(spec.shape.gpu_link), spec.gpu);
    derived["pcie_rate"] = fmt::format("{} (of {})", format(spec.shape.pcie_rate), spec.gpu);
  }
  std::string out = fmt::format("{} {}: {}\n", kind.name, name, figure_text(*entry.find("title")));
  Notes notes;
  for (const Parameter& parameter : kind.schema) {
    const std::string parameter_name(parameter.name);
    if (parameter_name == "title" || parameter_name == "sources" || parameter_name == "assumptions") {
      continue;
    }
    std::string figure;
    if (const Value* value = entry.find(parameter.name)) {
      figure = figure_text(*value);
    } else if (const auto found = derived.find(parameter_name); found != derived.end()) {
      figure = found->second;
    } else if (kind.defaults_are_assumptions && !parameter.default_text.empty()) {
      figure = parameter.default_text;
    } else {
      continue;
    }
    const auto from = provenance.find(parameter_name);
    out += fmt::format("  {:<22} {:<22} {:<13} {}\n", parameter_name, figure,
                       from == provenance.end() ? "" : notes.mark(from->second), parameter.help);
  }
  return out + notes.listing();
}

std::string Catalog::describe(std::string_view name) const {
  std::string out;
  std::vector<std::string> names;
  for (const Entry& entry : entries()) {
    const std::string key = entry.kind + "/" + entry.name;
    names.push_back(entry.name);
    if (entry.name == name || key == name) {
      out += (out.empty() ? "" : "\n") + describe_entry(key);
    }
  }
  if (out.empty()) {
    bad_input("\"{}\": the catalog has no such entry{}", name, did_you_mean(name, names));
  }
  return out;
}

}  // namespace clustersim
