// Refinement over places and communicators.
//
// A communicator is joined to each place where it does something. The label of that edge says all it does there: which
// ranks of the node are in it by which slot, and which coefficient each of its shapes puts on the resource at which
// offset. In an equitable partition of this graph, the ranks at one seat of equal nodes, and the resources at one
// offset of equal places, meet equal communicators in equal ways, and equal communicators meet as many of them: seats,
// offsets and communicators are an equitable partition of the members themselves. It tells the seats of a node apart,
// even where they could change places; that is left to the refinement which starts from these blocks. Nothing is lost:
// every equitable partition refines the coarsest one.
#include "models/programs/blocks.hpp"

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <tuple>
#include <utility>

#include "sim/lumping.hpp"
#include "sim/random.hpp"

namespace clustersim {
namespace {

/// The communicators that do something, in order.
std::vector<std::uint32_t> active_communicators(const Job& job, const CommunicatorPlans& plans) {
  std::vector<std::uint32_t> active;
  active.reserve(job.communicators());
  for (std::uint32_t c = 0; c < job.communicators(); ++c) {
    if (plans.active(c)) active.push_back(c);
  }
  return active;
}

class PlaceRefinement {
 public:
  PlaceRefinement(const Job& job, const Cluster& cluster, const CommunicatorPlans& plans)
      : job_(job), cluster_(cluster), plans_(plans), active_(active_communicators(job, plans)) {}

  Blocks blocks() {
    partition_ = coarsest_equitable_partition(graph());
    Blocks result;
    for (std::size_t p = 0; p < plans_.places.size(); ++p) {
      place_classes_ = std::max(place_classes_, partition_.class_of[p] + 1);
    }
    add_ranks(result.ranks);
    add_communicators(result.communicators);
    add_resources(result);
    return result;
  }

 private:
  using Members = std::vector<std::pair<std::uint32_t, std::uint32_t>>;             // seat, slot
  using Uses = std::vector<std::tuple<std::size_t, std::uint32_t, std::uint64_t>>;  // shape, offset, coefficient
  using Labels = std::vector<ColouredGraph::Label>;  // per place of a communicator; invalid where it does nothing

  [[nodiscard]] std::uint32_t seat(std::uint32_t rank) const { return cluster_.local_index(job_.gpu_of[rank]); }
  [[nodiscard]] std::uint32_t place_class(std::uint32_t place) const { return partition_.class_of[place]; }

  /// Vertices are the places, then the active communicators.
  ColouredGraph graph() {
    const std::size_t places = plans_.places.size();
    ColouredGraph graph(places + active_.size());
    std::vector<std::uint64_t> ranks(places, 0);  // a sum, so that their order does not matter
    for (std::uint32_t r = 0; r < job_.ranks(); ++r) {
      ranks[plans_.place_of_rank[r]] += mix64(seat(r), rank_colour(job_, r));
    }
    for (std::uint32_t p = 0; p < places; ++p) {
      graph.set_colour(p, mix64(mix64(place_kind, plans_.places[p].kind), ranks[p]));
    }
    std::vector<Labels> labels(plans_.patterns());
    graph.reserve_edges(plans_.place_list.size());
    for (std::size_t i = 0; i < active_.size(); ++i) {
      const auto vertex = static_cast<std::uint32_t>(places + i);
      const std::uint32_t pattern = plans_.pattern_of[active_[i]];
      if (labels[pattern].empty()) labels[pattern] = labels_of(active_[i], graph);
      graph.set_colour(vertex, communicator_colour(plans_, pattern));
      const auto its_places = plans_.places_of(active_[i]);
      for (std::size_t p = 0; p < its_places.size(); ++p) {
        const ColouredGraph::Label label = labels[pattern][p];
        if (label.valid()) graph.add_edge(vertex, its_places[p], label, label);
      }
    }
    return graph;
  }

