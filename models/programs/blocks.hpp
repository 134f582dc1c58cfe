// Members that are known to behave alike before classes are looked for, so that the search starts from few things.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "models/programs/plans.hpp"

namespace clustersim {

inline constexpr std::uint32_t kNoClass = ~0U;

/// Members of one kind in classes, numbered by their smallest member, which represents them.
struct ClassList {
  std::vector<std::uint32_t> class_of;  // per rank or communicator; kNoClass for a communicator that does nothing
  std::vector<std::uint32_t> representative;
  std::vector<std::uint32_t> count;
  std::size_t members = 0;  // those in some class
  [[nodiscard]] std::size_t size() const { return representative.size(); }
};

/// An equitable partition (see Classes) that may be finer than need be.
struct Blocks {
  ClassList ranks;                         // of Job ranks
  ClassList communicators;                 // of Job communicators
  ClassList resources;                     // of Network resource numbers that are used; without class_of:
  bool by_resource = false;                // resource_block is indexed by resource number,
  std::vector<std::uint32_t> first_block;  // or by first_block[place] + offset
  std::vector<std::uint32_t> resource_block;

  [[nodiscard]] std::uint32_t of_resource(const CommunicatorPlans& plans, std::uint32_t place,
                                          std::uint32_t offset) const {
    return resource_block[by_resource ? plans.places[place].resource(offset) : first_block[place] + offset];
  }
};

/// Every member on its own.
Blocks single_members(const Job& job, const Cluster& cluster, const CommunicatorPlans& plans);

/// Blocks by a refinement that takes places for wholes: a node with its ranks, links and cables is one vertex, and so
/// are the two bundles of a group of the fabric. Far fewer vertices and edges than members have among each other.
/// For jobs whose plans are `relative`.
Blocks blocks_by_place(const Job& job, const Cluster& cluster, const CommunicatorPlans& plans);

// Colours and labels, the same in both refinements.
enum ColourKind : std::uint64_t { rank_kind = 1, communicator_kind, resource_kind, place_kind };
std::uint64_t rank_colour(const Job& job, std::uint32_t rank);
std::uint64_t communicator_colour(const CommunicatorPlans& plans, std::size_t pattern);
/// Rounded to 40 significant bits: the same sum in another order must not make two resources look different.
std::uint64_t coefficient_label(double coefficient);

}  // namespace clustersim
