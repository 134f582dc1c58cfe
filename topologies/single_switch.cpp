// All endpoints on one switch: the smallest fabric, and the ideal one to compare others with.
#include <array>

#include "sim/errors.hpp"
#include "topologies/fabric.hpp"

namespace clustersim {
namespace {

constexpr std::array kSchema{
    Parameter{.name = "ports",
              .kind = ValueKind::integer,
              .help = "ports of the switch; default: as many as there are endpoints",
              .minimum = 1,
              .maximum = 4e6},
};

class SingleSwitch final : public Fabric {
 public:
  explicit SingleSwitch(const FabricContext& context)
      : endpoints_(static_cast<std::int64_t>(context.endpoints.size())),
        first_link_(static_cast<std::uint32_t>(context.network.links().size())),
        link_rate_(context.link_rate),
        link_latency_(context.link_latency),
        in_network_reduction_(context.in_network_reduction),
        all_in_one_(context.endpoints.size(), 0) {
    const DeviceId hub =
        context.network.add_device({.kind = DeviceKind::network_switch, .tier = 1, .node = ~0U, .index = 0});
    for (const Endpoint& endpoint : context.endpoints) {
      context.network.add_cable(endpoint.device, hub, context.endpoint_rate(endpoint), context.link_latency,
                                context.link_kind);
    }
  }

  void route(std::uint32_t from, std::uint32_t to, const Routing&, Route& out) const override {
    ensure(from != to && from < endpoints_ && to < endpoints_, "no route from endpoint {} to endpoint {}", from, to);
    out.add_hop(first_link_ + 2 * from, link_latency_);
    out.add_hop(first_link_ + 2 * to + 1, link_latency_);
  }

  bool reduction_tree(std::span<const std::uint32_t> endpoints, Route& out) const override {
    if (!in_network_reduction_ || endpoints.size() < 2) return false;
    for (const std::uint32_t endpoint : endpoints) {
      out.add(first_link_ + 2 * endpoint, 1.0);
      out.add(first_link_ + 2 * endpoint + 1, 1.0);
    }
    out.latency += 2 * link_latency_;
    out.hops += 2;
    return true;
  }

  [[nodiscard]] FabricFigures figures() const override {
    FabricFigures result;
    result.tiers.push_back(
        {.name = "leaf", .switches = 1, .ports_down = endpoints_, .ports_up = 0, .cables_down = endpoints_});
    result.cables = endpoints_;
    result.bisection_links = endpoints_ / 2;
    result.bisection = link_rate_ * static_cast<double>(result.bisection_links);
    result.diameter_hops = endpoints_ > 1 ? 2 : 0;
    result.mean_hops = result.diameter_hops;
    return result;
  }

  [[nodiscard]] FabricGroups groups(const Routing&) const override {
    return {.group_of = all_in_one_, .first_link = first_link_, .levels = {{.groups = 1, .parent = {}}}};
  }

 private:
  std::int64_t endpoints_;
  std::uint32_t first_link_;  // endpoint e: first_link_ + 2e up and the next one down
  Rate link_rate_;
  Picoseconds link_latency_;
  bool in_network_reduction_;
  std::vector<std::uint32_t> all_in_one_;  // per endpoint: group 0
};

std::unique_ptr<Fabric> build(const FabricContext& context, const Settings& settings) {
  const auto endpoints = static_cast<std::int64_t>(context.endpoints.size());
  if (settings.given("ports") && settings.integer("ports") < endpoints) {
    settings.reject("ports", "is too few for the {} endpoints; take more ports or topology = \"fat-tree\"", endpoints);
  }
  return std::make_unique<SingleSwitch>(context);
}

}  // namespace

extern constinit const FabricEntry kSingleSwitch{"single-switch", "every endpoint on one switch, two hops to any other",
                                                 kSchema, build};

}  // namespace clustersim
