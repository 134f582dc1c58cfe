// GraphML and DOT: every device and link with its attributes.
#include <sstream>

#include "tests/unit/topologies/fixtures.hpp"

namespace clustersim::testing {
namespace {

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + part.size())) ++count;
  return count;
}

TEST_CASE("GraphML names all devices and links with kind, capacity and latency") {
  const Cluster cluster = build({.nodes = 3, .shape = small_node(2, 1)});
  std::ostringstream out;
  write_graphml(cluster.network(), out);
  const std::string text = out.str();
  CHECK(text.starts_with("<?xml"));
  CHECK(occurrences(text, "<node id=") == cluster.network().devices().size());
  CHECK(occurrences(text, "<edge id=") == cluster.network().links().size());
  for (const char* key :
       {"attr.name=\"name\"", "attr.name=\"kind\"", "attr.name=\"capacity\"", "attr.name=\"latency\""}) {
    CHECK(contains(text, key));
  }
  for (std::size_t i = 0; i < cluster.network().devices().size(); ++i) {
    CHECK(occurrences(text, ">" + cluster.network().device_name(DeviceId(i)) + "</data>") == 1);
  }
  // 400 Gb/s = 5e10 bytes/s on three cables of two directions; 600 ns = 600000 ps.
  CHECK(occurrences(text, ">5e+10</data>") == 6);
  CHECK(occurrences(text, ">600000</data>") == 6);
  CHECK(occurrences(text, ">infiniband</data>") == 6);
}

TEST_CASE("DOT has an edge per link between named devices") {
  const Cluster cluster = build({.nodes = 3, .shape = small_node(2, 1)});
  std::ostringstream out;
  write_dot(cluster.network(), out);
  const std::string text = out.str();
  CHECK(text.starts_with("digraph"));
  CHECK(occurrences(text, "->") == cluster.network().links().size());
  CHECK(contains(text, "\"node0/nic0\"->leaf0"));
  CHECK(occurrences(text, "kind=\"network-switch\"") == 1);
  CHECK(occurrences(text, "capacity=\"5e+10\"") == 6);
}

}  // namespace
}  // namespace clustersim::testing
