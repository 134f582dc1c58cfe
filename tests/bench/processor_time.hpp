// Processor time of the process, so that other work on the machine does not count.
#pragma once

#include <ctime>

namespace clustersim::bench {

inline double processor_seconds() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_nsec) * 1e-9;
}

}  // namespace clustersim::bench
