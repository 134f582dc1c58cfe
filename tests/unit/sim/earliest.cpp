// The earliest of many times against a plain search.
#include "sim/earliest.hpp"

#include <algorithm>
#include <vector>

#include "sim/random.hpp"
#include "tests/catch.hpp"

using namespace clustersim;

TEST_CASE("nothing is never") {
  Earliest earliest;
  CHECK(earliest.first() == Earliest::kNever);
  earliest.grow();
  CHECK(earliest.first() == Earliest::kNever);
  earliest.set(0, 7);
  CHECK(earliest.first() == 7);
}

TEST_CASE("the first and all up to a time, while entries come and change") {
  for (const std::size_t most : {1U, 15U, 16U, 17U, 255U, 257U, 5000U}) {
    INFO("up to " << most << " entries");
    Earliest earliest;
    std::vector<std::int64_t> times;
    RandomStream random(most, "earliest");
    for (int turn = 0; turn < 400; ++turn) {
      for (std::uint64_t added = random.below(1 + most / 50); added > 0 && times.size() < most; --added) {
        earliest.grow();
        times.push_back(Earliest::kNever);
      }
      if (times.empty()) continue;
      for (std::uint64_t changes = random.below(20); changes > 0; --changes) {
        const auto entry = static_cast<std::size_t>(random.below(times.size()));
        times[entry] =
            random.below(10) == 0 ? Earliest::kNever : static_cast<std::int64_t>(random.below(1'000'000'000'000));
        earliest.set(entry, times[entry]);
      }
      REQUIRE(earliest.first() == *std::min_element(times.begin(), times.end()));
      const auto until = static_cast<std::int64_t>(random.below(1'000'000'000'000));
      std::vector<std::size_t> expected;
      for (std::size_t i = 0; i < times.size(); ++i) {
        if (times[i] <= until) expected.push_back(i);
      }
      std::vector<std::size_t> found;
      earliest.for_each_until(until, [&](std::size_t entry) { found.push_back(entry); });
      REQUIRE(found == expected);
    }
  }
}
