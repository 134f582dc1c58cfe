// Direct messages between all pairs: all-to-all one partner at a time ("pairwise") or several ("direct"), and the
// reductions and gathers of GPUs that are all wired to each other.
#include <algorithm>

#include "models/collectives/layout.hpp"

namespace clustersim {
namespace {

bool supports_pairwise(Collective collective, const Group& group) {
  return collective == Collective::all_to_all && group.size() >= 2;
}

// All members in one node, a link of its own between any two.
bool fully_wired(const Group& group) {
  const std::uint32_t node = group.cluster.node_of(group.members[0]);
  const NodeTemplate& shape = group.cluster.node(node);
  for (const GpuId a : group.members) {
    if (group.cluster.node_of(a) != node) return false;
    for (const GpuId b : group.members) {
      if (a != b && shape.gpu_to_gpu(group.cluster.local_index(a), group.cluster.local_index(b)).size() != 1)
        return false;
    }
  }
  return true;
}

// Where a switch is in between, a ring moves as much as direct messages do, and it is what libraries use.
bool supports_direct(Collective collective, const Group& group) {
  if (collective == Collective::all_to_all) return group.size() >= 2;
  const bool gathers = collective == Collective::all_reduce || collective == Collective::all_gather ||
                       collective == Collective::reduce_scatter;
  return gathers && group.size() >= 3 && fully_wired(group);
}

// A message between nodes goes through the GPU of the sender's node that is on the receiver's rail (NCCL's PXN): NVLink
// takes it there, and the network need not cross rails. Needs an NVSwitch and a member on that rail.
class Relays {
 public:
  explicit Relays(const Group& group) : group_(group) {}
  [[nodiscard]] GpuId between(GpuId from, GpuId to) const {
    const Cluster& cluster = group_.cluster;
    const std::uint32_t node = cluster.node_of(from);
    const std::uint32_t other = cluster.node_of(to);
    if (node == other) return {};
    const NodeTemplate& here = cluster.node(node);
    const NodeTemplate& there = cluster.node(other);
    if (here.shape().nics == 0 || there.shape().nics == 0) return {};
    if (here.gpu_to_switch(cluster.local_index(from)).empty()) return {};
    const std::uint32_t rail = there.nearest_nic(cluster.local_index(to));
    if (here.nearest_nic(cluster.local_index(from)) == rail) return {};
    for (std::uint32_t gpu = 0; gpu < here.shape().gpus; ++gpu) {
      // The GPU at the receiver's place if it has the rail's NIC, so that GPUs sharing a NIC share the relaying.
      const std::uint32_t local = (cluster.local_index(to) + gpu) % here.shape().gpus;
      if (here.nearest_nic(local) == rail) return cluster.gpu(node, local);
    }
    return {};
  }

 private:
  const Group& group_;
};

void add_shift(const Group& group, const Relays& relays, std::uint32_t shift, Round& round) {
  const auto members = static_cast<std::uint32_t>(group.size());
  for (std::uint32_t from = 0; from < members; ++from) {
    const std::uint32_t to = (from + shift) % members;
    Transfer transfer{from, to, 1.0 / members};
    transfer.relay = relays.between(group.members[from], group.members[to]);
    round.transfers.push_back(transfer);
  }
}

Schedule rounds_of(const Group& group, std::uint32_t at_once) {
  const auto members = static_cast<std::uint32_t>(group.size());
  const Relays relays(group);
  Schedule result;
  result.rounds_depend = false;
  for (std::uint32_t shift = 1; shift < members; shift += at_once) {
    Round& round = result.rounds.emplace_back();
    const std::uint32_t end = std::min(members, shift + at_once);
    round.transfers.reserve(static_cast<std::size_t>(end - shift) * members);
    for (std::uint32_t next = shift; next < end; ++next) add_shift(group, relays, next, round);
  }
  return result;
}

Schedule pairwise(Collective, const Group& group, const CommunicationModel&) { return rounds_of(group, 1); }

Schedule direct(Collective collective, const Group& group, const CommunicationModel& model) {
  if (collective != Collective::all_to_all) {
    // Reduce-scatter: everyone sends every other member its part; all-gather: everyone sends its part to all.
    Schedule result;
    const auto members = static_cast<std::uint32_t>(group.size());
    for (int pass = 0; pass < (collective == Collective::all_reduce ? 2 : 1); ++pass) {
      result.rounds.push_back(std::move(rounds_of(group, members).rounds.front()));
    }
    return result;
  }
  return rounds_of(group, std::max(1U, model.concurrent_peers));
}

}  // namespace

extern const CollectiveAlgorithm kPairwise;
const CollectiveAlgorithm kPairwise{"pairwise", "all-to-all with one partner at a time", supports_pairwise, pairwise};

extern const CollectiveAlgorithm kDirect;
const CollectiveAlgorithm kDirect{"direct", "all-to-all with several partners at a time; all pairs of fully wired GPUs",
                                  supports_direct, direct};

}  // namespace clustersim
