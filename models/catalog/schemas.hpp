// What may be written in each kind of catalog entry.
#pragma once

#include <span>
#include <string_view>

#include "sim/settings.hpp"

namespace clustersim {

struct EntryKind {
  std::string_view name;    // "gpu": the table [gpu.NAME]
  std::string_view folder;  // where the built-in ones lie
  std::span<const Parameter> schema;
  bool defaults_are_assumptions;  // a figure left out is a guess about the product, rather than "it has none"
};

/// In the order of the listing; a node comes after the GPU and the NIC that it names.
std::span<const EntryKind> entry_kinds();

/// Names, not figures: they need no source.
bool is_label(std::string_view key);

}  // namespace clustersim
