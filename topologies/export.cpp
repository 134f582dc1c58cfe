// The network as GraphML or DOT, for other tools: Boost.Graph does the writing.
#include <boost/graph/graphml.hpp>
#include <boost/graph/graphviz.hpp>
#include <boost/property_map/function_property_map.hpp>
#include <ostream>

#include "topologies/cluster.hpp"
#include "topologies/graph.hpp"

namespace clustersim {

NetworkGraph make_graph(const Network& network) {
  NetworkGraph graph(network.devices().size());
  for (std::size_t i = 0; i < network.devices().size(); ++i) graph[i] = DeviceId(i);
  for (std::size_t i = 0; i < network.links().size(); ++i) {
    const Link& link = network.links()[i];
    boost::add_edge(link.from.index(), link.to.index(), LinkId(i), graph);
  }
  return graph;
}

namespace {

using Vertex = boost::graph_traits<NetworkGraph>::vertex_descriptor;
using Edge = boost::graph_traits<NetworkGraph>::edge_descriptor;

/// The attributes both formats carry. `network` and `graph` must outlive the result.
boost::dynamic_properties attributes(const Network& network, const NetworkGraph& graph) {
  const auto link_of = [&network, &graph](const Edge& edge) -> const Link& { return network.link(graph[edge]); };
  boost::dynamic_properties properties;
  properties.property("name", boost::make_function_property_map<Vertex>(
                                  [&network, &graph](Vertex vertex) { return network.device_name(graph[vertex]); }));
  properties.property("kind", boost::make_function_property_map<Vertex>([&network, &graph](Vertex vertex) {
                        return std::string(name(network.device(graph[vertex]).kind));
                      }));
  properties.property("kind", boost::make_function_property_map<Edge>(
                                  [link_of](const Edge& edge) { return std::string(name(link_of(edge).kind)); }));
  properties.property("capacity", boost::make_function_property_map<Edge>(
                                      [link_of](const Edge& edge) { return link_of(edge).capacity.value(); }));
  properties.property("latency", boost::make_function_property_map<Edge>([link_of](const Edge& edge) {
                        return static_cast<long>(link_of(edge).latency.count());
                      }));
  return properties;
}

}  // namespace

void write_graphml(const Network& network, std::ostream& out) {
  const NetworkGraph graph = make_graph(network);
  boost::write_graphml(out, graph, attributes(network, graph), true);
}

void write_dot(const Network& network, std::ostream& out) {
  const NetworkGraph graph = make_graph(network);
  boost::write_graphviz_dp(out, graph, attributes(network, graph), std::string("name"));
}

}  // namespace clustersim
