// What may be written in a scenario file, section by section.
#include "scenarios/schema.hpp"

#include <array>
#include <string_view>

#include "scenarios/scenario.hpp"

namespace clustersim {
namespace {

using enum ValueKind;

constexpr std::string_view kLinkKinds[] = {"infiniband", "ethernet", "torus-link"};
constexpr std::string_view kRoutings[] = {"deterministic", "ecmp", "spread"};
constexpr std::string_view kTypes[] = {"int8", "uint8", "int32",  "uint32",   "int64",    "uint64",
                                       "half", "float", "double", "bfloat16", "fp8_e4m3", "fp8_e5m2"};
constexpr std::string_view kForms[] = {"pipelined", "stepped", "simulated"};

constexpr Parameter kScenario[] = {
    {.name = "name", .kind = text, .help = "Names the run and its output file", .required = true},
    {.name = "description", .kind = text, .help = "What this scenario asks, in a line or more"},
    {.name = "extends", .kind = text, .help = "File (relative to this one) or library scenario that this one varies"},
    {.name = "seed", .kind = integer, .default_text = "1", .help = "Seed of everything random", .minimum = 0},
    {.name = "catalog", .kind = any, .help = "Extra catalog files"},
    {.name = "cluster", .kind = any, .help = "Nodes and the network between them", .required = true},
    {.name = "communication", .kind = any, .help = "Overrides of the communication model's constants"},
    {.name = "jobs", .kind = any, .help = "What runs: exactly one job"},
    {.name = "nccl_test", .kind = any, .help = "Instead of a job: the table that nccl-tests prints"},
    {.name = "study", .kind = any, .help = "The same scenario at several points"},
};

constexpr Parameter kCatalog[] = {
    {.name = "files",
     .kind = texts,
     .help = "Catalog files (TOML) to read after the built-in ones, relative to this file"},
};

constexpr Parameter kNodeGroup[] = {
    {.name = "node", .kind = text, .help = "Catalog node", .required = true},
    {.name = "count", .kind = integer, .help = "Nodes of this kind", .required = true, .minimum = 1, .maximum = 1e6},
};

constexpr Parameter kDegraded[] = {
    {.name = "link", .kind = text, .help = "A link by name, e.g. \"node3/nic2 -> leaf1\""},
    {.name = "capacity_factor",
     .kind = number,
     .help = "Link: share of the line rate that is left",
     .minimum = 1e-6,
     .maximum = 1},
    {.name = "both_directions", .kind = boolean, .default_text = "false", .help = "Link: the opposite direction too"},
    {.name = "gpu", .kind = integer, .help = "A GPU by its number in the cluster, node by node from 0", .minimum = 0},
    {.name = "slowdown", .kind = number, .help = "GPU: kernel times multiply by this", .minimum = 1, .maximum = 1e6},
};

constexpr Parameter kCluster[] = {
    {.name = "node", .kind = text, .help = "Catalog node that the cluster is made of"},
    {.name = "nodes", .kind = integer, .help = "How many of them (1 when not written)", .minimum = 1, .maximum = 1e6},
    {.name = "groups",
     .kind = tables,
     .help = "Instead of node and nodes: several kinds of node",
     .nested = kNodeGroup},
    {.name = "network", .kind = any, .help = "The network between nodes; needed when there is more than one"},
    {.name = "degraded", .kind = tables, .help = "Links and GPUs that are not as they should be", .nested = kDegraded},
};

constexpr Parameter kNetwork[] = {
    {.name = "topology", .kind = text, .help = "See `clustersim list topologies`", .required = true},
    {.name = "link_rate",
     .kind = rate,
     .help = "Line rate of every network link, per direction; default: the NIC's",
     .minimum = 1},
    {.name = "link_latency",
     .kind = duration,
     .help = "Cable plus the switch it enters; default: the named switch plus 50 ns of cable, or 0.6 us",
     .minimum = 0,
     .maximum = 10},
    {.name = "kind", .kind = choice, .help = "Protocol of the links; default: the NIC's", .choices = kLinkKinds},
    {.name = "switch",
     .kind = text,
     .help = "Catalog switch: its latency is used, its ports and port rate are checked"},
    {.name = "routing",
     .kind = choice,
     .default_text = "spread",
     .help = "One path (deterministic), hashed sub-flows (ecmp), or all shortest paths evenly (spread)",
     .choices = kRoutings},
    {.name = "queue_pairs",
     .kind = integer,
     .default_text = "1",
     .help = "ecmp: sub-flows of a connection, each hashed on its own",
     .minimum = 1,
     .maximum = 1024},
    {.name = "routing_seed",
     .kind = integer,
     .help = "ecmp: seed of the hash; default: the scenario's seed",
     .minimum = 0},
    {.name = "in_network_reduction",
     .kind = boolean,
     .default_text = "false",
     .help = "Switches add up all-reduce operands on their way (SHARP)"},
};

constexpr Parameter kCommunication[] = {
    {.name = "algorithm",
     .kind = text,
     .default_text = "auto",
     .help =
         "One algorithm for all, or by operation: \"all_reduce:tree, all_gather:ring\"; `clustersim list collectives`"},
    {.name = "channels",
     .kind = integer,
     .default_text = "0",
     .help = "Rings per collective; 0 = one per NIC of the node",
     .minimum = 0,
     .maximum = 1024},
    {.name = "window",
     .kind = bytes,
     .default_text = "0 B",
     .help = "Bytes in flight per connection, which caps a flow at window / round-trip time; 0 = unlimited",
     .minimum = 0},
    {.name = "scale_up_efficiency",
     .kind = number,
     .help = "Payload share of the scale-up line rate; default: the node's",
     .minimum = 0.01,
     .maximum = 1},
    {.name = "pcie_efficiency",
     .kind = number,
     .help = "Payload share of the PCIe line rate; default: the node's",
     .minimum = 0.01,
     .maximum = 1},
    {.name = "network_efficiency",
     .kind = number,
     .help = "Payload share of the network line rate; default: the NIC's",
     .minimum = 0.01,
     .maximum = 1},
    {.name = "scale_up_step",
     .kind = duration,
     .help = "Cost of one algorithm step inside a node",
     .minimum = 0,
     .maximum = 1},
    {.name = "network_step",
     .kind = duration,
     .help = "Cost of one algorithm step between nodes, on top of link latencies",
     .minimum = 0,
     .maximum = 1},
    {.name = "nvls_efficiency",
     .kind = number,
     .help = "In-switch reduction: share of the usable scale-up rate that it reaches",
     .minimum = 0.01,
     .maximum = 1},
    {.name = "nvls_network_efficiency",
     .kind = number,
     .help = "In-switch reduction joined to a tree between nodes: share it keeps",
     .minimum = 0.01,
     .maximum = 1},
    {.name = "concurrent_peers",
     .kind = integer,
     .help = "Direct all-to-all: messages of a rank in flight at once",
     .minimum = 1,
     .maximum = 1e6},
    {.name = "launch", .kind = duration, .help = "Fixed cost of starting a collective", .minimum = 0, .maximum = 1},
};

constexpr Parameter kJob[] = {
    {.name = "workload", .kind = text, .help = "See `clustersim list workloads`", .required = true},
    {.name = "name", .kind = text, .help = "Names the job; default: what it trains"},
    {.name = "steps",
     .kind = integer,
     .default_text = "1",
     .help = "Optimizer steps the job makes; they are alike, so one is simulated and totals are multiples of it",
     .minimum = 1,
     .maximum = 1e9},
};

constexpr Parameter kNcclTest[] = {
    {.name = "op", .kind = text, .default_text = "all_reduce", .help = "See `clustersim list collectives`"},
    {.name = "sizes",
     .kind = text,
     .default_text = "8..8G",
     .help = "\"8..8G\" doubles, \"8..8G*4\", \"1M..4M+1M\", or a list; K, M and G are binary as in nccl-tests"},
    {.name = "algorithm", .kind = text, .help = "Same as communication.algorithm"},
    {.name = "type",
     .kind = choice,
     .default_text = "float",
     .help = "Element type, for the count column",
     .choices = kTypes},
    {.name = "form",
     .kind = choice,
     .default_text = "pipelined",
     .help = "Overlapped as one fluid phase, round after round, or every transfer of every step simulated",
     .choices = kForms},
};

constexpr Parameter kStudy[] = {
    {.name = "points",
     .kind = any,
     .help = "One table per point: key paths and their values, e.g. {\"cluster.nodes\" = 4}",
     .required = true},
};

constexpr std::array<ScenarioSection, 8> kSections = {{
    {"scenario", "The top level of a scenario file", kScenario},
    {"[catalog]", "Hardware and models of your own", kCatalog},
    {"[cluster]", "Nodes; [[cluster.degraded]] lists what is not as it should be", kCluster},
    {"[cluster.network]", "The network; the chosen topology's own keys stand in the same table", kNetwork},
    {"[communication]", "Constants of the communication model, where they should differ from the catalog",
     kCommunication},
    {"[[jobs]]", "The job; the chosen workload's own keys stand in the same table", kJob},
    {"[nccl_test]", "A table of collective times instead of a job", kNcclTest},
    {"[study]", "Several points of the same scenario in one run", kStudy},
}};

}  // namespace

std::span<const Parameter> scenario_schema() { return kScenario; }
std::span<const Parameter> catalog_schema() { return kCatalog; }
std::span<const Parameter> cluster_schema() { return kCluster; }
std::span<const Parameter> network_schema() { return kNetwork; }
std::span<const Parameter> communication_schema() { return kCommunication; }
std::span<const Parameter> job_schema() { return kJob; }
std::span<const Parameter> nccl_test_schema() { return kNcclTest; }
std::span<const Parameter> study_schema() { return kStudy; }

std::span<const ScenarioSection> scenario_sections() { return kSections; }

}  // namespace clustersim
