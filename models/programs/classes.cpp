// From a planned job to classes: the coloured graph of ranks, communicators and resources, and its quotient.
#include "models/programs/classes.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "sim/errors.hpp"
#include "sim/lumping.hpp"
#include "sim/random.hpp"

namespace clustersim {
namespace {

/// Rounded to 40 significant bits: the same sum in another order must not make two resources look different.
std::uint64_t coefficient_label(double coefficient) {
  constexpr unsigned kDropped = 13;  // of 52 stored bits, so that 39 + the leading one remain
  return (std::bit_cast<std::uint64_t>(coefficient) + (1ULL << (kDropped - 1))) >> kDropped;
}

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

/// Numbers the vertices (ranks, then communicators that do something, then resources that carry something), colours and
/// joins them.
class GraphBuilder {
 public:
  GraphBuilder(const Job& job, const Cluster& cluster, const CommunicationModel& model, const CommunicatorPlans& plans)
      : job_(job), cluster_(cluster), model_(model), plans_(plans) {
    std::vector<bool> used(cluster.network().resources(), false);
    for (const PlanUse& use : plans.uses) used[use.resource] = true;
    for (std::uint32_t c = 0; c < job.communicators(); ++c) {
      if (plans.active(c)) communicators_.push_back(c);
    }
    resource_vertex_.assign(used.size(), kNoClass);
    for (std::uint32_t r = 0; r < used.size(); ++r) {
      if (!used[r]) continue;
      resource_vertex_[r] = static_cast<std::uint32_t>(job.ranks() + communicators_.size() + resources_.size());
      resources_.push_back(r);
    }
  }

  [[nodiscard]] std::size_t vertices() const { return job_.ranks() + communicators_.size() + resources_.size(); }
  [[nodiscard]] const std::vector<std::uint32_t>& communicators() const { return communicators_; }
  [[nodiscard]] const std::vector<std::uint32_t>& resources() const { return resources_; }

  [[nodiscard]] ColouredGraph graph() const {
    ColouredGraph graph(vertices());
    graph.reserve_edges(plans_.entries.size() + plans_.uses.size());
    for (std::uint32_t r = 0; r < job_.ranks(); ++r) graph.set_colour(r, rank_colour(r));
    for (std::size_t i = 0; i < communicators_.size(); ++i) {
      const auto vertex = static_cast<std::uint32_t>(job_.ranks() + i);
      graph.set_colour(vertex, communicator_colour(communicators_[i]));
      add_edges(graph, vertex, communicators_[i]);
    }
    for (const std::uint32_t r : resources_) graph.set_colour(resource_vertex_[r], resource_colour(r));
    return graph;
  }

 private:
  enum Kind : std::uint64_t { rank_kind = 1, communicator_kind = 2, resource_kind = 3 };

  [[nodiscard]] std::uint64_t rank_colour(std::uint32_t rank) const {
    const double slowdown = job_.slowdown.empty() ? 1.0 : job_.slowdown[rank];
    return mix64(mix64(rank_kind, job_.program_of[rank]), std::bit_cast<std::uint64_t>(slowdown));
  }
  [[nodiscard]] std::uint64_t communicator_colour(std::uint32_t communicator) const {
    std::uint64_t colour = mix64(communicator_kind, plans_.sequence_of[communicator]);
    for (const OperationPlan& plan : plans_.plans_of(communicator)) {
      for (const std::uint64_t part :
           {std::bit_cast<std::uint64_t>(plan.amount), std::bit_cast<std::uint64_t>(plan.rate_cap),
            static_cast<std::uint64_t>(plan.latency.count()), std::uint64_t{plan.algorithm},
            std::uint64_t{plan.shape}}) {
        colour = mix64(colour, part);
      }
    }
    return colour;
  }
  [[nodiscard]] std::uint64_t resource_colour(std::uint32_t resource) const {
    const double usable = usable_capacity(cluster_.network(), model_, resource);
    return mix64(mix64(resource_kind, resource_look(cluster_.network(), resource)),
                 std::bit_cast<std::uint64_t>(usable));
  }
  void add_edges(ColouredGraph& graph, std::uint32_t vertex, std::uint32_t communicator) const {
    for (std::uint32_t e = job_.member_begin[communicator]; e < job_.member_begin[communicator + 1]; ++e) {
      graph.add_edge(plans_.entries[e].rank, vertex, plans_.entries[e].slot);
    }
    const std::size_t first = plans_.shape_begin[communicator];
    for (std::size_t shape = first; shape < plans_.shape_begin[communicator + 1]; ++shape) {
      for (const PlanUse& use : plans_.uses_of(shape)) {
        graph.add_edge(vertex, resource_vertex_[use.resource],
                       mix64(shape - first, coefficient_label(use.coefficient)));
      }
    }
  }

 public:
  static double usable_capacity(const Network& network, const CommunicationModel& model, std::uint32_t resource) {
    return network.resource_capacity(resource).value() * model.efficiency(network.resource_kind(resource));
  }

