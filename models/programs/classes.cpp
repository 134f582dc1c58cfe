// From a planned job to classes: the coloured graph of blocks of ranks, communicators and resources, and its quotient.
#include "models/programs/classes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/errors.hpp"
#include "sim/lumping.hpp"
#include "sim/random.hpp"

namespace clustersim {
namespace {

/// What a link looks like to a reader: classes do not mix leaf uplinks with NVLink even where the numbers agree.
std::uint64_t resource_look(const Network& network, std::uint32_t resource) {
  const auto links = static_cast<std::uint32_t>(network.links().size());
  const bool bundle = resource >= links;
  const LinkId link = bundle ? network.members(BundleId(resource - links)).front() : LinkId(resource);
  const Device& from = network.device(network.link(link).from);
  const Device& to = network.device(network.link(link).to);
  std::uint64_t look = bundle ? 1 : 0;
  for (const std::uint64_t part :
       {static_cast<std::uint64_t>(network.resource_kind(resource)), static_cast<std::uint64_t>(from.kind),
        std::uint64_t{from.tier}, static_cast<std::uint64_t>(to.kind), std::uint64_t{to.tier}}) {
    look = mix64(look, part);
  }
  return look;
}

std::uint64_t resource_colour(const Network& network, const CommunicationModel& model, std::uint32_t resource) {
  return mix64(mix64(resource_kind, resource_look(network, resource)),
               std::bit_cast<std::uint64_t>(model.usable_capacity(network, resource)));
}

/// Vertices are the blocks of ranks, then of communicators, then of resources. What one communicator of a block shares
/// with the members of another block holds for all communicators of its block, so that one is looked at.
class BlockGraph {
 public:
  BlockGraph(const Job& job, const CommunicatorPlans& plans, const Blocks& blocks)
      : job_(job), plans_(plans), blocks_(blocks), latest_(std::max(blocks.ranks.size(), blocks.resources.size()), 0) {}

  [[nodiscard]] std::size_t first_communicator() const { return blocks_.ranks.size(); }
  [[nodiscard]] std::size_t first_resource() const { return first_communicator() + blocks_.communicators.size(); }
  [[nodiscard]] std::size_t vertices() const { return first_resource() + blocks_.resources.size(); }

  ColouredGraph graph(const Network& network, const CommunicationModel& model) {
    ColouredGraph graph(vertices());
    for (std::uint32_t b = 0; b < blocks_.ranks.size(); ++b) {
      graph.set_colour(b, rank_colour(job_, blocks_.ranks.representative[b]));
    }
    for (std::uint32_t b = 0; b < blocks_.resources.size(); ++b) {
      graph.set_colour(static_cast<std::uint32_t>(first_resource() + b),
                       resource_colour(network, model, blocks_.resources.representative[b]));
    }
    for (std::uint32_t b = 0; b < blocks_.communicators.size(); ++b) {
      const std::uint32_t pattern = plans_.pattern_of[blocks_.communicators.representative[b]];
      graph.set_colour(static_cast<std::uint32_t>(first_communicator() + b), communicator_colour(plans_, pattern));
      for (const Tie& tie : members(b)) {
        join(graph, b, tie.block, blocks_.ranks.count[tie.block], tie.slot, tie.count);
      }
      for (std::size_t shape = 0; shape < plans_.shapes(pattern); ++shape) {
        for (const Tie& tie : uses(b, shape)) {
          join(graph, b, static_cast<std::uint32_t>(first_resource() + tie.block), blocks_.resources.count[tie.block],
               mix64(shape, coefficient_label(tie.coefficient)), tie.count);
        }
      }
    }
    return graph;
  }

  /// Equal things that a communicator has to do with members of one block.
  struct Tie {
    std::uint32_t block = 0;
    std::uint32_t slot = 0;    // of ranks
    double coefficient = 0;    // on resources
    std::uint64_t count = 1;   // how many
    std::uint32_t before = 0;  // the tie to the same block that was found before, plus one
  };

  /// What a communicator of block `b` puts on resources. Valid until the next call.
  std::span<const Tie> uses(std::uint32_t b, std::size_t shape) {
    ties_.clear();
    const std::uint32_t communicator = blocks_.communicators.representative[b];
    const auto places = plans_.places_of(communicator);
    for (const PatternUse& use : plans_.uses_of(plans_.pattern_of[communicator], shape)) {
      tie(blocks_.of_resource(plans_, places[use.place], use.offset), 0, use.coefficient);
    }
    return ties_;
  }