  /// Equal for all communicators of a pattern.
  Labels labels_of(std::uint32_t communicator, ColouredGraph& graph) {
    std::map<std::uint32_t, std::pair<Members, Uses>> at;  // by place
    for (std::uint32_t e = job_.member_begin[communicator]; e < job_.member_begin[communicator + 1]; ++e) {
      const SlotEntry& entry = plans_.entries[e];
      at[plans_.place_of_rank[entry.rank]].first.emplace_back(seat(entry.rank), entry.slot);
    }
    plans_.for_each_use(communicator,
                        [&](std::size_t shape, std::uint32_t place, std::uint32_t offset, double coefficient) {
                          at[place].second.emplace_back(shape, offset, coefficient_label(coefficient));
                        });
    Labels labels;
    for (const std::uint32_t place : plans_.places_of(communicator)) {
      labels.emplace_back();
      const auto deeds = at.find(place);
      if (deeds == at.end()) continue;
      auto& [members, uses] = deeds->second;
      std::sort(members.begin(), members.end());
      std::sort(uses.begin(), uses.end());
      labels.back() = graph.label(deeds_.try_emplace(std::move(deeds->second), deeds_.size()).first->second);
    }
    return labels;
  }

  /// Ranks at one seat of equal nodes.
  void add_ranks(ClassList& list) const {
    std::vector<std::uint32_t> seats(place_classes_ + std::size_t{1}, 0);  // per class of places, then where they begin
    for (std::uint32_t r = 0; r < job_.ranks(); ++r) {
      std::uint32_t& most = seats[place_class(plans_.place_of_rank[r]) + std::size_t{1}];
      most = std::max(most, seat(r) + 1);
    }
    std::partial_sum(seats.begin(), seats.end(), seats.begin());
    std::vector<std::uint32_t> block(seats.back(), kNoClass);
    list.members = job_.ranks();
    list.class_of.reserve(job_.ranks());
    for (std::uint32_t r = 0; r < job_.ranks(); ++r) {
      std::uint32_t& its_block = block[seats[place_class(plans_.place_of_rank[r])] + seat(r)];
      if (its_block == kNoClass) {
        its_block = static_cast<std::uint32_t>(list.size());
        list.representative.push_back(r);
        list.count.push_back(0);
      }
      list.class_of.push_back(its_block);
      ++list.count[its_block];
    }
  }

  void add_communicators(ClassList& list) const {
    list.members = active_.size();
    list.class_of.assign(job_.communicators(), kNoClass);
    for (std::size_t i = 0; i < active_.size(); ++i) {
      const std::uint32_t vertex_class = partition_.class_of[plans_.places.size() + i];
      const std::uint32_t its_block = vertex_class - place_classes_;
      if (its_block == list.size()) {
        list.representative.push_back(active_[i]);
        list.count.push_back(partition_.size[vertex_class]);
      }
      list.class_of[active_[i]] = its_block;
    }
  }

  /// Resources at one offset of equal places, those that are used: what one communicator of each block says, holds for
  /// all places of the class.
  void add_resources(Blocks& blocks) const {
    // The place of each class with the lowest numbers, which it has at all offsets: places of a kind are numbered
    // alike.
    std::vector<std::uint32_t> lowest(place_classes_, kNoClass);
    for (std::uint32_t p = 0; p < plans_.places.size(); ++p) {
      std::uint32_t& best = lowest[place_class(p)];
      if (best == kNoClass || plans_.places[p].first < plans_.places[best].first) best = p;
    }
    std::vector<std::uint32_t> begin(place_classes_ + std::size_t{1}, 0);
    for (std::size_t k = 0; k < place_classes_; ++k) begin[k + 1] = begin[k] + plans_.places[lowest[k]].size();
    for (std::uint32_t p = 0; p < plans_.places.size(); ++p) blocks.first_block.push_back(begin[place_class(p)]);

    std::vector<bool> used(begin.back(), false);
    for (const std::uint32_t c : blocks.communicators.representative) {
      plans_.for_each_use(c, [&](std::size_t, std::uint32_t place, std::uint32_t offset, double) {
        used[blocks.first_block[place] + offset] = true;
      });
    }
    struct Found {
      std::uint32_t resource;  // the lowest
      std::uint32_t at;        // in resource_block
      std::uint32_t count;
    };
    std::vector<Found> found;
    for (std::uint32_t k = 0; k < place_classes_; ++k) {
      for (std::uint32_t at = begin[k]; at < begin[k + std::size_t{1}]; ++at) {
        if (used[at]) found.push_back({plans_.places[lowest[k]].resource(at - begin[k]), at, partition_.size[k]});
      }
    }
    std::sort(found.begin(), found.end(), [](const Found& a, const Found& b) { return a.resource < b.resource; });
    blocks.resource_block.assign(begin.back(), kNoClass);
    for (const Found& one : found) {
      blocks.resource_block[one.at] = static_cast<std::uint32_t>(blocks.resources.size());
      blocks.resources.representative.push_back(one.resource);
      blocks.resources.count.push_back(one.count);
      blocks.resources.members += one.count;
    }
  }

