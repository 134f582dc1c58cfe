// Hop counts measured on the graph itself by breadth-first search, to check closed forms and irregular fabrics.
#include <algorithm>
#include <boost/graph/breadth_first_search.hpp>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <numeric>

#include "sim/errors.hpp"
#include "sim/random.hpp"
#include "topologies/cluster.hpp"

namespace clustersim {
namespace {

using CompactGraph = boost::compressed_sparse_row_graph<boost::directedS>;

/// The fabric alone: endpoints and switches, without what is inside the nodes. NVLink or PCIe would otherwise offer
/// short cuts that the fabric's own routing never takes.
struct FabricGraph {
  CompactGraph graph;
  std::vector<std::size_t> endpoint_vertex;
};

FabricGraph fabric_graph(const Cluster& cluster) {
  const Network& network = cluster.network();
  std::size_t first_fabric_link = 0;
  for (std::uint32_t node = 0; node < cluster.nodes(); ++node) first_fabric_link += cluster.node(node).links();
  constexpr std::size_t kAbsent = ~std::size_t{0};
  std::vector<std::size_t> vertex(network.devices().size(), kAbsent);
  std::size_t vertices = 0;
  const auto number = [&](DeviceId device) {
    if (vertex[device.index()] == kAbsent) vertex[device.index()] = vertices++;
    return vertex[device.index()];
  };
  FabricGraph result;
  for (const Endpoint& endpoint : cluster.endpoints()) result.endpoint_vertex.push_back(number(endpoint.device));
  std::vector<std::pair<std::size_t, std::size_t>> edges;
  for (const Link& link : network.links().subspan(first_fabric_link)) {
    const std::size_t from = number(link.from);
    edges.emplace_back(from, number(link.to));
  }
  result.graph = CompactGraph(boost::edges_are_unsorted_multi_pass, edges.begin(), edges.end(), vertices);
  return result;
}

std::vector<std::size_t> choose_sources(std::size_t endpoints, std::int64_t max_sources) {
  std::vector<std::size_t> sources(endpoints);
  std::iota(sources.begin(), sources.end(), std::size_t{0});
  if (static_cast<std::int64_t>(endpoints) <= max_sources) return sources;
  RandomStream random(0, "measure-hops");
  std::shuffle(sources.begin(), sources.end(), random);
  sources.resize(static_cast<std::size_t>(max_sources));
  std::sort(sources.begin(), sources.end());
  return sources;
}

}  // namespace

MeasuredFigures measure_hops(const Cluster& cluster, std::int64_t max_sources) {
  ensure(max_sources >= 1, "measure_hops needs at least one source, not {}", max_sources);
  MeasuredFigures result;
  if (cluster.fabric() == nullptr) return result;
  const FabricGraph fabric = fabric_graph(cluster);
  const std::vector<std::size_t> sources = choose_sources(cluster.endpoints().size(), max_sources);
  constexpr std::int32_t kUnreached = -1;
  std::vector<std::int32_t> distance(boost::num_vertices(fabric.graph));
  std::vector<boost::default_color_type> colour(distance.size());
  std::int64_t total = 0;
  std::int64_t pairs = 0;
  for (const std::size_t source : sources) {
    std::fill(distance.begin(), distance.end(), kUnreached);
    const std::size_t start = fabric.endpoint_vertex[source];
    distance[start] = 0;
    boost::breadth_first_search(
        fabric.graph, start,
        boost::visitor(boost::make_bfs_visitor(boost::record_distances(distance.data(), boost::on_tree_edge())))
            .color_map(colour.data()));
    for (std::size_t other = 0; other < fabric.endpoint_vertex.size(); ++other) {
      const std::int32_t hops = distance[fabric.endpoint_vertex[other]];
      // Endpoints of another rail-only plane cannot be reached and do not count.
      if (other == source || hops == kUnreached) continue;
      total += hops;
      ++pairs;
      result.diameter_hops = std::max<std::int64_t>(result.diameter_hops, hops);
    }
  }
  result.mean_hops = pairs == 0 ? 0.0 : static_cast<double>(total) / static_cast<double>(pairs);
  result.sampled = sources.size() < cluster.endpoints().size();
  result.sources = static_cast<std::int64_t>(sources.size());
  return result;
}

}  // namespace clustersim
