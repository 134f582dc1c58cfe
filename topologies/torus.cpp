// Tori and meshes of any number of dimensions: wiring, dimension-order routing, closed forms.
#include <algorithm>
#include <array>
#include <numeric>

#include "sim/errors.hpp"
#include "sim/random.hpp"
#include "topologies/fabric.hpp"

namespace clustersim {
namespace {

constexpr std::size_t kMostDimensions = 6;  // spread routing walks all orders of dimensions: 720 of them
constexpr std::size_t kDefaultDimensions = 3;

constexpr std::array kSchema{
    Parameter{.name = "dims",
              .kind = ValueKind::integers,
              .help = "side lengths, the first varies fastest; default: three sides, as equal as they can be",
              .minimum = 1,
              .maximum = 4e6},
    Parameter{.name = "wrap",
              .kind = ValueKind::any,
              .help = "true: rings (torus), false: lines (mesh), or an array with one of them per side; default true"},
    Parameter{.name = "concentration",
              .kind = ValueKind::integer,
              .default_text = "1",
              .help = "endpoints per position; above 1 each position is a router switch, at 1 the endpoint itself",
              .minimum = 1,
              .maximum = 4096},
    Parameter{.name = "attach_rate",
              .kind = ValueKind::rate,
              .help = "of the links between endpoints and routers, per direction; default: the network's link rate",
              .minimum = 1},
};

struct TorusSpec {
  std::vector<std::uint32_t> sides;
  std::vector<bool> wrap;
  std::uint32_t concentration = 1;
  Rate attach_rate{0};
};

/// Sides as equal as they can be, largest first: each prime factor goes to the side that is smallest so far.
std::vector<std::int64_t> balanced_sides(std::int64_t positions, std::size_t dimensions) {
  std::vector<std::int64_t> factors;
  for (std::int64_t p = 2; p * p <= positions; ++p) {
    for (; positions % p == 0; positions /= p) factors.push_back(p);
  }
  if (positions > 1) factors.push_back(positions);
  std::vector<std::int64_t> sides(dimensions, 1);
  for (auto factor = factors.rbegin(); factor != factors.rend(); ++factor) {
    *std::min_element(sides.begin(), sides.end()) *= *factor;
  }
  std::sort(sides.rbegin(), sides.rend());
  return sides;
}

std::vector<bool> read_wrap(const Settings& settings, std::size_t dimensions) {
  if (!settings.given("wrap")) return std::vector<bool>(dimensions, true);
  const Value& written = settings.any("wrap");
  if (const bool* all = std::get_if<bool>(&written.data)) return std::vector<bool>(dimensions, *all);
  const auto* array = std::get_if<Value::Array>(&written.data);
  if (array == nullptr || array->size() != dimensions) {
    settings.reject("wrap", "expected true, false, or an array of {} of them, one for each side", dimensions);
  }
  std::vector<bool> wrap;
  for (const Value& element : *array) {
    const bool* one = std::get_if<bool>(&element.data);
    if (one == nullptr) settings.reject("wrap", "expected true or false for each side, not {}", element.describe());
    wrap.push_back(*one);
  }
  return wrap;
}

TorusSpec read_torus(const Settings& settings, const FabricContext& context) {
  TorusSpec spec;
  const std::int64_t concentration = settings.integer("concentration");
  spec.concentration = static_cast<std::uint32_t>(concentration);
  spec.attach_rate = settings.given("attach_rate") ? settings.rate("attach_rate") : context.link_rate;
  if (settings.given("attach_rate") && concentration == 1) {
    settings.reject("attach_rate", "has no meaning at concentration = 1: endpoints are wired to each other directly");
  }
  const auto endpoints = static_cast<std::int64_t>(context.endpoints.size());
  if (endpoints % concentration != 0) {
    settings.reject("concentration", "does not divide the {} endpoints; did you mean {}?", endpoints,
                    std::gcd(endpoints, concentration));
  }
  const std::int64_t positions = endpoints / concentration;
  std::vector<std::int64_t> sides;
  if (settings.given("dims")) {
    sides = settings.integers("dims");
    if (sides.empty() || sides.size() > kMostDimensions) {
      settings.reject("dims", "has {} sides; expected 1 to {}", sides.size(), kMostDimensions);
    }
    double product = 1;
    for (const std::int64_t side : sides) product *= static_cast<double>(side);
    if (product != static_cast<double>(positions)) {
      settings.reject("dims", "has {} positions for {} endpoints at concentration {}; did you mean [{}]?", product,
                      endpoints, concentration, fmt::join(balanced_sides(positions, sides.size()), ", "));
    }
  } else {
    sides = balanced_sides(positions, kDefaultDimensions);
  }
  for (const std::int64_t side : sides) spec.sides.push_back(static_cast<std::uint32_t>(side));
  spec.wrap = read_wrap(settings, spec.sides.size());
  return spec;
}

class Torus final : public Fabric {
 public:
  Torus(const FabricContext& context, TorusSpec spec);
  void route(std::uint32_t from, std::uint32_t to, const Routing& routing, Route& out) const override;
  [[nodiscard]] FabricFigures figures() const override;
  [[nodiscard]] std::span<const std::uint32_t> torus_sides() const override {
    const bool closed = std::find(spec_.wrap.begin(), spec_.wrap.end(), false) == spec_.wrap.end();
    return closed && spec_.concentration == 1 ? std::span<const std::uint32_t>(spec_.sides)
                                              : std::span<const std::uint32_t>();
  }

