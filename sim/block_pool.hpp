// Blocks of elements in one array: many small lists without an allocation each.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/errors.hpp"

namespace clustersim {

/// A released block is reused for the next request of its size class (powers of two).
template <class Element>
class BlockPool {
 public:
  std::uint32_t allocate(std::uint32_t count) {
    if (count == 0) return 0;
    const auto size_class = static_cast<std::size_t>(std::bit_width(count - 1));
    std::vector<std::uint32_t>& free_blocks = free_[size_class];
    if (!free_blocks.empty()) {
      const std::uint32_t block = free_blocks.back();
      free_blocks.pop_back();
      return block;
    }
    const std::size_t block = elements_.size();
    ensure(block + (std::size_t{1} << size_class) < ~std::uint32_t{0}, "too many uses of shared resources");
    elements_.resize(block + (std::size_t{1} << size_class));
    return static_cast<std::uint32_t>(block);
  }
  void release(std::uint32_t block, std::uint32_t count) {
    if (count > 0) free_[static_cast<std::size_t>(std::bit_width(count - 1))].push_back(block);
  }
  Element& operator[](std::size_t i) { return elements_[i]; }
  const Element& operator[](std::size_t i) const { return elements_[i]; }
  [[nodiscard]] Element* data() { return elements_.data(); }
  [[nodiscard]] const Element* data() const { return elements_.data(); }

 private:
  std::vector<Element> elements_;
  std::array<std::vector<std::uint32_t>, 33> free_;
};

}  // namespace clustersim