 private:
  /// The ranks in a communicator of block `b`. Valid until the next call.
  std::span<const Tie> members(std::uint32_t b) {
    ties_.clear();
    const std::uint32_t communicator = blocks_.communicators.representative[b];
    for (std::uint32_t e = job_.member_begin[communicator]; e < job_.member_begin[communicator + 1]; ++e) {
      tie(blocks_.ranks.class_of[plans_.entries[e].rank], plans_.entries[e].slot, 0);
    }
    return ties_;
  }

  /// Counts one more tie. The latest to a block is found in a sparse set, the few others from there.
  void tie(std::uint32_t block, std::uint32_t slot, double coefficient) {
    std::uint32_t& latest = latest_[block];
    const bool first = latest >= ties_.size() || ties_[latest].block != block;
    for (std::uint32_t at = first ? 0 : latest + 1; at > 0; at = ties_[at - 1].before) {
      Tie& known = ties_[at - 1];
      if (known.slot != slot || known.coefficient != coefficient) continue;
      ++known.count;
      return;
    }
    const std::uint32_t before = first ? 0 : latest + 1;
    latest = static_cast<std::uint32_t>(ties_.size());
    ties_.push_back({block, slot, coefficient, 1, before});
  }

  /// Each communicator of the block has `count` edges to members of the other; these have as many between them.
  void join(ColouredGraph& graph, std::uint32_t b, std::uint32_t other, std::uint32_t others, std::uint64_t label,
            std::uint64_t count) const {
    const std::uint64_t edges = count * blocks_.communicators.count[b];
    ensure(edges % others == 0, "blocks are not equitable: {} edges to {} members", edges, others);
    graph.add_edge(static_cast<std::uint32_t>(first_communicator() + b), other, graph.label(label, count),
                   graph.label(label, edges / others));
  }

  const Job& job_;
  const CommunicatorPlans& plans_;
  const Blocks& blocks_;
  std::vector<Tie> ties_;
  std::vector<std::uint32_t> latest_;  // per block: holds where ties_ agrees
};

/// The classes of blocks of one kind: those of partition classes from `first_class` on.
ClassList join_blocks(const ClassList& blocks, std::span<const std::uint32_t> block_class, std::size_t first_class) {
  ClassList list;
  list.members = blocks.members;
  for (std::size_t b = 0; b < blocks.size(); ++b) {
    ensure(block_class[b] >= first_class, "a class mixes ranks, communicators or resources");
    const std::size_t local = block_class[b] - first_class;
    if (local == list.size()) {
      list.representative.push_back(blocks.representative[b]);
      list.count.push_back(0);
    }
    ensure(local < list.size(), "classes are not numbered by their smallest member");
    list.count[local] += blocks.count[b];
  }
  list.class_of.reserve(blocks.class_of.size());
  for (const std::uint32_t block : blocks.class_of) {
    list.class_of.push_back(block == kNoClass ? kNoClass
                                              : block_class[block] - static_cast<std::uint32_t>(first_class));
  }
  return list;
}

/// Fills in what classes have to do with each other.
class Quotient {
 public:
  Quotient(const Job& job, const CommunicatorPlans& plans, const Blocks& blocks, BlockGraph& graph,
           const Partition& partition, Classes& classes)
      : job_(job), plans_(plans), blocks_(blocks), graph_(graph), partition_(partition), classes_(classes) {}

  void add_members() {
    classes_.class_of_slot.assign(classes_.ranks.size() * job_.slots, kNoClass);
    for (std::size_t r = 0; r < classes_.ranks.size() && !job_.slot_of.empty(); ++r) {
      for (std::uint32_t slot = 0; slot < job_.slots; ++slot) {
        const CommunicatorId id = job_.slot_of[std::size_t{classes_.ranks.representative[r]} * job_.slots + slot];
        if (id.valid()) classes_.class_of_slot[r * job_.slots + slot] = classes_.communicators.class_of[id.index()];
      }
    }
    std::vector<MemberClass> members;
    for (const std::uint32_t communicator : classes_.communicators.representative) {
      classes_.member_begin.push_back(static_cast<std::uint32_t>(classes_.member_classes.size()));
      members.clear();
      for (std::uint32_t e = job_.member_begin[communicator]; e < job_.member_begin[communicator + 1]; ++e) {
        members.push_back({classes_.ranks.class_of[plans_.entries[e].rank], plans_.entries[e].slot});
      }
      std::sort(members.begin(), members.end());
      members.erase(std::unique(members.begin(), members.end()), members.end());
      classes_.member_classes.insert(classes_.member_classes.end(), members.begin(), members.end());
    }
    classes_.member_begin.push_back(static_cast<std::uint32_t>(classes_.member_classes.size()));
  }

