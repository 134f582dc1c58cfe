// The network as a Boost.Graph graph, for that library's algorithms and writers.
#pragma once

#include <boost/graph/adjacency_list.hpp>

#include "topologies/network.hpp"

namespace clustersim {

using NetworkGraph = boost::adjacency_list<boost::vecS, boost::vecS, boost::directedS, DeviceId, LinkId>;

/// Vertex i is device i; every link is an edge.
NetworkGraph make_graph(const Network& network);

}  // namespace clustersim