  const Job& job_;
  const Cluster& cluster_;
  const CommunicatorPlans& plans_;
  std::vector<std::uint32_t> active_;
  std::map<std::pair<Members, Uses>, std::uint64_t> deeds_;  // numbered, as labels
  Partition partition_;                                      // of the places, then of the active communicators
  std::uint32_t place_classes_ = 0;
};

}  // namespace

std::uint64_t coefficient_label(double coefficient) {
  constexpr unsigned kDropped = 13;  // of 52 stored bits, so that 39 + the leading one remain
  return (std::bit_cast<std::uint64_t>(coefficient) + (1ULL << (kDropped - 1))) >> kDropped;
}

std::uint64_t rank_colour(const Job& job, std::uint32_t rank) {
  const double slowdown = job.slowdown.empty() ? 1.0 : job.slowdown[rank];
  return mix64(mix64(rank_kind, job.program_of[rank]), std::bit_cast<std::uint64_t>(slowdown));
}

std::uint64_t communicator_colour(const CommunicatorPlans& plans, std::size_t pattern) {
  std::uint64_t colour = mix64(communicator_kind, plans.sequence_of[pattern]);
  for (const OperationPlan& plan : plans.pattern_plans(pattern)) {
    for (const std::uint64_t part :
         {std::bit_cast<std::uint64_t>(plan.amount), std::bit_cast<std::uint64_t>(plan.rate_cap),
          static_cast<std::uint64_t>(plan.latency.count()), std::uint64_t{plan.algorithm}, std::uint64_t{plan.shape}}) {
      colour = mix64(colour, part);
    }
  }
  return colour;
}

Blocks single_members(const Job& job, const Cluster& cluster, const CommunicatorPlans& plans) {
  Blocks blocks;
  blocks.ranks.members = job.ranks();
  blocks.ranks.class_of.resize(job.ranks());
  std::iota(blocks.ranks.class_of.begin(), blocks.ranks.class_of.end(), 0U);
  blocks.ranks.representative = blocks.ranks.class_of;
  blocks.ranks.count.assign(job.ranks(), 1);

  blocks.communicators.representative = active_communicators(job, plans);
  blocks.communicators.members = blocks.communicators.size();
  blocks.communicators.count.assign(blocks.communicators.size(), 1);
  blocks.communicators.class_of.assign(job.communicators(), kNoClass);
  for (std::uint32_t i = 0; i < blocks.communicators.size(); ++i) {
    blocks.communicators.class_of[blocks.communicators.representative[i]] = i;
  }

  blocks.by_resource = true;
  blocks.resource_block.assign(cluster.network().resources(), kNoClass);
  for (const std::uint32_t c : blocks.communicators.representative) {
    plans.for_each_use(c, [&](std::size_t, std::uint32_t place, std::uint32_t offset, double) {
      blocks.resource_block[plans.places[place].resource(offset)] = 0;  // used
    });
  }
  for (std::uint32_t r = 0; r < blocks.resource_block.size(); ++r) {
    if (blocks.resource_block[r] == kNoClass) continue;
    blocks.resource_block[r] = static_cast<std::uint32_t>(blocks.resources.size());
    blocks.resources.representative.push_back(r);
  }
  blocks.resources.members = blocks.resources.size();
  blocks.resources.count.assign(blocks.resources.size(), 1);
  return blocks;
}

Blocks blocks_by_place(const Job& job, const Cluster& cluster, const CommunicatorPlans& plans) {
  return PlaceRefinement(job, cluster, plans).blocks();
}

}  // namespace clustersim
