// From what a file says to a complete entry: `like` merged in, and every figure with its source or assumption.
#include "models/catalog/resolve.hpp"

#include <algorithm>
#include <utility>

namespace clustersim {
namespace {

std::string at(const SourceLocation& where) { return where.text().empty() ? "" : where.text() + " "; }

/// "gpu/h100-sxm"
std::string entry_key(std::string_view kind, std::string_view name) { return fmt::format("{}/{}", kind, name); }

const Value::Table& as_table(const Value& value, const std::string& path) {
  const auto* table = std::get_if<Value::Table>(&value.data);
  if (table == nullptr) {
    bad_input("{}{} = {}: expected a table", at(value.where), path, value.describe());
  }
  return *table;
}

const std::string& as_text(const Value& value, const std::string& path) {
  const auto* text = std::get_if<std::string>(&value.data);
  if (text == nullptr) {
    bad_input("{}{} = {}: expected text in quotes", at(value.where), path, value.describe());
  }
  return *text;
}

Value* find_key(Value::Table& table, std::string_view key) {
  const auto found = std::find_if(table.begin(), table.end(), [&](const auto& item) { return item.first == key; });
  return found == table.end() ? nullptr : &found->second;
}

void set_key(Value::Table& table, const std::string& key, Value value) {
  if (Value* present = find_key(table, key)) {
    *present = std::move(value);
  } else {
    table.emplace_back(key, std::move(value));
  }
}

void erase_key(Value::Table& table, std::string_view key) {
  std::erase_if(table, [&](const auto& item) { return item.first == key; });
}

/// Moves `key` of a resolved entry to `sources` or `assumptions` with the given text, out of the other one.
void set_provenance(Value::Table& entry, const std::string& key, std::string_view into, const Value& text) {
  for (const std::string_view part : {std::string_view("sources"), std::string_view("assumptions")}) {
    Value* table = find_key(entry, part);
    if (table == nullptr) {
      entry.emplace_back(std::string(part), Value{Value::Table{}, {}});
      table = &entry.back().second;
    }
    auto& items = std::get<Value::Table>(table->data);
    erase_key(items, key);
    if (part == into) {
      items.emplace_back(key, text);
    }
  }
}

/// The entries of one call to resolve_entries, completed on demand because one may build on another.
class Resolver {
 public:
  explicit Resolver(const ResolvedEntries& known) : known_(known) {}

  void collect(const Value& file) {
    for (const auto& [kind, entries] : as_table(file, "the file")) {
      entry_kind(kind, entries.where);
      for (const auto& [name, entry] : as_table(entries, kind)) {
        const std::string key = entry_key(kind, name);
        if (name.empty() || name.find('/') != std::string::npos) {
          bad_input("{}{}.\"{}\": a name is not empty and has no '/'", at(entry.where), kind, name);
        }
        as_table(entry, fmt::format("{}.{}", kind, name));
        const auto [position, fresh] = written_.emplace(key, &entry);
        if (!fresh) {
          bad_input("{}{}.{}: defined already at {}", at(entry.where), kind, name, position->second->where.text());
        }
      }
    }
  }

  ResolvedEntries resolve_all() {
    for (const auto& [key, entry] : written_) {
      resolve(key);
    }
    return std::move(done_);
  }

 private:
  const Value& resolve(const std::string& key) {
    if (const auto found = done_.find(key); found != done_.end()) {
      return found->second;
    }
    const Value& own = *written_.at(key);
    const auto slash = key.find('/');
    const std::string kind = key.substr(0, slash);
    const std::string path = kind + "." + key.substr(slash + 1);
    if (std::find(open_.begin(), open_.end(), key) != open_.end()) {
      bad_input("{}{}.like: the entries are like each other in a circle", at(own.where), path);
    }
    open_.push_back(key);
    Value result{Value::Table{}, own.where};
    if (const Value* like = own.find("like")) {
      result.data = base(kind, key, as_text(*like, path + ".like"), like->where).data;
    }
    open_.pop_back();
    merge(std::get<Value::Table>(result.data), std::get<Value::Table>(own.data), path);
    return done_.emplace(key, std::move(result)).first->second;
  }

  /// `like` its own name means the entry that this one replaces.
  const Value& base(const std::string& kind, const std::string& key, const std::string& name,
                    const SourceLocation& where) {
    const std::string base_key = entry_key(kind, name);
    if (base_key != key && written_.contains(base_key)) {
      return resolve(base_key);
    }
    if (const auto found = known_.find(base_key); found != known_.end()) {
      return found->second;
    }
    std::vector<std::string> names;
    const std::string prefix = entry_key(kind, "");
    for (const auto& [known_key, entry] : known_) {
      if (known_key.starts_with(prefix)) {
        names.push_back(known_key.substr(prefix.size()));
      }
    }
    bad_input("{}like = \"{}\": the catalog has no such {}{}", at(where), name, kind, did_you_mean(name, names));
  }

