// clustersim topology: what a network is made of, and the graph for other tools.
#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <sstream>
#include <string>

#include "scenarios/build.hpp"
#include "scenarios/cli/command.hpp"
#include "scenarios/output_file.hpp"
#include "sim/errors.hpp"
#include "topologies/cluster.hpp"

namespace clustersim::cli {
namespace {

struct Arguments {
  ScenarioArguments scenario;
  ClusterArguments cluster;
  std::string graphml;
  std::string dot;
  bool json = false;
};

struct Report {
  std::string topology = "none";
  std::int64_t nodes = 0;
  std::int64_t gpus = 0;
  std::int64_t hosts = 0;  // endpoints of the fabric
  FabricFigures figures;
  MeasuredFigures measured;
};

Scenario scenario_of(CommandLine& line, const Arguments& arguments) {
  if (arguments.cluster.given() == !arguments.scenario.scenario.empty()) {
    bad_input("expected either a scenario or --node, --nodes and --topology");
  }
  if (!arguments.cluster.given()) return load(line, arguments.scenario, false);
  if (arguments.cluster.topology.empty() && arguments.cluster.nodes > 1) {
    bad_input("--topology is missing (`clustersim list topologies` shows the choices)");
  }
  return load_scenario_value(cluster_tree("topology", arguments.cluster, ""), {arguments.scenario.set, false});
}

Report make_report(const Scenario& scenario, const Cluster& cluster) {
  Report report;
  report.nodes = cluster.nodes();
  report.gpus = cluster.gpus();
  report.hosts = static_cast<std::int64_t>(cluster.endpoints().size());
  if (cluster.fabric() == nullptr) return report;
  report.topology = scenario.cluster.fabric->name;
  report.figures = cluster.fabric()->figures();
  if (report.hosts > 1) report.measured = measure_hops(cluster);
  return report;
}

std::string count_or_unknown(double value) {
  return value < 0 ? "not known in closed form" : fmt::format("{:.6g}", value);
}

std::string readable(const Report& report) {
  std::string text = fmt::format("{:<16}{} nodes, {} GPUs, {} endpoints of the network\n{:<16}{}\n", "cluster",
                                 report.nodes, report.gpus, report.hosts, "topology", report.topology);
  if (report.topology == "none") return text;
  std::int64_t switches = 0;
  if (!report.figures.tiers.empty()) {
    text += fmt::format("\n{:<12}{:>10}{:>12}{:>10}{:>14}{:>18}\n", "tier", "switches", "ports down", "ports up",
                        "cables down", "oversubscription");
  }
  for (const SwitchTier& tier : report.figures.tiers) {
    switches += tier.switches;
    text += fmt::format("{:<12}{:>10}{:>12}{:>10}{:>14}{:>18.4g}\n", tier.name, tier.switches, tier.ports_down,
                        tier.ports_up, tier.cables_down, tier.oversubscription);
  }
  const FabricFigures& figures = report.figures;
  text += fmt::format("\n{:<16}{}\n{:<16}{}\n", "switches", switches, "cables", figures.cables);
  text += fmt::format("{:<16}{}{}\n", "bisection",
                      figures.bisection.value() < 0 ? "not known in closed form"
                                                    : format_bits(figures.bisection) + " in each direction",
                      figures.bisection_links < 0 ? "" : fmt::format(", {} links", figures.bisection_links));
  const auto both = [&](std::string_view label, double closed, double measured) {
    text += fmt::format("{:<16}{} (measured: {:.6g}{})\n", label, count_or_unknown(closed), measured,
                        report.measured.sampled ? fmt::format(" from {} endpoints", report.measured.sources) : "");
  };
  if (report.hosts > 1) {
    both("diameter", figures.diameter_hops, static_cast<double>(report.measured.diameter_hops));
    both("mean hops", figures.mean_hops, report.measured.mean_hops);
  }
  return text;
}

std::string as_json(const Report& report) {
  using Json = nlohmann::ordered_json;
  const auto known = [](double value) { return value < 0 ? Json(nullptr) : Json(value); };
  Json json = {
      {"topology", report.topology}, {"nodes", report.nodes}, {"gpus", report.gpus}, {"endpoints", report.hosts}};
  json["tiers"] = Json::array();
  for (const SwitchTier& tier : report.figures.tiers) {
    json["tiers"].push_back({{"name", tier.name},
                             {"switches", tier.switches},
                             {"ports_down", tier.ports_down},
                             {"ports_up", tier.ports_up},
                             {"cables_down", tier.cables_down},
                             {"oversubscription", tier.oversubscription}});
  }
  json["cables"] = report.figures.cables;
  json["bisection_bytes_per_s"] = known(report.figures.bisection.value());
  json["bisection_links"] = report.figures.bisection_links < 0 ? Json(nullptr) : Json(report.figures.bisection_links);
  json["diameter_hops"] = known(report.figures.diameter_hops);
  json["mean_hops"] = known(report.figures.mean_hops);
  json["measured"] = {{"diameter_hops", report.measured.diameter_hops},
                      {"mean_hops", report.measured.mean_hops},
                      {"sampled", report.measured.sampled},
                      {"sources", report.measured.sources}};
  return json.dump(2) + "\n";
}

void topology(CommandLine& line, const Arguments& arguments) {
  const Scenario scenario = scenario_of(line, arguments);
  line.scenario_hash = scenario.hash;
  if (!scenario.points.empty()) bad_input("the scenario \"{}\" is a study; expected a single cluster", scenario.name);
  std::optional<OutputFile> graphml;
  std::optional<OutputFile> dot;
  if (!arguments.graphml.empty()) graphml.emplace(arguments.graphml, "--graphml");
  if (!arguments.dot.empty()) dot.emplace(arguments.dot, "--dot");
  const BuiltCluster built = build_cluster(scenario);
  const Report report = make_report(scenario, *built.cluster);
  const auto save = [&](const OutputFile& file, void (*write)(const Network&, std::ostream&)) {
    std::ostringstream text;
    write(built.cluster->network(), text);
    file.write(text.str());
  };
  if (graphml) save(*graphml, write_graphml);
  if (dot) save(*dot, write_dot);
  print(arguments.json ? as_json(report) : readable(report));
}

}  // namespace

void add_topology(CommandLine& line) {
  auto arguments = std::make_shared<Arguments>();
  CLI::App* command =
      line.app.add_subcommand("topology", "Count a network's switches, cables and hops, and export its graph");
  add_scenario_arguments(*command, arguments->scenario, false);
  add_cluster_arguments(*command, arguments->cluster);
  command->add_option("--graphml", arguments->graphml, "Write the graph as GraphML")->type_name("FILE");
  command->add_option("--dot", arguments->dot, "Write the graph for Graphviz")->type_name("FILE");
  command->add_flag("--json", arguments->json, "Print one JSON object");
  command->callback([&line, arguments] { line.action = [&line, arguments] { topology(line, *arguments); }; });
}

}  // namespace clustersim::cli
