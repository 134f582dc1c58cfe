// A scenario tree checked section by section into a typed scenario, and written out again with every default.
#include "scenarios/scenario.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "scenarios/schema.hpp"
#include "scenarios/tree.hpp"
#include "sim/errors.hpp"
#include "sim/random.hpp"
#include "sim/text.hpp"

namespace clustersim {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMostNodes = 1'000'000;
constexpr std::size_t kMostPoints = 10'000;
/// Cable of a link whose switch is named: 10 m at 5 ns/m.
constexpr Picoseconds kCableLatency{50'000};
constexpr Picoseconds kDefaultLinkLatency{600'000};

using CatalogCache = std::map<std::vector<std::string>, std::shared_ptr<const Catalog>>;

// ---------------------------------------------------------------- values

const Value kEmptyTable{Value::Table{}, {}};

/// The section of that name, an empty table when it was not written.
const Value& section_of(const Settings& top, std::string_view name) {
  return top.has(name) ? top.any(name) : kEmptyTable;
}

void set_key(Value& table, std::string_view key, Value value) {
  auto& items = std::get<Value::Table>(table.data);
  for (auto& [existing, old] : items) {
    if (existing == key) {
      old = std::move(value);
      return;
    }
  }
  items.emplace_back(std::string(key), std::move(value));
}

void remove_key(Value& table, std::string_view key) {
  std::erase_if(std::get<Value::Table>(table.data), [&](const auto& item) { return item.first == key; });
}

Value text_value(std::string text) { return Value{std::move(text), {}}; }

// Shortest digits that read back as the same quantity.
Value rate_value(Rate rate) { return text_value(fmt::format("{} Gb/s", rate.value() * 8 / 1e9)); }
Value duration_value(Picoseconds time) {
  return text_value(fmt::format("{} us", static_cast<double>(time.count()) / 1e6));
}

OwnedSettings check_owned(const Value& table, std::span<const Parameter> common, std::span<const Parameter> specific,
                          const std::string& path) {
  auto schema = std::make_shared<std::vector<Parameter>>(common.begin(), common.end());
  for (const Parameter& parameter : specific) {
    for (const Parameter& taken : common) {
      ensure(taken.name != parameter.name, "{}.{} is declared twice: by the scenario and by the table entry", path,
             parameter.name);
    }
    schema->push_back(parameter);
  }
  Settings settings = check_settings(table, *schema, path);
  return {std::move(schema), std::move(settings)};
}

/// The text under `selector`, which decides what else may stand in the table.
const std::string& selector_text(const Value& table, std::string_view selector, std::span<const Parameter> common,
                                 const std::string& path, std::string_view listing) {
  const Value* value = table.find(selector);
  const std::vector<std::string> wanted{std::string(selector)};
  if (!table.is_table()) check_settings(table, common, path);  // throws
  if (value == nullptr) {
    for (const auto& [key, written] : std::get<Value::Table>(table.data)) {
      if (const std::string hint = did_you_mean(key, wanted); !hint.empty()) {
        bad_input("{} {}.{} = {}: unknown key{}", written.where.text(), path, key, written.describe(), hint);
      }
    }
    const std::string where = table.where.text();
    bad_input("{}{}{}: missing key \"{}\" (`clustersim list {}` shows the choices)", where, where.empty() ? "" : " ",
              path, selector, listing);
  }
  const auto* text = std::get_if<std::string>(&value->data);
  if (text == nullptr) {
    bad_input("{} {}.{} = {}: expected a text in quotes", value->where.text(), path, selector, value->describe());
  }
  return *text;
}

// ---------------------------------------------------------------- catalog

std::string catalog_path(const Value& written) {
  const std::string& name = std::get<std::string>(written.data);
  const fs::path folder = fs::path(written.where.file).parent_path();
  return (fs::path(name).is_absolute() ? fs::path(name) : folder / name).lexically_normal().string();
}

struct CatalogFiles {
  std::vector<std::string> paths;
  std::shared_ptr<const Catalog> catalog;
};

CatalogFiles load_catalog(const Settings& top, CatalogCache& cache) {
  const Settings section = check_settings(section_of(top, "catalog"), catalog_schema(), "catalog");
  CatalogFiles result;
  if (section.has("files")) {
    const Value* files = top.any("catalog").find("files");
    for (const Value& written : std::get<Value::Array>(files->data)) result.paths.push_back(catalog_path(written));
  }
  std::shared_ptr<const Catalog>& known = cache[result.paths];
  if (known == nullptr) {
    Catalog catalog = Catalog::built_in();
    for (const std::string& path : result.paths) catalog.add_file(path);
    known = std::make_shared<const Catalog>(std::move(catalog));
  }
  result.catalog = known;
  return result;
}

// ---------------------------------------------------------------- cluster

SourceLocation location_of(const Value& table, std::string_view key) {
  const Value* value = table.find(key);
  return value == nullptr ? table.where : value->where;
}

std::vector<NodeCount> read_nodes(const Settings& cluster, const Value& table, const Catalog& catalog) {
  std::vector<NodeCount> groups;
  if (cluster.has("groups")) {
    if (cluster.given("node")) cluster.reject("node", "either `node` and `nodes` or `groups`, not both");
    if (cluster.given("nodes")) cluster.reject("nodes", "either `node` and `nodes` or `groups`, not both");
    const auto& written = std::get<Value::Array>(table.find("groups")->data);
    const std::vector<Settings>& checked = cluster.tables("groups");
    for (std::size_t i = 0; i < checked.size(); ++i) {
      groups.push_back({checked[i].text("node"), location_of(written[i], "node"), checked[i].integer("count")});
    }
  } else {
    if (!cluster.has("node")) {
      bad_input("{} cluster: missing key \"node\" (`clustersim catalog` lists the nodes)", table.where.text());
    }
    groups.push_back(
        {cluster.text("node"), location_of(table, "node"), cluster.has("nodes") ? cluster.integer("nodes") : 1});
  }
  std::int64_t total = 0;
  for (const NodeCount& group : groups) {
    static_cast<void>(catalog.node(group.node, group.where));  // throws for a name that is not there
    total += group.count;
  }
  if (total > kMostNodes) cluster.reject("groups", "{} nodes in all; at most {} are possible", total, kMostNodes);
  return groups;
}

std::vector<Degradation> read_degraded(const Settings& cluster) {
  std::vector<Degradation> result;
  for (const Settings& entry : cluster.tables("degraded")) {
    Degradation item;
    if (entry.given("link") == entry.given("gpu")) {
      bad_input("{}: expected either `link` and `capacity_factor`, or `gpu` and `slowdown`",
                entry.place(entry.given("link") ? "gpu" : "link"));
    }
    const bool is_link = entry.given("link");
    const std::string_view subject = is_link ? "link" : "gpu";
    const std::string_view effect = is_link ? "capacity_factor" : "slowdown";
    for (const std::string_view wrong :
         {is_link ? "slowdown" : "capacity_factor", is_link ? "slowdown" : "both_directions"}) {
      const bool harmless = wrong == "both_directions" && entry.given(wrong) && !entry.boolean(wrong);
      if (entry.given(wrong) && !harmless) entry.reject(wrong, "does not apply to a {}", is_link ? "link" : "GPU");
    }
    if (!entry.given(effect)) entry.reject(subject, "missing key \"{}\" beside it: by how much?", effect);
    item.place = entry.place(subject);
    if (is_link) {
      item.link = entry.text("link");
      item.capacity_factor = entry.number("capacity_factor");
      item.both_directions = entry.boolean("both_directions");
    } else {
      item.gpu = entry.integer("gpu");
      item.slowdown = entry.number("slowdown");
    }
    result.push_back(std::move(item));
  }
  return result;
}

LinkKind parse_link_kind(std::string_view text) {
  if (text == "infiniband") return LinkKind::infiniband;
  if (text == "ethernet") return LinkKind::ethernet;
  return LinkKind::torus_link;
}

std::string_view link_kind_text(LinkKind kind) {
  if (kind == LinkKind::infiniband) return "infiniband";
  if (kind == LinkKind::ethernet) return "ethernet";
  return "torus-link";
}

RoutingPolicy parse_routing(std::string_view text) {
  if (text == "deterministic") return RoutingPolicy::deterministic;
  return text == "ecmp" ? RoutingPolicy::ecmp : RoutingPolicy::spread;
}

/// Link rate and protocol come from the adapters unless written.
void read_links(const Settings& network, const Value& table, const Catalog& catalog, ClusterDescription& cluster) {
  const NodeSpec& node = catalog.node(cluster.groups.front().node);
  const NicSpec* nic = node.nic.empty() ? nullptr : &catalog.nic(node.nic);
  if (network.has("link_rate")) {
    cluster.link_rate = network.rate("link_rate");
  } else if (nic != nullptr) {
    cluster.link_rate = nic->rate;
  } else {
    bad_input("{} cluster.network: missing key \"link_rate\": node \"{}\" has no NIC to take it from",
              table.where.text(), node.name);
  }
  cluster.link_kind = nic == nullptr ? LinkKind::torus_link : nic->kind;
  if (network.has("kind")) cluster.link_kind = parse_link_kind(network.text("kind"));
  cluster.in_network_reduction = network.boolean("in_network_reduction");
  cluster.link_latency = kDefaultLinkLatency;
  if (network.has("switch")) {
    cluster.network_switch = network.text("switch");
    const SwitchSpec& chosen = catalog.network_switch(cluster.network_switch, location_of(table, "switch"));
    cluster.link_latency = chosen.latency + kCableLatency;
    if (chosen.port_rate < cluster.link_rate) {
      network.reject("switch", "its ports do {}, the links {}", format_bits(chosen.port_rate),
                     format_bits(cluster.link_rate));
    }
    if (cluster.in_network_reduction && !chosen.in_network_reduction) {
      network.reject("in_network_reduction", "the switch \"{}\" cannot reduce", chosen.name);
    }
  }
  if (network.has("link_latency")) cluster.link_latency = network.duration("link_latency");
}

void read_network(const Value& table, const Catalog& catalog, std::uint64_t seed, ClusterDescription& cluster) {
  const std::string path = "cluster.network";
  const std::string& topology = selector_text(table, "topology", network_schema(), path, "topologies");
  cluster.fabric = &find_fabric(topology, location_of(table, "topology"));
  cluster.network = check_owned(table, network_schema(), cluster.fabric->schema, path);
  const Settings& network = cluster.network.settings;
  read_links(network, table, catalog, cluster);
  cluster.routing.policy = parse_routing(network.text("routing"));
  cluster.routing.queue_pairs = static_cast<std::uint32_t>(network.integer("queue_pairs"));
  cluster.routing.seed =
      network.has("routing_seed") ? static_cast<std::uint64_t>(network.integer("routing_seed")) : seed;
  if (network.given("queue_pairs") && cluster.routing.policy != RoutingPolicy::ecmp &&
      cluster.routing.queue_pairs != 1) {
    network.reject("queue_pairs", "only matters with routing = \"ecmp\"; here it is \"{}\"", network.text("routing"));
  }
}

Value resolve_network(const ClusterDescription& cluster) {
  Value resolved = cluster.network.settings.resolved();
  set_key(resolved, "link_rate", rate_value(cluster.link_rate));
  set_key(resolved, "link_latency", duration_value(cluster.link_latency));
  set_key(resolved, "kind", text_value(std::string(link_kind_text(cluster.link_kind))));
  if (cluster.routing.policy == RoutingPolicy::ecmp) {
    set_key(resolved, "routing_seed", Value{static_cast<std::int64_t>(cluster.routing.seed), {}});
  }
  return resolved;
}

/// Reads [cluster] and gives it back with defaults.
Value read_cluster(const Value& table, const Catalog& catalog, std::uint64_t seed, ClusterDescription& cluster) {
  const Settings settings = check_settings(table, cluster_schema(), "cluster");
  cluster.groups = read_nodes(settings, table, catalog);
  cluster.degraded = read_degraded(settings);
  Value resolved = settings.resolved();
  if (!settings.has("groups")) set_key(resolved, "nodes", Value{cluster.groups.front().count, {}});
  if (settings.has("network")) {
    read_network(settings.any("network"), catalog, seed, cluster);
    set_key(resolved, "network", resolve_network(cluster));
  } else if (cluster.nodes() > 1) {
    bad_input(
        "{} cluster: missing table \"network\": {} nodes need one (`clustersim list topologies` shows the choices)",
        table.where.text(), cluster.nodes());
  }
  return resolved;
}

// ---------------------------------------------------------------- communication, jobs, nccl_test

/// "auto", a name, or "operation:name, ..."; every name is checked here, where its place is known.
std::string read_algorithm(const Settings& settings, const SourceLocation& where) {
  const std::string& text = settings.text("algorithm");
  std::string_view rest = text;
  for (bool more = true; more;) {
    const std::size_t comma = rest.find(',');
    more = comma != std::string_view::npos;
    std::string_view item = trimmed(rest.substr(0, comma));
    if (more) rest.remove_prefix(comma + 1);
    if (const std::size_t colon = item.find(':'); colon != std::string_view::npos) {
      try {
        parse_collective(trimmed(item.substr(0, colon)));
      } catch (const BadInput& problem) {
        throw BadInput(settings.place("algorithm") + ": " + problem.what());
      }
      item = trimmed(item.substr(colon + 1));
    }
    if (item != "auto") find_algorithm(item, where);
  }
  return text;
}

Value read_communication(const Value& table, const Catalog& catalog, const ClusterDescription& cluster,
                         CommunicationModel& model) {
  const Settings settings = check_settings(table, communication_schema(), "communication");
  const NodeSpec& node = catalog.node(cluster.groups.front().node);
  model.scale_up_efficiency = node.scale_up_efficiency;
  model.pcie_efficiency = node.pcie_efficiency;
  if (!node.nic.empty()) model.network_efficiency = catalog.nic(node.nic).efficiency;
  Value resolved = settings.resolved();
  const auto number = [&](std::string_view key, double& target) {
    if (settings.has(key)) target = settings.number(key);
    set_key(resolved, key, Value{target, {}});
  };
  const auto duration = [&](std::string_view key, Picoseconds& target) {
    if (settings.has(key)) target = settings.duration(key);
    set_key(resolved, key, duration_value(target));
  };
  number("scale_up_efficiency", model.scale_up_efficiency);
  number("pcie_efficiency", model.pcie_efficiency);
  number("network_efficiency", model.network_efficiency);
  duration("scale_up_step", model.scale_up_step);
  duration("network_step", model.network_step);
  duration("launch", model.launch);
  model.window = settings.bytes("window");
  model.channels = static_cast<std::uint32_t>(settings.integer("channels"));
  number("nvls_efficiency", model.nvls_efficiency);
  number("nvls_network_efficiency", model.nvls_network_efficiency);
  if (settings.has("concurrent_peers")) {
    model.concurrent_peers = static_cast<std::uint32_t>(settings.integer("concurrent_peers"));
  }
  set_key(resolved, "concurrent_peers", Value{std::int64_t{model.concurrent_peers}, {}});
  model.algorithm = read_algorithm(settings, location_of(table, "algorithm"));
  return resolved;
}

Value read_job(const Value& jobs, std::optional<JobDescription>& job) {
  const auto* array = std::get_if<Value::Array>(&jobs.data);
  if (array == nullptr || array->empty()) {
    bad_input("{} jobs = {}: expected one table [[jobs]]", jobs.where.text(), jobs.describe());
  }
  if (array->size() > 1) {
    bad_input("{} jobs: {} jobs; exactly one can be simulated at a time", (*array)[1].where.text(), array->size());
  }
  const Value& table = array->front();
  const std::string path = "jobs[0]";
  const std::string& name = selector_text(table, "workload", job_schema(), path, "workloads");
  job.emplace();
  job->workload = &find_workload(name, location_of(table, "workload"));
  job->settings = check_owned(table, job_schema(), job->workload->schema, path);
  if (job->settings.settings.has("name")) job->name = job->settings.settings.text("name");
  job->steps = job->settings.settings.integer("steps");
  return Value{Value::Array{job->settings.settings.resolved()}, {}};
}

Value read_nccl_test(const Value& table, CommunicationModel& model, std::optional<NcclTestOptions>& test) {
  const Settings settings = check_settings(table, nccl_test_schema(), "nccl_test");
  const auto located = [&](std::string_view key, const auto& parse) {
    try {
      return parse(settings.text(key));
    } catch (const BadInput& problem) {
      throw BadInput(settings.place(key) + ": " + problem.what());
    }
  };
  test.emplace();
  test->operation = located("op", [](const std::string& text) { return parse_collective(text); });
  test->sizes = located("sizes", [](const std::string& text) { return parse_size_range(text); });
  test->form = located("form", [](const std::string& text) { return parse_nccl_test_form(text); });
  test->type = settings.text("type");
  if (settings.has("algorithm")) model.algorithm = read_algorithm(settings, location_of(table, "algorithm"));
  return settings.resolved();
}

// ---------------------------------------------------------------- the whole

/// FNV-1a (Fowler, Noll, Vo), finalized by mix64: stable over machines, and any change of the text shows.
std::uint64_t hash_text(std::string_view text, std::uint64_t start = 0xcbf29ce484222325ULL) {
  std::uint64_t hash = start;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return mix64(hash);
}

/// One order of keys, however they came together from files, defaults and settings: those of the top level as a reader
/// expects them, all others by name.
void order_keys(Value& value, bool top) {
  if (auto* array = std::get_if<Value::Array>(&value.data)) {
    for (Value& element : *array) order_keys(element, false);
  }
  auto* table = std::get_if<Value::Table>(&value.data);
  if (table == nullptr) return;
  const auto rank = [top](const std::string& key) {
    constexpr std::array<std::string_view, 8> kTop{"name",    "description",   "seed", "catalog",
                                                   "cluster", "communication", "jobs", "nccl_test"};
    return top ? std::find(kTop.begin(), kTop.end(), key) - kTop.begin() : 0;
  };
  std::sort(table->begin(), table->end(), [&](const auto& a, const auto& b) {
    return std::pair(rank(a.first), std::string_view(a.first)) < std::pair(rank(b.first), std::string_view(b.first));
  });
  for (auto& [key, nested] : *table) order_keys(nested, false);
}

/// Two runs with the same hash simulate the same thing: extra catalog files count by content, not by path.
std::string content_hash(Value resolved, const std::vector<std::string>& catalog_files) {
  remove_key(resolved, "catalog");
  std::uint64_t hash = hash_text(to_toml(resolved));
  for (const std::string& path : catalog_files) {
    std::ifstream stream(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(stream), std::istreambuf_iterator<char>()};
    hash = hash_text(text, hash);
  }
  return fmt::format("{:016x}", hash);
}

void check_work(const Settings& top, const Value& tree) {
  const std::string where = tree.where.text();
  if (top.has("jobs") && top.has("nccl_test")) {
    bad_input("{} nccl_test: either [[jobs]] or [nccl_test], not both", top.any("nccl_test").where.text());
  }
  if (!top.has("jobs") && !top.has("nccl_test")) {
    bad_input("{}{}nothing to run: expected a [[jobs]] table or an [nccl_test] table", where,
              where.empty() ? "" : ": ");
  }
}

Scenario read_scenario(const Value& tree, bool needs_work, CatalogCache& cache);

/// One complete scenario per point: the tree without its study, with the point's values set.
std::vector<Scenario> read_points(const Value& study, const Value& tree, CatalogCache& cache) {
  const Settings settings = check_settings(study, study_schema(), "study");
  const Value& points = settings.any("points");
  const auto* array = std::get_if<Value::Array>(&points.data);
  if (array == nullptr || array->empty() || array->size() > kMostPoints) {
    settings.reject("points", "expected an array of 1 to {} tables, e.g. [ {{\"cluster.nodes\" = 2}} ]", kMostPoints);
  }
  std::vector<Scenario> result;
  for (std::size_t i = 0; i < array->size(); ++i) {
    const auto* table = std::get_if<Value::Table>(&(*array)[i].data);
    if (table == nullptr) {
      bad_input("{} study.points[{}] = {}: expected a table of key paths and values", (*array)[i].where.text(), i,
                (*array)[i].describe());
    }
    Value point = tree;
    remove_key(point, "study");
    std::string label;
    for (const auto& [path, value] : *table) {
      set_by_path(point, path, value);
      label += fmt::format("{}{} = {}", label.empty() ? "" : ", ", path, value.describe());
    }
    result.push_back(read_scenario(point, true, cache));
    result.back().label = std::move(label);
  }
  return result;
}

/// Paths that lead from the current folder to the extra catalog files.
void set_catalog_files(Value& tree, const std::vector<std::string>& files) {
  if (files.empty()) return;
  Value::Array paths;
  for (const std::string& path : files) paths.push_back(text_value(path));
  set_key(tree, "catalog", Value{Value::Table{{"files", Value{std::move(paths), {}}}}, {}});
}

/// A study without defaults filled in: a default that follows from another value (the link rate from the NIC) must
/// still follow where a point changes that value. Each point's own text is complete.
Value as_written(Value tree, const std::vector<std::string>& catalog_files) {
  set_catalog_files(tree, catalog_files);
  return tree;
}

Scenario read_scenario(const Value& tree, bool needs_work, CatalogCache& cache) {
  const Settings top = check_settings(tree, scenario_schema(), "");
  if (needs_work) check_work(top, tree);
  Scenario scenario;
  scenario.name = top.text("name");
  if (scenario.name.find('/') != std::string::npos || scenario.name.starts_with('.')) {
    top.reject("name", "it becomes a file name: no / in it, and no . at its start");
  }
  if (top.has("description")) scenario.description = top.text("description");
  scenario.seed = static_cast<std::uint64_t>(top.integer("seed"));
  CatalogFiles files = load_catalog(top, cache);
  scenario.catalog = std::move(files.catalog);

  Value resolved = top.resolved();
  set_catalog_files(resolved, files.paths);
  set_key(resolved, "cluster", read_cluster(top.any("cluster"), *scenario.catalog, scenario.seed, scenario.cluster));
  Value communication =
      read_communication(section_of(top, "communication"), *scenario.catalog, scenario.cluster, scenario.communication);
  if (top.has("jobs")) set_key(resolved, "jobs", read_job(top.any("jobs"), scenario.job));
  if (top.has("nccl_test")) {
    set_key(resolved, "nccl_test", read_nccl_test(top.any("nccl_test"), scenario.communication, scenario.nccl_test));
    set_key(communication, "algorithm", text_value(scenario.communication.algorithm));
  }
  set_key(resolved, "communication", std::move(communication));
  if (top.has("study")) {
    scenario.points = read_points(top.any("study"), tree, cache);
    resolved = as_written(tree, files.paths);
  }
  order_keys(resolved, true);
  scenario.resolved_text = to_toml(resolved);
  scenario.hash = content_hash(std::move(resolved), files.paths);
  return scenario;
}

Scenario finish(Value tree, const LoadOptions& options) {
  for (const std::string& assignment : options.set) apply_set(tree, assignment);
  CatalogCache cache;
  return read_scenario(tree, options.needs_work, cache);
}

}  // namespace

std::int64_t ClusterDescription::nodes() const {
  std::int64_t total = 0;
  for (const NodeCount& group : groups) total += group.count;
  return total;
}

Scenario load_scenario(const std::string& argument, const LoadOptions& options) {
  return finish(read_scenario_tree(argument), options);
}

Scenario load_scenario_text(std::string_view text, const std::string& file, const LoadOptions& options) {
  return finish(merge_extended(parse_toml(text, file)), options);
}

Scenario load_scenario_value(Value tree, const LoadOptions& options) {
  return finish(merge_extended(std::move(tree)), options);
}

std::vector<std::pair<std::string, std::string>> library_scenarios() {
  std::vector<std::pair<std::string, std::string>> result;
  for (const EmbeddedFile& file : embedded_scenarios()) {
    std::string name(file.name);
    if (name.ends_with(".toml")) name.resize(name.size() - 5);
    const Value tree = parse_toml(file.text, "library:" + std::string(file.name));
    const Value* description = tree.find("description");
    const auto* text = description == nullptr ? nullptr : std::get_if<std::string>(&description->data);
    result.emplace_back(std::move(name), text == nullptr ? "" : *text);
  }
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace clustersim
