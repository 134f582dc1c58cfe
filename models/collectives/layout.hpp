// The members of a communicator node by node, and the NICs through which its channels enter and leave each node.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "models/collectives/collective.hpp"

namespace clustersim {

/// A NIC that members of a node can use, and who they are: a channel comes in to `enter` and goes out from `leave`.
struct NicSlot {
  std::uint32_t nic = Cluster::kNearest;
  std::uint32_t enter = 0;  // member numbers
  std::uint32_t leave = 0;
};

/// Nodes appear in the order of their first member, members of a node in communicator order.
class GroupLayout {
 public:
  GroupLayout(const Group& group, const CommunicationModel& model);

  [[nodiscard]] std::uint32_t nodes() const { return static_cast<std::uint32_t>(member_begin_.size() - 1); }
  [[nodiscard]] std::span<const std::uint32_t> members(std::uint32_t node) const {
    return std::span(members_).subspan(member_begin_[node], member_begin_[node + 1] - member_begin_[node]);
  }
  [[nodiscard]] std::span<const NicSlot> slots(std::uint32_t node) const {
    return std::span(slots_).subspan(slot_begin_[node], slot_begin_[node + 1] - slot_begin_[node]);
  }
  /// The slot of a rail; nodes with fewer NICs than others use theirs in turn.
  [[nodiscard]] const NicSlot& slot(std::uint32_t node, std::uint32_t rail) const {
    const auto all = slots(node);
    return all[rail % all.size()];
  }
  [[nodiscard]] std::uint32_t rails() const { return rails_; }        // largest number of slots of a node
  [[nodiscard]] std::uint32_t channels() const { return channels_; }  // rings or trees side by side
  /// Every node has the same number of members.
  [[nodiscard]] bool uniform() const;
  /// Members of a node in the order a chain visits them: from `first` on, cyclically; where every two GPUs have a link
  /// of their own, first, +1, -1, +2, -2, ..., so that chains from all members use every link once in each direction
  /// (Walecki's decomposition of a complete graph into paths).
  void chain_from(std::uint32_t node, std::uint32_t first, std::vector<std::uint32_t>& out) const;

 private:
  void find_slots(const Group& group, std::uint32_t first_member);
  std::vector<std::uint32_t> members_;
  std::vector<std::uint32_t> member_begin_{0};
  std::vector<NicSlot> slots_;
  std::vector<std::uint32_t> slot_begin_{0};
  std::vector<bool> wired_;  // per node: its members are joined pair by pair
  std::uint32_t rails_ = 1;
  std::uint32_t channels_ = 1;
};

}  // namespace clustersim
