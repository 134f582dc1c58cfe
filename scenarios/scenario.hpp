// A scenario file read, merged with what it extends, checked, and turned into a typed description of a run.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "models/catalog/catalog.hpp"
#include "models/collectives/collective.hpp"
#include "models/collectives/nccl_test.hpp"
#include "models/workloads/workload.hpp"
#include "sim/embedded.hpp"
#include "sim/settings.hpp"
#include "topologies/fabric.hpp"

namespace clustersim {

/// The scenarios compiled into the program (scenarios/library).
std::span<const EmbeddedFile> embedded_scenarios();

/// Sections of a scenario with their schemas, for reference listings. [cluster.network] and [[jobs]] additionally take
/// the keys of the chosen topology and workload.
struct ScenarioSection {
  std::string_view title;  // "[cluster.network]"
  std::string_view help;
  std::span<const Parameter> schema;
};
std::span<const ScenarioSection> scenario_sections();

/// Settings checked against a schema that was put together for this scenario (common keys plus those of a table entry).
struct OwnedSettings {
  std::shared_ptr<const std::vector<Parameter>> schema;
  Settings settings;
};

/// `count` nodes of one catalog kind.
struct NodeCount {
  std::string node;
  SourceLocation where;
  std::int64_t count = 1;
};

/// Something that is not as it should be: a link with less capacity, or a GPU with slower kernels.
struct Degradation {
  std::string link;            // by name; empty when this is about a GPU
  std::int64_t gpu = -1;       // by number; -1 when this is about a link
  double capacity_factor = 1;  // share of the line rate left
  bool both_directions = false;
  double slowdown = 1;  // kernel times multiply
  std::string place;    // "file:line key = value", for messages
};

struct ClusterDescription {
  std::vector<NodeCount> groups;
  const FabricEntry* fabric = nullptr;  // null: a single node without a network
  OwnedSettings network;                // meaningful when there is a fabric
  Rate link_rate{0};
  Picoseconds link_latency{0};
  LinkKind link_kind = LinkKind::infiniband;
  bool in_network_reduction = false;
  Routing routing;
  std::string network_switch;  // catalog name, "" when none was named
  std::vector<Degradation> degraded;
  [[nodiscard]] std::int64_t nodes() const;
};

struct JobDescription {
  const WorkloadEntry* workload = nullptr;
  std::string name;        // "" when not written
  std::int64_t steps = 1;  // that the whole job makes
  OwnedSettings settings;
};

/// A checked scenario. Copyable; everything it points to is shared, static or owned.
struct Scenario {
  std::string name;
  std::string description;
  std::uint64_t seed = 1;
  std::string label;  // of a study point: "cluster.nodes = 4, ..."; empty otherwise
  std::shared_ptr<const Catalog> catalog;
  ClusterDescription cluster;
  CommunicationModel communication;
  std::optional<JobDescription> job;
  std::optional<NcclTestOptions> nccl_test;  // the table that nccl-tests would print, asked for instead of a job
  std::vector<Scenario> points;              // of a study; each is a complete scenario
  std::string resolved_text;                 // TOML with every default written out; loads as the same scenario
  std::string hash;                          // 16 hexadecimal digits of the resolved content, independent of paths
};

struct LoadOptions {
  std::vector<std::string> set;  // "cluster.nodes=4", applied in order, after files are merged
  bool needs_work = true;        // false: a cluster without a job is enough (topology listings)
};

/// `argument` is a file path, "-" (standard input) or the name of a library scenario. Throws BadInput.
Scenario load_scenario(const std::string& argument, const LoadOptions& options = {});
/// The same from TOML text; `extends` and catalog files are relative to the current folder.
Scenario load_scenario_text(std::string_view text, const std::string& file, const LoadOptions& options = {});
/// The same from a tree put together in code.
Scenario load_scenario_value(Value tree, const LoadOptions& options = {});

/// Name (without ".toml") and description of every library scenario, in order of name.
std::vector<std::pair<std::string, std::string>> library_scenarios();

}  // namespace clustersim
