// Ranks, communicators and resources in classes of equals: what the executor steps through instead of each of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/programs/blocks.hpp"
#include "models/programs/plans.hpp"
#include "sim/fluid.hpp"

namespace clustersim {

/// All ranks of a class know a communicator of the class in question by this slot.
struct MemberClass {
  std::uint32_t rank_class = 0;
  std::uint32_t slot = 0;
  auto operator<=>(const MemberClass&) const = default;
};

/// Why one member of each class is enough. The partition is equitable: two ranks of a class run the same program at the
/// same speed and know, slot by slot, communicators of the same class; two communicators of a class execute the same
/// plans, have the same multiset of (slot, rank class) members, and put the same load (per shape) on as many resources
/// of each class; two resources of a class have equal capacity and carry the same load from each class of
/// communicators. By induction over instants, all members of a class do the same thing at every instant:
/// - A rank's next step depends on its program, its own finished steps, and completions of its communicators. Equal
///   ranks had equal pasts, so they issue, wait and compute alike.
/// - The k-th operation of a communicator starts when its last member has issued it. Which member that is may differ
///   between two equal communicators, but the multiset of members' (class, slot) does not, and all ranks of a class
///   issue on a slot at the same moment; hence equal communicators start together. It is enough to count one arrival
///   for each distinct (class, slot). A rank class may appear under several slots of one communicator class, as in a
///   ring of neighbours where the communicator that is "right" to one rank is "left" to the next: the representative
///   rank then arrives once for each slot, at two different communicators that stand for one class.
/// - Max-min rates are unique, so they are invariant under any relabelling that keeps the problem; on an equitable
///   partition the allocation that gives all members of a communicator class one rate solves the original problem when
///   it solves the quotient: on each resource of a class the same sum over communicators of coefficient x rate, the
///   same capacity, and the same bottleneck condition. Equal amounts at equal rates complete together.
/// The unlumped run is this code on the partition into single members.
struct Classes {
  ClassList ranks;                           // of Job ranks
  ClassList communicators;                   // of Job communicators
  ClassList resources;                       // of Network resource numbers, without class_of
  std::vector<double> capacity;              // per resource class: usable bytes/s of each member
  std::vector<std::uint32_t> class_of_slot;  // [rank class x slots + slot]: communicator class or kNoClass
  std::vector<std::uint32_t> member_begin;   // per communicator class, plus the end: range in member_classes
  std::vector<MemberClass> member_classes;   // distinct
  std::vector<std::size_t> shape_begin;      // per communicator class, plus the end
  std::vector<std::size_t> use_begin{0};     // per shape, plus the end
  std::vector<Use> uses;  // per byte of each member's amount: bytes on each resource of the class, by the whole class

  [[nodiscard]] std::span<const MemberClass> members_of(std::size_t communicator_class) const {
    const std::uint32_t begin = member_begin[communicator_class];
    return std::span(member_classes).subspan(begin, member_begin[communicator_class + 1] - begin);
  }
  [[nodiscard]] std::span<const Use> uses_of(std::size_t communicator_class, std::uint32_t shape) const {
    const std::size_t at = shape_begin[communicator_class] + shape;
    return std::span(uses).subspan(use_begin[at], use_begin[at + 1] - use_begin[at]);
  }
};

Classes find_classes(const Job& job, const Cluster& cluster, const CommunicationModel& model,
                     const CommunicatorPlans& plans, bool lump);

}  // namespace clustersim
