// Unit mistakes that the type system must stop. Compiled with -DCASE=n; case 0 has to compile, the others must not.
#include "sim/ids.hpp"
#include "sim/units.hpp"

namespace {
using namespace clustersim;
using A = Id<struct ATag>;
using B = Id<struct BTag>;

[[maybe_unused]] void attempt() {
  const Bytes bytes(1);
  const Rate rate(1.0);
  [[maybe_unused]] const Picoseconds time = bytes / rate;
#if CASE == 1
  [[maybe_unused]] auto x = time + bytes;
#elif CASE == 2
  [[maybe_unused]] Bytes x = rate;
#elif CASE == 3
  [[maybe_unused]] Watts x = Joules(1.0);
#elif CASE == 4
  [[maybe_unused]] bool x = A(1U) == B(1U);
#elif CASE == 5
  [[maybe_unused]] Bytes x = 17;
#elif CASE == 6
  [[maybe_unused]] Picoseconds x = Microseconds(1) / 2.0;
#elif CASE == 7
  [[maybe_unused]] auto x = Money(1.0) + Watts(1.0);
#endif
}
}  // namespace
