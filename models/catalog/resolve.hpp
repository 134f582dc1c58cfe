// From what a file says to a complete entry: `like` merged in, and every figure with its source or assumption.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "models/catalog/catalog.hpp"
#include "models/catalog/schemas.hpp"

namespace clustersim {

/// A resolved entry: a table of its keys, and in it `sources` and `assumptions` tables with the text of each figure.
using ResolvedEntries = std::map<std::string, Value, std::less<>>;  // "gpu/h100-sxm" -> entry

/// The entries of the files, completed with their bases among themselves and in `known`. Throws BadInput.
ResolvedEntries resolve_entries(const std::vector<Value>& files, const ResolvedEntries& known);

/// Where each figure of a resolved entry comes from; figures left out count as assumed where the kind says so.
std::map<std::string, Provenance> provenance_of(const EntryKind& kind, const Value& resolved);

/// Throws BadInput for a name that is not an entry kind.
const EntryKind& entry_kind(std::string_view name, const SourceLocation& where);

}  // namespace clustersim