 private:
  using Coordinates = std::array<std::uint32_t, kMostDimensions>;
  /// How one dimension is crossed.
  struct Leg {
    std::uint32_t steps = 0;
    bool plus = true;
    bool tie = false;  // half way round: both directions are shortest
  };

  [[nodiscard]] std::size_t dimensions() const { return spec_.sides.size(); }
  [[nodiscard]] Coordinates coordinates(std::uint32_t position) const;
  [[nodiscard]] Leg leg(std::size_t dimension, std::uint32_t from, std::uint32_t to) const;
  void wire(const FabricContext& context, const std::vector<DeviceId>& routers);
  void walk(std::uint32_t position, std::span<const std::size_t> order, std::span<const Leg> legs, double share,
            Route& out) const;
  void route_spread(std::uint32_t position, std::span<const std::size_t> order, std::vector<Leg> legs, double share,
                    Route& out) const;
  [[nodiscard]] std::uint32_t& next_link(std::uint32_t position, std::size_t dimension, bool plus) {
    return next_link_[(std::size_t{position} * dimensions() + dimension) * 2 + (plus ? 1 : 0)];
  }
  [[nodiscard]] std::uint32_t next_link(std::uint32_t position, std::size_t dimension, bool plus) const {
    return next_link_[(std::size_t{position} * dimensions() + dimension) * 2 + (plus ? 1 : 0)];
  }

