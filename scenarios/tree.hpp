// Scenario files as trees of values: finding and reading them, `extends`, and settings by key path.
#pragma once

#include <string>
#include <string_view>

#include "sim/settings.hpp"

namespace clustersim {

/// Reads what the user named: a file, "-" for standard input, or a library scenario; merges what it extends.
/// Throws BadInput: missing (with the nearest name), cyclic or unreadable.
Value read_scenario_tree(const std::string& argument);
/// Merges what an already parsed tree extends; relative paths count from the current folder.
Value merge_extended(Value tree);

/// The child over its parent. Tables merge, everything else replaces. Three exceptions keep variants short to write:
/// a table that names another `topology` or `workload` replaces its parent (the keys of the old one mean nothing to
/// the new one), and of the pairs node/groups and jobs/nccl_test the child's choice removes the parent's.
Value merge_trees(const Value& parent, const Value& child);

/// Applies "a.b[0].c=value". The value is TOML, or else plain text. Throws BadInput for a path that cannot be followed.
void apply_set(Value& tree, const std::string& assignment);
/// Sets the value at a path; missing tables on the way are made, missing array elements are an error.
void set_by_path(Value& tree, std::string_view path, Value value);

}  // namespace clustersim
