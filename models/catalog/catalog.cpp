// The catalog: loads the built-in and the user's entries, and finds them by name.
#include "models/catalog/catalog.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "models/catalog/read_entries.hpp"
#include "models/catalog/resolve.hpp"
#include "models/catalog/schemas.hpp"
#include "sim/embedded.hpp"

namespace clustersim {

std::span<const EmbeddedFile> embedded_catalog();  // generated from the TOML files of this folder

namespace {

constexpr std::array<std::string_view, kDataTypes> kDataTypeNames{"fp64", "fp32", "tf32", "bf16",
                                                                  "fp16", "fp8",  "int8", "fp4"};

template <class Map>
const auto& find_entry(const Map& entries, std::string_view kind, std::string_view name, const SourceLocation& where) {
  const auto found = entries.find(name);
  if (found != entries.end()) {
    return found->second;
  }
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const auto& [known, entry] : entries) {
    names.push_back(known);
  }
  const std::string place = where.text();
  bad_input("{}{}\"{}\": the catalog has no such {}{}; `clustersim catalog` lists them", place,
            place.empty() ? "" : " ", name, kind, did_you_mean(name, names));
}

}  // namespace

std::string_view name(DataType type) { return kDataTypeNames.at(static_cast<std::size_t>(type)); }

DataType parse_data_type(std::string_view text) {
  const auto found = std::find(kDataTypeNames.begin(), kDataTypeNames.end(), text);
  if (found == kDataTypeNames.end()) {
    const std::vector<std::string> names(kDataTypeNames.begin(), kDataTypeNames.end());
    bad_input("\"{}\": not a data type; known: fp64, fp32, tf32, bf16, fp16, fp8, int8, fp4{}", text,
              did_you_mean(text, names));
  }
  return static_cast<DataType>(found - kDataTypeNames.begin());
}

double element_size(DataType type) {
  constexpr std::array<double, kDataTypes> kSizes{8, 4, 4, 2, 2, 1, 1, 0.5};  // TF32 is stored in 32 bits
  return kSizes.at(static_cast<std::size_t>(type));
}

Catalog Catalog::built_in() {
  std::vector<Value> files;
  for (const EmbeddedFile& file : embedded_catalog()) {
    files.push_back(parse_toml(file.text, "catalog/" + std::string(file.name)));
  }
  Catalog catalog;
  catalog.add(files);
  return catalog;
}

void Catalog::add_file(const std::string& path) { add({read_toml_file(path)}); }

void Catalog::add(const std::vector<Value>& files) {
  for (auto& [key, entry] : resolve_entries(files, raw_)) {
    const auto slash = key.find('/');
    const std::string kind = key.substr(0, slash);
    const std::string entry_name = key.substr(slash + 1);
    if (kind == "gpu") {
      gpus_.insert_or_assign(entry_name, read_gpu(entry_name, entry));
    } else if (kind == "nic") {
      nics_.insert_or_assign(entry_name, read_nic(entry_name, entry));
    } else if (kind == "switch") {
      switches_.insert_or_assign(entry_name, read_switch(entry_name, entry));
    } else if (kind == "model") {
      transformers_.insert_or_assign(entry_name, read_transformer(entry, entry_name));
    }
    raw_.insert_or_assign(key, std::move(entry));
  }
  // All nodes anew: one of an earlier file may use a GPU that this file replaced.
  nodes_.clear();
  for (const auto& [key, entry] : raw_) {
    if (key.starts_with("node/")) {
      const std::string entry_name = key.substr(5);
      nodes_.emplace(entry_name, read_node(entry_name, entry, *this));
    }
  }
}

const GpuSpec& Catalog::gpu(std::string_view name, const SourceLocation& where) const {
  return find_entry(gpus_, "GPU", name, where);
}

const NicSpec& Catalog::nic(std::string_view name, const SourceLocation& where) const {
  return find_entry(nics_, "NIC", name, where);
}

const SwitchSpec& Catalog::network_switch(std::string_view name, const SourceLocation& where) const {
  return find_entry(switches_, "switch", name, where);
}

const NodeSpec& Catalog::node(std::string_view name, const SourceLocation& where) const {
  return find_entry(nodes_, "node", name, where);
}

const TransformerSpec& Catalog::transformer(std::string_view name, const SourceLocation& where) const {
  return find_entry(transformers_, "model", name, where);
}

std::vector<Catalog::Entry> Catalog::entries() const {
  std::vector<Entry> result;
  for (const EntryKind& kind : entry_kinds()) {
    const std::string prefix = std::string(kind.name) + "/";
    for (auto entry = raw_.lower_bound(prefix); entry != raw_.end() && entry->first.starts_with(prefix); ++entry) {
      result.push_back({std::string(kind.name), entry->first.substr(prefix.size()),
                        std::get<std::string>(entry->second.find("title")->data)});
    }
  }
  return result;
}

}  // namespace clustersim