  TorusSpec spec_;
  std::uint32_t positions_ = 1;
  Rate link_rate_;
  Picoseconds link_latency_;
  std::uint32_t first_attach_ = 0;  // endpoint e: first_attach_ + 2e to its router and the next one back
  std::int64_t cables_ = 0;
  std::vector<std::size_t> stride_;       // per dimension, in positions
  std::vector<std::uint32_t> next_link_;  // per position, dimension and direction; ~0 where there is none
};

Torus::Torus(const FabricContext& context, TorusSpec spec)
    : spec_(std::move(spec)), link_rate_(context.link_rate), link_latency_(context.link_latency) {
  std::size_t stride = 1;
  for (const std::uint32_t side : spec_.sides) {
    stride_.push_back(stride);
    stride *= side;
  }
  positions_ = static_cast<std::uint32_t>(stride);
  const auto most_cables = static_cast<std::int64_t>(context.endpoints.size() + stride * dimensions());
  if (most_cables > kMostCables) {
    infeasible("the torus would have up to {} cables; the limit is {}; take fewer endpoints or dimensions", most_cables,
               kMostCables);
  }
  std::vector<DeviceId> routers;
  if (spec_.concentration == 1) {
    for (const Endpoint& endpoint : context.endpoints) routers.push_back(endpoint.device);
  } else {
    for (std::uint32_t i = 0; i < positions_; ++i) {
      routers.push_back(
          context.network.add_device({.kind = DeviceKind::network_switch, .tier = 0, .node = ~0U, .index = i}));
    }
    first_attach_ = static_cast<std::uint32_t>(context.network.links().size());
    for (std::size_t e = 0; e < context.endpoints.size(); ++e) {
      const Endpoint& endpoint = context.endpoints[e];
      const Rate rate = endpoint.rate > Rate(0) ? std::min(endpoint.rate, spec_.attach_rate) : spec_.attach_rate;
      context.network.add_cable(endpoint.device, routers[e / spec_.concentration], rate, link_latency_,
                                context.link_kind);
      ++cables_;
    }
  }
  wire(context, routers);
}

/// One cable from each position to the next along every dimension. A ring of two is a single cable: its two directions
/// around lead to the same neighbour.
void Torus::wire(const FabricContext& context, const std::vector<DeviceId>& routers) {
  next_link_.assign(std::size_t{positions_} * dimensions() * 2, ~0U);
  for (std::uint32_t position = 0; position < positions_; ++position) {
    const Coordinates at = coordinates(position);
    for (std::size_t d = 0; d < dimensions(); ++d) {
      const std::uint32_t side = spec_.sides[d];
      const bool last = at[d] + 1 == side;
      if (last && (!spec_.wrap[d] || side <= 2)) continue;
      const auto stride = static_cast<std::uint32_t>(stride_[d]);
      const std::uint32_t neighbour = last ? position - stride * (side - 1) : position + stride;
      const LinkId link = context.network.add_cable(routers[position], routers[neighbour], link_rate_, link_latency_,
                                                    context.link_kind);
      next_link(position, d, true) = link.value();
      next_link(neighbour, d, false) = link.value() + 1;
      ++cables_;
    }
  }
}

Torus::Coordinates Torus::coordinates(std::uint32_t position) const {
  Coordinates result{};
  for (std::size_t d = 0; d < dimensions(); ++d) {
    result[d] = position % spec_.sides[d];
    position /= spec_.sides[d];
  }
  return result;
}

/// The shorter way round. Half way round a ring of even length both ways are shortest: the rising one is taken, except
/// towards coordinate 0, as SimGrid's torus does, so that the two directions of a half-way exchange share the load.
Torus::Leg Torus::leg(std::size_t dimension, std::uint32_t from, std::uint32_t to) const {
  if (!spec_.wrap[dimension] || spec_.sides[dimension] <= 2) {
    return {.steps = to > from ? to - from : from - to, .plus = to > from};
  }
  const std::uint32_t side = spec_.sides[dimension];
  const std::uint32_t rising = (to + side - from) % side;
  const std::uint32_t falling = side - rising;
  if (rising == falling) return {.steps = rising, .plus = to != 0, .tie = true};
  return {.steps = std::min(rising, falling), .plus = rising < falling};
}

void Torus::walk(std::uint32_t position, std::span<const std::size_t> order, std::span<const Leg> legs, double share,
                 Route& out) const {
  for (const std::size_t d : order) {
    const auto stride = static_cast<std::uint32_t>(stride_[d]);
    std::uint32_t at = coordinates(position)[d];
    for (std::uint32_t step = 0; step < legs[d].steps; ++step) {
      out.add(next_link(position, d, legs[d].plus), share);
      const std::uint32_t next = legs[d].plus ? (at + 1) % spec_.sides[d] : (at + spec_.sides[d] - 1) % spec_.sides[d];
      position = position - at * stride + next * stride;
      at = next;
    }
  }
}

void Torus::route(std::uint32_t from, std::uint32_t to, const Routing& routing, Route& out) const {
  const std::uint32_t endpoints = positions_ * spec_.concentration;
  ensure(from != to && from < endpoints && to < endpoints, "no route from endpoint {} to endpoint {}", from, to);
  const std::uint32_t start = from / spec_.concentration;
  const std::uint32_t end = to / spec_.concentration;
  const Coordinates a = coordinates(start);
  const Coordinates b = coordinates(end);
  std::vector<Leg> legs;
  std::uint32_t hops = spec_.concentration > 1 ? 2 : 0;
  for (std::size_t d = 0; d < dimensions(); ++d) {
    legs.push_back(leg(d, a[d], b[d]));
    hops += legs.back().steps;
  }
  std::vector<std::size_t> order(dimensions());
  std::iota(order.begin(), order.end(), std::size_t{0});
  if (spec_.concentration > 1) out.add(first_attach_ + 2 * from, 1.0);
  switch (routing.policy) {
    case RoutingPolicy::deterministic:
      walk(start, order, legs, 1.0, out);
      break;
    case RoutingPolicy::ecmp:
      ensure(routing.queue_pairs >= 1, "ecmp needs at least one queue pair");
      for (std::uint32_t pair = 0; pair < routing.queue_pairs; ++pair) {
        const std::uint64_t hash = mix64(mix64(mix64(routing.seed, from), to), pair);
        for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[mix64(hash, i) % i]);
        for (std::size_t d = 0; d < dimensions(); ++d) {
          if (legs[d].tie) legs[d].plus = mix64(hash, kMostDimensions + 1 + d) % 2 == 0;
        }
        walk(start, order, legs, 1.0 / routing.queue_pairs, out);
      }
      break;
    case RoutingPolicy::spread:
      route_spread(start, order, legs, 1.0, out);
      break;
  }
  if (spec_.concentration > 1) out.add(first_attach_ + 2 * to + 1, 1.0);
  out.latency += hops * link_latency_;
  out.hops += hops;
}

/// Evenly over all orders of the dimensions that have to be crossed, and over both directions where they tie. This is
/// oblivious minimal routing (O1TURN and its kin; Seo et al., ISCA 2005), not all staircase paths: those of one order
/// cross each dimension in one go.
void Torus::route_spread(std::uint32_t position, std::span<const std::size_t> order, std::vector<Leg> legs,
                         double share, Route& out) const {
  std::vector<std::size_t> crossed;
  std::vector<std::size_t> ties;
  for (const std::size_t d : order) {
    if (legs[d].steps == 0) continue;
    crossed.push_back(d);
    if (legs[d].tie) ties.push_back(d);
  }
  double orders = 1;
  for (std::size_t i = 2; i <= crossed.size(); ++i) orders *= static_cast<double>(i);
  const auto directions = std::size_t{1} << ties.size();
  Route all;
  do {
    for (std::size_t choice = 0; choice < directions; ++choice) {
      for (std::size_t i = 0; i < ties.size(); ++i) legs[ties[i]].plus = (choice >> i & 1U) == 0;
      walk(position, crossed, legs, share / (orders * static_cast<double>(directions)), all);
    }
  } while (std::next_permutation(crossed.begin(), crossed.end()));
  std::sort(all.shares.begin(), all.shares.end(),
            [](const PathShare& x, const PathShare& y) { return x.resource < y.resource; });
  for (std::size_t i = 0; i < all.shares.size();) {
    double sum = 0;
    const std::uint32_t resource = all.shares[i].resource;
    for (; i < all.shares.size() && all.shares[i].resource == resource; ++i) sum += all.shares[i].share;
    out.add(resource, std::min(sum, 1.0));  // many equal parts may round to a hair above the whole
  }
}

FabricFigures Torus::figures() const {
  FabricFigures result;
  const double endpoints = static_cast<double>(positions_) * spec_.concentration;
  const double attach_hops = spec_.concentration > 1 ? 2 : 0;
  if (spec_.concentration > 1) {
    result.tiers.push_back({.name = "router",
                            .switches = positions_,
                            .ports_down = spec_.concentration,
                            .ports_up = static_cast<std::int64_t>(2 * dimensions()),
                            .cables_down = static_cast<std::int64_t>(endpoints)});
  }
  result.cables = cables_;
  double mean_with_self = 0;
  double diameter = 0;
  for (std::size_t d = 0; d < dimensions(); ++d) {
    const double k = spec_.sides[d];
    const bool ring = spec_.wrap[d] && spec_.sides[d] > 2;
    // Mean distance over all ordered pairs, a position with itself included: k/4 (even) or (k^2 - 1)/4k (odd) on a
    // ring, (k - 1/k)/3 on a line (Dally and Towles, Principles and Practices of Interconnection Networks, 2004,
    // section 3).
    if (ring) {
      mean_with_self += spec_.sides[d] % 2 == 0 ? k / 4 : (k * k - 1) / (4 * k);
      const std::uint32_t farthest = spec_.sides[d] / 2;
      diameter += farthest;
    } else {
      mean_with_self += (k - 1 / k) / 3;
      diameter += k - 1;
    }
  }
  result.diameter_hops = endpoints > 1 ? diameter + attach_hops : 0;
  result.mean_hops = endpoints > 1 ? mean_with_self * endpoints / (endpoints - 1) + attach_hops : 0;
  // A cut across one side of length k severs N/k lines once, or rings twice. It halves the positions when k is even;
  // when an odd side would be the thinnest, the balanced cut has a step in it and no such closed form.
  std::int64_t even = -1;
  std::int64_t odd = -1;
  for (std::size_t d = 0; d < dimensions(); ++d) {
    if (spec_.sides[d] == 1) continue;
    const std::int64_t cut = std::int64_t{positions_} / spec_.sides[d] * (spec_.wrap[d] && spec_.sides[d] > 2 ? 2 : 1);
    std::int64_t& best = spec_.sides[d] % 2 == 0 ? even : odd;
    if (best < 0 || cut < best) best = cut;
  }
  if (even >= 0 && (odd < 0 || even <= odd)) {
    result.bisection_links = even;
    result.bisection = link_rate_ * static_cast<double>(even);
  }
  return result;
}

std::unique_ptr<Fabric> build(const FabricContext& context, const Settings& settings) {
  return std::make_unique<Torus>(context, read_torus(settings, context));
}

}  // namespace

extern constinit const FabricEntry kTorus{"torus", "a torus or mesh of any dimensions, between endpoints or routers",
                                          kSchema, build};

}  // namespace clustersim
