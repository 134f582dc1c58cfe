// Places, nearest names and the three families of failure.
#include "sim/errors.hpp"

#include <vector>

#include "tests/catch.hpp"

using namespace clustersim;

TEST_CASE("a place is written the way editors understand") {
  CHECK(SourceLocation{"scenario.toml", 12}.text() == "scenario.toml:12");
  CHECK(SourceLocation{"--set", 0}.text() == "--set");
  CHECK(SourceLocation{}.text().empty());
}

TEST_CASE("a slip finds the name that was meant") {
  const std::vector<std::string> names = {"nodes", "node", "network", "groups", "h100-sxm", "h100-sxm-144", "dgx_h100"};
  CHECK(nearest_name("nodez", names) == "nodes");
  CHECK(nearest_name("netwrok", names) == "network");  // a swap of neighbours is one slip
  CHECK(nearest_name("gruops", names) == "groups");
  CHECK(nearest_name("Nodes", names) == "nodes");
  CHECK(nearest_name("dgx-h100", names) == "dgx_h100");
  CHECK(nearest_name("h100", names) == "h100-sxm");  // prefix, shortest
  CHECK(nearest_name("xyzzy", names).empty());
  CHECK(nearest_name("", names).empty());
  CHECK(nearest_name("q", names).empty());
  CHECK(nearest_name(std::string(1000, 'n'), names).empty());
  CHECK(did_you_mean("nodez", names) == " (did you mean \"nodes\"?)");
  CHECK(did_you_mean("xyzzy", names).empty());
  CHECK(did_you_mean("nodes", {}).empty());
}

TEST_CASE("each family is its own type") {
  CHECK_THROWS_AS(bad_input("{} is wrong", 1), BadInput);
  CHECK_THROWS_AS(infeasible("{} does not fit", 2), Infeasible);
  CHECK_THROWS_AS(ensure(false, "{} broke", 3), BrokenContract);
  CHECK_NOTHROW(ensure(true, "never"));
}
