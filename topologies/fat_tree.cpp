// Fat trees: the three ways to write one (sized from the switch radix, tier by tier, k-ary) and the table entry.
#include <algorithm>
#include <array>
#include <cmath>

#include "sim/errors.hpp"
#include "topologies/fat_tree_plan.hpp"

namespace clustersim {
namespace {

constexpr double kMostChildren = 1e6;
constexpr std::size_t kMostTiers = 8;

constexpr std::array kTierSchema{
    Parameter{.name = "down",
              .kind = ValueKind::integer,
              .help = "children per switch; may be left out in the last tier: as many as needed",
              .minimum = 1,
              .maximum = kMostChildren},
    Parameter{.name = "up",
              .kind = ValueKind::integer,
              .help = "parents per switch; default: from oversubscription",
              .minimum = 1,
              .maximum = kMostChildren},
    Parameter{.name = "parallel",
              .kind = ValueKind::integer,
              .default_text = "1",
              .help = "cables to each parent",
              .minimum = 1,
              .maximum = kMostChildren},
    Parameter{.name = "oversubscription",
              .kind = ValueKind::number,
              .help = "capacity down over capacity up, from which up is rounded; default 1 (non-blocking)",
              .minimum = 1,
              .maximum = kMostChildren},
    Parameter{.name = "link_rate",
              .kind = ValueKind::rate,
              .help = "of the cables to the tier above; default: the network's",
              .minimum = 1},
    Parameter{.name = "link_latency",
              .kind = ValueKind::duration,
              .help = "of the cables to the tier above; default: the network's",
              .minimum = 0,
              .maximum = 1},
};

constexpr std::array<std::string_view, 3> kRails{"none", "optimized", "only"};

constexpr std::array kSchema{
    Parameter{.name = "levels",
              .kind = ValueKind::integer,
              .help = "tiers of switches, sized from radix; default: as few as hold the endpoints",
              .minimum = 1,
              .maximum = 3},
    Parameter{.name = "radix",
              .kind = ValueKind::integer,
              .default_text = "64",
              .help = "ports per switch",
              .minimum = 2,
              .maximum = 65536},
    Parameter{.name = "oversubscription",
              .kind = ValueKind::numbers,
              .help = "capacity down over capacity up, per tier from the leaves; default 1 (non-blocking)",
              .minimum = 1,
              .maximum = kMostChildren},
    Parameter{.name = "tiers",
              .kind = ValueKind::tables,
              .help = "the tree written out, leaf tier first, instead of levels and radix",
              .nested = kTierSchema},
    Parameter{.name = "down",
              .kind = ValueKind::integers,
              .help = "children per switch of each tier, as arrays instead of tiers",
              .minimum = 1,
              .maximum = kMostChildren},
    Parameter{.name = "up",
              .kind = ValueKind::integers,
              .help = "parents per switch of each tier but the last",
              .minimum = 1,
              .maximum = kMostChildren},
    Parameter{.name = "parallel",
              .kind = ValueKind::integers,
              .help = "cables to each parent, for each tier but the last; default 1",
              .minimum = 1,
              .maximum = kMostChildren},
    Parameter{.name = "k",
              .kind = ValueKind::integer,
              .help = "the k-ary fat tree of k-port switches, three tiers, k^3/4 endpoints",
              .minimum = 2,
              .maximum = 1024},
    Parameter{.name = "rails",
              .kind = ValueKind::choice,
              .default_text = "none",
              .help = "optimized: a leaf serves one NIC of many nodes; only: a separate fabric per NIC",
              .choices = kRails},
};

/// What an oversubscription ratio leaves for the way up, in whole parents, at least one.
std::int64_t parents_from_ratio(double down_capacity, double ratio, double capacity_per_parent) {
  return std::max<std::int64_t>(1, std::llround(down_capacity / (ratio * capacity_per_parent)));
}

double capacity_below(const FatTreeSpec& spec, const FatTreeTier& tier) {
  const double down = static_cast<double>(tier.down);
  if (spec.tiers.empty()) return down * spec.link_rate.value();
  const FatTreeTier& below = spec.tiers.back();
  return down * static_cast<double>(below.parallel) * below.up_rate.value();
}

void read_tiers(const Settings& settings, FatTreeSpec& spec) {
  const std::vector<Settings>& tables = settings.tables("tiers");
  if (tables.empty()) settings.reject("tiers", "is empty; expected at least one tier such as {{down = 32}}");
  if (tables.size() > kMostTiers) settings.reject("tiers", "has {} tiers; at most {}", tables.size(), kMostTiers);
  for (const Settings& table : tables) {
    const bool last = &table == &tables.back();
    FatTreeTier tier{.up_rate = spec.link_rate, .up_latency = spec.link_latency};
    if (table.given("down")) {
      tier.down = table.integer("down");
    } else if (!last) {
      table.reject("down", "is missing; only the last tier may leave it out");
    }
    if (last) {
      for (const std::string_view key : {"up", "parallel", "oversubscription", "link_rate", "link_latency"}) {
        if (table.given(key)) table.reject(key, "the last tier has nothing above it; write this in the tier below");
      }
      spec.tiers.push_back(tier);
      return;
    }
    tier.parallel = table.integer("parallel");
    if (table.given("link_rate")) tier.up_rate = table.rate("link_rate");
    if (table.given("link_latency")) tier.up_latency = table.duration("link_latency");
    if (table.given("up")) {
      if (table.given("oversubscription"))
        table.reject("oversubscription", "give either up or oversubscription, not both");
      tier.parents = table.integer("up");
    } else {
      const double ratio = table.given("oversubscription") ? table.number("oversubscription") : 1.0;
      tier.parents = parents_from_ratio(capacity_below(spec, tier), ratio,
                                        static_cast<double>(tier.parallel) * tier.up_rate.value());
    }
    spec.tiers.push_back(tier);
  }
}

void read_arrays(const Settings& settings, FatTreeSpec& spec) {
  const std::vector<std::int64_t>& down = settings.integers("down");
  if (down.empty() || down.size() > kMostTiers) {
    settings.reject("down", "has {} entries; expected one for each tier, 1 to {}", down.size(), kMostTiers);
  }
  if (settings.given("up") && settings.given("oversubscription")) {
    settings.reject("oversubscription", "give either up or oversubscription, not both");
  }
  const std::size_t joints = down.size() - 1;
  const auto check_length = [&](std::string_view key, std::size_t length) {
    if (length != joints) {
      settings.reject(key, "has {} entries; expected {}: one for each tier of down but the last", length, joints);
    }
  };
  if (settings.given("up")) check_length("up", settings.integers("up").size());
  if (settings.given("parallel")) check_length("parallel", settings.integers("parallel").size());
  if (settings.given("oversubscription")) check_length("oversubscription", settings.numbers("oversubscription").size());
  for (std::size_t t = 0; t < down.size(); ++t) {
    FatTreeTier tier{.down = down[t], .up_rate = spec.link_rate, .up_latency = spec.link_latency};
    if (t < joints) {
      if (settings.given("parallel")) tier.parallel = settings.integers("parallel")[t];
      const double ratio = settings.given("oversubscription") ? settings.numbers("oversubscription")[t] : 1.0;
      tier.parents = settings.given("up")
                         ? settings.integers("up")[t]
                         : parents_from_ratio(capacity_below(spec, tier), ratio,
                                              static_cast<double>(tier.parallel) * tier.up_rate.value());
    }
    spec.tiers.push_back(tier);
  }
}

void read_k_ary(const Settings& settings, FatTreeSpec& spec) {
  const std::int64_t k = settings.integer("k");
  if (k % 2 != 0) settings.reject("k", "must be even; did you mean {}?", k + 1);
  const FatTreeTier half{.down = k / 2, .parents = k / 2, .up_rate = spec.link_rate, .up_latency = spec.link_latency};
  spec.tiers = {half, half, {.down = k}};
}

void read_radix(const Settings& settings, FatTreeSpec& spec) {
  spec.radix = settings.integer("radix");
  if (settings.given("levels")) spec.levels = settings.integer("levels");
  if (!settings.given("oversubscription")) return;
  spec.oversubscription = settings.numbers("oversubscription");
  const std::size_t most = static_cast<std::size_t>(spec.levels > 0 ? spec.levels : 3) - 1;
  if (spec.oversubscription.size() > most) {
    settings.reject("oversubscription", "has {} entries; expected at most {}: one for each tier but the last",
                    spec.oversubscription.size(), most);
  }
}

/// The one way of writing the tree that was used; the others must not be mixed in.
std::string_view chosen_form(const Settings& settings) {
  constexpr std::array<std::string_view, 3> kExplicit{"tiers", "down", "k"};
  std::string_view chosen;
  for (const std::string_view key : kExplicit) {
    if (!settings.given(key)) continue;
    if (!chosen.empty()) settings.reject(key, "cannot stand beside {}: each describes the whole tree", chosen);
    chosen = key;
  }
  const auto refuse = [&](std::string_view key, std::string_view with) {
    if (settings.given(key)) settings.reject(key, "has no meaning beside {}", with);
  };
  if (!chosen.empty()) {
    refuse("levels", chosen);
    refuse("radix", chosen);
    if (chosen != "down") refuse("oversubscription", chosen);
  }
  if (chosen != "down") {
    refuse("up", chosen.empty() ? "levels and radix; write down as well" : chosen);
    refuse("parallel", chosen.empty() ? "levels and radix; write down as well" : chosen);
  }
  return chosen;
}

FatTreeSpec read_fat_tree(const Settings& settings, const FabricContext& context) {
  FatTreeSpec spec;
  spec.link_rate = context.link_rate;
  spec.link_latency = context.link_latency;
  const std::string& rails = settings.text("rails");
  spec.rails = rails == "none" ? Rails::none : rails == "optimized" ? Rails::optimized : Rails::only;
  const std::string_view form = chosen_form(settings);
  if (form == "tiers") {
    read_tiers(settings, spec);
  } else if (form == "down") {
    read_arrays(settings, spec);
  } else if (form == "k") {
    read_k_ary(settings, spec);
  } else {
    read_radix(settings, spec);
  }
  return spec;
}

std::unique_ptr<Fabric> build(const FabricContext& context, const Settings& settings) {
  return make_fat_tree(context, read_fat_tree(settings, context));
}

}  // namespace

extern constinit const FabricEntry kFatTree{
    "fat-tree", "switches in tiers: sized from the radix, written out tier by tier, or k-ary; with or without rails",
    kSchema, build};

}  // namespace clustersim