  void merge(Value::Table& result, const Value::Table& own, const std::string& path) {
    static const Value kNone{Value::Table{}, {}};
    const Value* sources = &kNone;
    const Value* assumptions = &kNone;
    for (const auto& [key, value] : own) {
      if (key == "sources") {
        sources = &value;
      } else if (key == "assumptions") {
        assumptions = &value;
      } else if (key != "like") {
        set_key(result, key, value);
        drop_provenance(result, key);
      }
    }
    const Value::Table& source_texts = as_table(*sources, path + ".sources");
    const Value::Table& assumption_texts = as_table(*assumptions, path + ".assumptions");
    if (sources->find("default") != nullptr && assumptions->find("default") != nullptr) {
      bad_input("{}{}: a default both in sources and in assumptions", at(sources->where), path);
    }
    for (const auto& [key, value] : own) {
      if (!is_label(key)) {
        if (const Value* text = sources->find("default")) {
          set_provenance(result, key, "sources", *text);
        } else if (const Value* assumed = assumptions->find("default")) {
          set_provenance(result, key, "assumptions", *assumed);
        }
      }
    }
    set_each(result, source_texts, "sources", path);
    set_each(result, assumption_texts, "assumptions", path);
    for (const auto& [key, text] : assumption_texts) {
      if (key != "default" && sources->find(key) != nullptr) {
        bad_input("{}{}.assumptions.{}: the same key is in sources", at(text.where), path, key);
      }
    }
  }

  static void drop_provenance(Value::Table& result, const std::string& key) {
    for (const std::string_view part : {std::string_view("sources"), std::string_view("assumptions")}) {
      if (Value* table = find_key(result, part)) {
        erase_key(std::get<Value::Table>(table->data), key);
      }
    }
  }

  static void set_each(Value::Table& result, const Value::Table& texts, std::string_view part,
                       const std::string& path) {
    for (const auto& [key, text] : texts) {
      const std::string place = fmt::format("{}.{}.{}", path, part, key);
      as_text(text, place);
      if (key == "default") {
        continue;
      }
      if (is_label(key) || find_key(result, key) == nullptr) {
        std::vector<std::string> keys;
        for (const auto& [name, value] : result) {
          keys.push_back(name);
        }
        bad_input("{}{}: the entry has no figure \"{}\"{}", at(text.where), place, key, did_you_mean(key, keys));
      }
      set_provenance(result, key, part, text);
    }
  }

  const ResolvedEntries& known_;
  std::map<std::string, const Value*, std::less<>> written_;
  ResolvedEntries done_;
  std::vector<std::string> open_;  // the chain of `like` being followed
};

}  // namespace

const EntryKind& entry_kind(std::string_view name, const SourceLocation& where) {
  std::vector<std::string> names;
  for (const EntryKind& kind : entry_kinds()) {
    if (kind.name == name) {
      return kind;
    }
    names.emplace_back(kind.name);
  }
  bad_input("{}[{}]: not a kind of catalog entry; known: gpu, nic, switch, node, model{}", at(where), name,
            did_you_mean(name, names));
}

ResolvedEntries resolve_entries(const std::vector<Value>& files, const ResolvedEntries& known) {
  Resolver resolver(known);
  for (const Value& file : files) {
    resolver.collect(file);
  }
  return resolver.resolve_all();
}

std::map<std::string, Provenance> provenance_of(const EntryKind& kind, const Value& resolved) {
  std::map<std::string, Provenance> result;
  const auto text_of = [&](std::string_view part, std::string_view key) -> const std::string* {
    const Value* table = resolved.find(part);
    const Value* text = table == nullptr ? nullptr : table->find(key);
    return text == nullptr ? nullptr : std::get_if<std::string>(&text->data);
  };
  for (const Parameter& parameter : kind.schema) {
    const std::string key(parameter.name);
    if (is_label(key)) {
      continue;
    }
    if (resolved.find(key) != nullptr) {
      const std::string* assumption = text_of("assumptions", key);
      const std::string* source = text_of("sources", key);
      result[key] = {assumption != nullptr ? *assumption : (source != nullptr ? *source : ""), assumption != nullptr};
    } else if (kind.defaults_are_assumptions && !parameter.default_text.empty()) {
      result[key] = {"not given in the entry: the default", true};
    }
  }
  return result;
}

}  // namespace clustersim
