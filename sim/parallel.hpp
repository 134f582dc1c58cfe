// Independent pieces of work on several threads, with the outcome of doing them one after another.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <thread>
#include <vector>

namespace clustersim {

/// Calls work(i) for i = 0 .. count - 1, on up to `threads` threads (0: as many as the machine has cores). Pieces must
/// not share what they write. When some throw, the exception of the lowest i is thrown after all have ended or been
/// skipped; pieces after the first failure seen may be skipped.
template <class Work>
void in_parallel(std::size_t count, unsigned threads, const Work& work) {
  if (threads == 0) threads = std::max(1U, std::thread::hardware_concurrency());
  if (threads == 1 || count <= 1) {
    for (std::size_t i = 0; i < count; ++i) work(i);
    return;
  }
  std::atomic<std::size_t> next{0};
  std::atomic<bool> failed{false};
  std::vector<std::exception_ptr> failures(count);
  const auto take = [&] {
    // Pieces are handed out in order, so every piece before a failed one has been started and will report.
    while (!failed.load()) {
      const std::size_t i = next.fetch_add(1);
      if (i >= count) return;
      try {
        work(i);
      } catch (...) {
        failures[i] = std::current_exception();
        failed.store(true);
      }
    }
  };
  {
    std::vector<std::jthread> others;
    for (unsigned t = 1; t < threads && t < count; ++t) others.emplace_back(take);
    take();
  }
  for (const std::exception_ptr& failure : failures) {
    if (failure) std::rethrow_exception(failure);
  }
}

}  // namespace clustersim
