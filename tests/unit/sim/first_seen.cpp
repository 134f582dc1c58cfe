// Numbering by first appearance.
#include "sim/first_seen.hpp"

#include <vector>

#include "tests/catch.hpp"

using namespace clustersim;

TEST_CASE("things are numbered by first appearance, until they are forgotten") {
  FirstSeen numbers(10);
  CHECK(numbers.number(7) == 0);
  CHECK(numbers.number(0) == 1);
  CHECK(numbers.number(7) == 0);
  CHECK(numbers.seen() == std::vector<std::uint32_t>{7, 0});
  numbers.clear();
  CHECK(numbers.number(0) == 0);
  CHECK(numbers.number(7) == 1);
}
