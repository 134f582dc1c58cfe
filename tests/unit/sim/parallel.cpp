// Every piece once, results and failures as if done one after another.
#include "sim/parallel.hpp"

#include <stdexcept>
#include <string>
#include <vector>

#include "tests/catch.hpp"

using namespace clustersim;

TEST_CASE("every piece is done exactly once, whatever the number of threads") {
  for (const unsigned threads : {0U, 1U, 2U, 3U, 16U}) {
    for (const std::size_t count : {0U, 1U, 2U, 7U, 1000U}) {
      std::vector<int> done(count, 0);
      in_parallel(count, threads, [&](std::size_t i) { ++done[i]; });
      CHECK(done == std::vector<int>(count, 1));
    }
  }
}

TEST_CASE("the failure that is thrown is the first in order, not in time") {
  for (const unsigned threads : {1U, 2U, 8U}) {
    for (int repeat = 0; repeat < 50; ++repeat) {
      try {
        in_parallel(20, threads, [](std::size_t i) {
          if (i >= 3 && i % 2 == 1) throw std::runtime_error(std::to_string(i));
        });
        FAIL("nothing was thrown");
      } catch (const std::runtime_error& failure) {
        CHECK(std::string(failure.what()) == "3");
      }
    }
  }
}
