// Groups members by node and finds the NICs that a node's members can use.
#include "models/collectives/layout.hpp"

#include <algorithm>

namespace clustersim {

GroupLayout::GroupLayout(const Group& group, const CommunicationModel& model) {
  const auto count = static_cast<std::uint32_t>(group.members.size());
  members_.resize(count);
  for (std::uint32_t member = 0; member < count; ++member) members_[member] = member;
  const auto node_of = [&](std::uint32_t member) { return group.cluster.node_of(group.members[member]); };

  // Usual communicators come node by node; others are sorted by the first appearance of their node.
  std::vector<std::pair<std::uint32_t, std::uint32_t>> first_of_node;  // node, first member
  for (std::uint32_t member = 0; member < count; ++member) {
    if (member == 0 || node_of(member) != node_of(member - 1)) first_of_node.emplace_back(node_of(member), member);
  }
  std::sort(first_of_node.begin(), first_of_node.end());
  const bool scattered =
      std::adjacent_find(first_of_node.begin(), first_of_node.end(),
                         [](const auto& a, const auto& b) { return a.first == b.first; }) != first_of_node.end();
  if (scattered) {
    const auto first_member = [&](std::uint32_t member) {
      return std::lower_bound(first_of_node.begin(), first_of_node.end(), std::pair{node_of(member), 0U})->second;
    };
    std::sort(members_.begin(), members_.end(), [&](std::uint32_t a, std::uint32_t b) {
      return std::pair{first_member(a), a} < std::pair{first_member(b), b};
    });
  }
  for (std::uint32_t position = 0; position < count; ++position) {
    if (position + 1 == count || node_of(members_[position]) != node_of(members_[position + 1])) {
      const std::uint32_t first = member_begin_.back();
      member_begin_.push_back(position + 1);
      find_slots(group, first);
    }
  }
  for (std::uint32_t node = 0; node < nodes(); ++node) {
    rails_ = std::max(rails_, static_cast<std::uint32_t>(slots(node).size()));
  }
  channels_ = nodes() == 1 ? 1 : rails_;
  if (model.channels > 0) channels_ = model.channels;
}

// A NIC serves the GPUs that have it as nearest; a NIC that is nobody's nearest (more NICs than GPUs) serves those of
// the next lower NIC that is.
void GroupLayout::find_slots(const Group& group, std::uint32_t first_member) {
  const std::span<const std::uint32_t> members = std::span(members_).subspan(first_member);
  const std::size_t here = member_begin_.back() - first_member;
  const std::uint32_t node = group.cluster.node_of(group.members[members[0]]);
  const NodeTemplate& shape = group.cluster.node(node);
  const auto local = [&](std::size_t i) { return group.cluster.local_index(group.members[members[i]]); };
  wired_.push_back(here > 2 && shape.gpu_to_gpu(local(0), local(1)).size() == 1 &&
                   shape.gpu_to_gpu(local(0), local(here / 2)).size() == 1);
  const std::uint32_t nics = shape.shape().nics;
  if (nics == 0) {  // the GPUs themselves are the fabric's endpoints
    for (std::size_t i = 0; i < here; ++i) slots_.push_back({Cluster::kNearest, members[i], members[i]});
    slot_begin_.push_back(static_cast<std::uint32_t>(slots_.size()));
    return;
  }
  std::uint32_t serving = 0;
  for (std::uint32_t nic = 0; nic < nics; ++nic) {
    for (std::uint32_t gpu = 0; gpu < shape.shape().gpus; ++gpu) {
      if (shape.nearest_nic(gpu) == nic) serving = nic;
    }
    NicSlot slot{nic, Transfer::kSwitch, 0};
    for (std::size_t i = 0; i < here; ++i) {
      if (shape.nearest_nic(local(i)) != serving) continue;
      if (slot.enter == Transfer::kSwitch) slot.enter = members[i];
      slot.leave = members[i];
    }
    if (slot.enter != Transfer::kSwitch) slots_.push_back(slot);
  }
  slot_begin_.push_back(static_cast<std::uint32_t>(slots_.size()));
}

bool GroupLayout::uniform() const {
  for (std::uint32_t node = 1; node < nodes(); ++node) {
    if (members(node).size() != members(0).size()) return false;
  }
  return true;
}

void GroupLayout::chain_from(std::uint32_t node, std::uint32_t first, std::vector<std::uint32_t>& out) const {
  const auto all = members(node);
  const auto start = static_cast<std::size_t>(std::find(all.begin(), all.end(), first) - all.begin());
  const std::size_t count = all.size();
  for (std::size_t i = 0; i < count; ++i) {
    // 0, 1, -1, 2, -2, ... or 0, 1, 2, ...
    const std::size_t zigzag = i % 2 == 1 ? (i + 1) / 2 : count - i / 2;
    out.push_back(all[(start + (wired_[node] ? zigzag : i)) % count]);
  }
}

}  // namespace clustersim