  /// Sums what each class of communicators puts on one resource of each class, shape by shape.
  void add_uses() {
    const std::size_t communicators = classes_.communicators.size();
    std::vector<std::vector<std::uint32_t>> its_blocks(communicators);
    for (std::uint32_t b = 0; b < blocks_.communicators.size(); ++b) {
      its_blocks[classes_.communicators.class_of[blocks_.communicators.representative[b]]].push_back(b);
    }
    on_representative_.assign(classes_.resources.size(), 0);
    on_all_.assign(classes_.resources.size(), 0);
    for (std::size_t c = 0; c < communicators; ++c) {
      classes_.shape_begin.push_back(classes_.use_begin.size() - 1);
      const std::size_t shapes = plans_.shapes(plans_.pattern_of[classes_.communicators.representative[c]]);
      for (std::size_t shape = 0; shape < shapes; ++shape) add_shape(its_blocks[c], shape);
    }
    classes_.shape_begin.push_back(classes_.use_begin.size() - 1);
  }

 private:
  void add_shape(std::span<const std::uint32_t> its_blocks, std::size_t shape) {
    touched_.clear();
    const std::size_t first_class = classes_.ranks.size() + classes_.communicators.size();
    for (const std::uint32_t b : its_blocks) {
      for (const BlockGraph::Tie& tie : graph_.uses(b, shape)) {
        const std::size_t r = partition_.class_of[graph_.first_resource() + tie.block] - first_class;
        const std::uint64_t edges = tie.count * blocks_.communicators.count[b];
        if (on_all_[r] == 0) touched_.push_back(static_cast<std::uint32_t>(r));
        on_all_[r] += tie.coefficient * static_cast<double>(edges);
        if (blocks_.resources.representative[tie.block] == classes_.resources.representative[r]) {
          const std::uint64_t on_each = edges / blocks_.resources.count[tie.block];  // divides, see join()
          on_representative_[r] += tie.coefficient * static_cast<double>(on_each);
        }
      }
    }
    std::sort(touched_.begin(), touched_.end());
    for (const std::uint32_t r : touched_) {
      // The partition promises the same load on every resource of a class; believe it only when the sums agree.
      const double even = on_all_[r] / classes_.resources.count[r];
      ensure(std::abs(on_representative_[r] - even) <= 1e-9 * even,
             "the partition is not equitable: load {} on one resource of a class, {} on average", on_representative_[r],
             even);
      classes_.uses.push_back({ResourceId(r), on_representative_[r]});
      on_all_[r] = 0;
      on_representative_[r] = 0;
    }
    classes_.use_begin.push_back(classes_.uses.size());
  }

  const Job& job_;
  const CommunicatorPlans& plans_;
  const Blocks& blocks_;
  BlockGraph& graph_;
  const Partition& partition_;
  Classes& classes_;
  std::vector<double> on_representative_;  // per resource class, zero between uses
  std::vector<double> on_all_;
  std::vector<std::uint32_t> touched_;
};

}  // namespace

Classes find_classes(const Job& job, const Cluster& cluster, const CommunicationModel& model,
                     const CommunicatorPlans& plans, bool lump) {
  const Blocks blocks =
      lump && plans.relative ? blocks_by_place(job, cluster, plans) : single_members(job, cluster, plans);
  BlockGraph graph(job, plans, blocks);
  const Partition partition =
      lump ? coarsest_equitable_partition(graph.graph(cluster.network(), model)) : discrete_partition(graph.vertices());
  const std::span all(partition.class_of);
  Classes classes;
  classes.ranks = join_blocks(blocks.ranks, all.first(graph.first_communicator()), 0);
  classes.communicators = join_blocks(
      blocks.communicators, all.subspan(graph.first_communicator(), blocks.communicators.size()), classes.ranks.size());
  classes.resources = join_blocks(blocks.resources, all.subspan(graph.first_resource()),
                                  classes.ranks.size() + classes.communicators.size());
  for (const std::uint32_t r : classes.resources.representative) {
    classes.capacity.push_back(model.usable_capacity(cluster.network(), r));
  }
  Quotient quotient(job, plans, blocks, graph, partition, classes);
  quotient.add_members();
  quotient.add_uses();
  return classes;
}

}  // namespace clustersim