 private:
  const Job& job_;
  const Cluster& cluster_;
  const CommunicationModel& model_;
  const CommunicatorPlans& plans_;
  std::vector<std::uint32_t> communicators_;
  std::vector<std::uint32_t> resources_;
  std::vector<std::uint32_t> resource_vertex_;
};

/// Cuts the classes of one kind of vertices out of the partition. `original` maps vertex - first to the member's number
/// (empty: the same), `universe` is how many such numbers there are.
ClassList cut_classes(const Partition& partition, std::size_t first, std::size_t members,
                      const std::vector<std::uint32_t>& original, std::size_t universe, std::size_t first_class) {
  ClassList list;
  list.members = members;
  list.class_of.assign(universe, kNoClass);
  const auto number = [&](std::size_t i) { return original.empty() ? static_cast<std::uint32_t>(i) : original[i]; };
  for (std::size_t i = 0; i < members; ++i) {
    const std::uint32_t vertex_class = partition.class_of[first + i];
    ensure(vertex_class >= first_class, "a class mixes ranks, communicators or resources");
    const std::size_t local = vertex_class - first_class;
    if (local == list.representative.size()) {
      list.representative.push_back(number(i));
      list.count.push_back(partition.size[vertex_class]);
    }
    ensure(local < list.representative.size(), "classes are not numbered by their smallest member");
    list.class_of[number(i)] = static_cast<std::uint32_t>(local);
  }
  return list;
}

/// Sums what each class of communicators puts on one resource of each class, shape by shape.
class Quotient {
 public:
  Quotient(const Job& job, const CommunicatorPlans& plans, Classes& classes)
      : job_(job), plans_(plans), classes_(classes) {}

  void add_uses() {
    const ClassList& communicators = classes_.communicators;
    std::vector<std::uint32_t> begin(communicators.size() + 1, 0);
    for (std::size_t c = 0; c < communicators.size(); ++c) begin[c + 1] = begin[c] + communicators.count[c];
    std::vector<std::uint32_t> members(communicators.members);
    std::vector<std::uint32_t> next(begin.begin(), begin.end() - 1);
    for (std::uint32_t c = 0; c < communicators.class_of.size(); ++c) {
      if (communicators.class_of[c] != kNoClass) members[next[communicators.class_of[c]]++] = c;
    }
    on_representative_.assign(classes_.resources.size(), 0);
    on_all_.assign(classes_.resources.size(), 0);
    for (std::size_t c = 0; c < communicators.size(); ++c) {
      classes_.shape_begin.push_back(classes_.use_begin.size() - 1);
      add_class(std::span(members).subspan(begin[c], communicators.count[c]));
    }
    classes_.shape_begin.push_back(classes_.use_begin.size() - 1);
  }

  void add_members() {
    classes_.class_of_slot.assign(classes_.ranks.size() * job_.slots, kNoClass);
    for (std::size_t r = 0; r < classes_.ranks.size(); ++r) {
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

 private:
  void add_class(std::span<const std::uint32_t> members) {
    const std::size_t first = plans_.shape_begin[members.front()];
    const std::size_t shapes = plans_.shape_begin[members.front() + std::size_t{1}] - first;
    for (std::size_t shape = 0; shape < shapes; ++shape) {
      touched_.clear();
      for (const std::uint32_t c : members) {
        for (const PlanUse& use : plans_.uses_of(plans_.shape_begin[c] + shape)) {
          const std::uint32_t resource_class = classes_.resources.class_of[use.resource];
          if (on_all_[resource_class] == 0) touched_.push_back(resource_class);
          on_all_[resource_class] += use.coefficient;
          if (use.resource == classes_.resources.representative[resource_class]) {
            on_representative_[resource_class] += use.coefficient;
          }
        }
      }
      std::sort(touched_.begin(), touched_.end());
      for (const std::uint32_t r : touched_) {
        // The partition promises the same load on every resource of a class; believe it only when the sums agree.
        const double even = on_all_[r] / classes_.resources.count[r];
        ensure(std::abs(on_representative_[r] - even) <= 1e-9 * even,
               "the partition is not equitable: load {} on one resource of a class, {} on average",
               on_representative_[r], even);
        classes_.uses.push_back({ResourceId(r), on_representative_[r]});
        on_all_[r] = 0;
        on_representative_[r] = 0;
      }
      classes_.use_begin.push_back(classes_.uses.size());
    }
  }

  const Job& job_;
  const CommunicatorPlans& plans_;
  Classes& classes_;
  std::vector<double> on_representative_;  // per resource class, zero between uses
  std::vector<double> on_all_;
  std::vector<std::uint32_t> touched_;
};

}  // namespace

Classes find_classes(const Job& job, const Cluster& cluster, const CommunicationModel& model,
                     const CommunicatorPlans& plans, bool lump) {
  const GraphBuilder builder(job, cluster, model, plans);
  const Partition partition =
      lump ? coarsest_equitable_partition(builder.graph()) : discrete_partition(builder.vertices());
  Classes classes;
  const std::size_t ranks = job.ranks();
  const std::size_t communicators = builder.communicators().size();
  classes.ranks = cut_classes(partition, 0, ranks, {}, ranks, 0);
  classes.communicators =
      cut_classes(partition, ranks, communicators, builder.communicators(), job.communicators(), classes.ranks.size());
  classes.resources = cut_classes(partition, ranks + communicators, builder.resources().size(), builder.resources(),
                                  cluster.network().resources(), classes.ranks.size() + classes.communicators.size());
  for (const std::uint32_t r : classes.resources.representative) {
    classes.capacity.push_back(GraphBuilder::usable_capacity(cluster.network(), model, r));
  }
  Quotient quotient(job, plans, classes);
  quotient.add_members();
  quotient.add_uses();
  return classes;
}

}  // namespace clustersim
