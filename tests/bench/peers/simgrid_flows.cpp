// The traffic of the comparison on SimGrid (S4U): its own fat-tree and torus zones, plain max-min sharing.
//
// CM02 with every correction factor off. Latency must be 0, because CM02 weighs a flow by 1 / the latency of its route.
// SPLITDUPLEX makes two links of a cable, each with the whole bandwidth. --cfg=KEY:VALUE goes to SimGrid.
#include <simgrid/s4u.hpp>
// version.h cannot be the first of SimGrid's.
#include <simgrid/version.h>

#include <unistd.h>

#include <span>
#include <string>
#include <vector>

#include "sim/errors.hpp"
#include "tests/bench/peers/paths.hpp"
#include "tests/bench/peers/patterns.hpp"
#include "tests/bench/peers/program.hpp"

namespace clustersim::peers {
namespace {

namespace s4u = simgrid::s4u;

std::string program_name() {
  int major = 0;
  int minor = 0;
  int patch = 0;
  sg_version_get(&major, &minor, &patch);
  return fmt::format("simgrid-{}.{}", major, minor);
}

class FlowRun {
 public:
  FlowRun(s4u::Engine& engine, const Options& options, const std::string& driver, double limit)
      : engine_(engine),
        options_(options),
        pattern_(options.traffic),
        report_(program_name(), options),
        driver_(driver) {
    build_platform();
    s4u::Engine::on_time_advance_cb([this, limit](double) {
      ++steps_;
      if (report_.run_seconds() < limit) return;
      // Actors cannot be stopped from here; the system takes everything back.
      report_.finish(s4u::Engine::get_clock(), steps_, "limit");
      _exit(0);
    });
    if (driver == "central") {
      drive_centrally();
    } else if (driver == "hosts") {
      drive_by_host();
    } else if (driver == "ranks") {
      drive_by_rank();
    } else {
      bad_input("unknown driver \"{}\"; there are: central, hosts, ranks", driver);
    }
  }

  void run() {
    report_.start_run();
    engine_.run();
    if (driver_ == "ranks") report_ranks();
    report_.finish(s4u::Engine::get_clock(), steps_);
  }

 private:
  void build_platform() {
    const s4u::ClusterCallbacks callbacks([this](s4u::NetZone* zone, const std::vector<unsigned long>&,
                                                 unsigned long id) {
      hosts_.push_back(zone->create_host("h" + std::to_string(id), 1e9)->seal());
      return std::make_pair(hosts_.back()->get_netpoint(), static_cast<simgrid::kernel::routing::NetPoint*>(nullptr));
    });
    const std::uint32_t hosts = options_.traffic.hosts;
    const double bandwidth = options_.traffic.bandwidth;
    const auto duplex = s4u::Link::SharingPolicy::SPLITDUPLEX;
    if (options_.topology == "fat-tree") {
      const std::uint32_t m = fat_tree_half_radix(hosts);
      const s4u::FatTreeParams shape{3, {m, m, hosts / (m * m)}, {1, m, m}, {1, 1, 1}};
      s4u::create_fatTree_zone("network", nullptr, shape, callbacks, bandwidth, 0, duplex)->seal();
    } else if (options_.topology == "torus") {
      const auto sizes = torus_dimensions(hosts);
      const std::vector<unsigned long> shape(sizes.begin(), sizes.end());
      s4u::create_torus_zone("network", nullptr, shape, callbacks, bandwidth, 0, duplex)->seal();
    } else {
      bad_input("unknown topology \"{}\"; there are: fat-tree, torus", options_.topology);
    }
    engine_.seal_platform();
  }

  static void wait_for(const Flow& flow, double phase_start) {
    if (flow.start.count() > 0) s4u::this_actor::sleep_until(phase_start + to_seconds(flow.start));
  }

  void record(std::size_t flow, const s4u::CommPtr& transfer) {
    times_[flow] = {transfer->get_start_time(), transfer->get_finish_time()};
  }

  /// One actor starts every flow and waits for each.
  void drive_centrally() {
    s4u::Actor::create("driver", hosts_.front(), [this] {
      std::vector<s4u::CommPtr> transfers;
      for (std::size_t phase = 0; phase < pattern_.phases(); ++phase) {
        pattern_.next(flows_);
        times_.resize(flows_.size());
        const double phase_start = s4u::Engine::get_clock();
        transfers.clear();
        for (const Flow& flow : flows_) {
          wait_for(flow, phase_start);
          transfers.push_back(s4u::Comm::sendto_init(hosts_[flow.source], hosts_[flow.destination]));
          transfers.back()->set_payload_size(static_cast<std::uint64_t>(flow.bytes))->start();
        }
        for (std::size_t i = 0; i < transfers.size(); ++i) {
          transfers[i]->wait();
          record(i, transfers[i]);
        }
        report_.add_phase(flows_, times_);
      }
    });
  }

  /// One sending actor per host, mailboxes that receive by themselves, a barrier around each phase.
  void drive_by_host() {
    barrier_ = s4u::Barrier::create(options_.traffic.hosts + 1);
    flows_of_host_.resize(hosts_.size());
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      mailboxes_.push_back(s4u::Mailbox::by_name("m" + std::to_string(host)));
    }
    for (std::size_t host = 0; host < hosts_.size(); ++host) {
      const auto actor =
          s4u::Actor::create("h" + std::to_string(host), hosts_[host], [this, host] { send_phases(host); });
      mailboxes_[host]->set_receiver(actor);
    }
    s4u::Actor::create("driver", hosts_.front(), [this] {
      for (std::size_t phase = 0; phase < pattern_.phases(); ++phase) {
        pattern_.next(flows_);
        times_.resize(flows_.size());
        for (auto& flows : flows_of_host_) flows.clear();
        for (std::size_t i = 0; i < flows_.size(); ++i) flows_of_host_[flows_[i].source].push_back(i);
        barrier_->wait();
        barrier_->wait();
        report_.add_phase(flows_, times_);
      }
    });
  }

  void send_phases(std::size_t host) {
    static int token;
    std::vector<s4u::CommPtr> transfers;
    for (std::size_t phase = 0; phase < pattern_.phases(); ++phase) {
      barrier_->wait();
      const double phase_start = s4u::Engine::get_clock();
      const std::vector<std::size_t>& mine = flows_of_host_[host];
      for (const std::size_t i : mine) {
        wait_for(flows_[i], phase_start);
        transfers.push_back(
            mailboxes_[flows_[i].destination]->put_async(&token, static_cast<std::uint64_t>(flows_[i].bytes)));
      }
      for (std::size_t i = 0; i < mine.size(); ++i) {
        transfers[i]->wait();
        record(mine[i], transfers[i]);
      }
      transfers.clear();
      barrier_->wait();
    }
  }

  /// Ring all-reduce only: an actor per rank sends and receives step by step, without a barrier.
  void drive_by_rank() {
    const std::uint32_t ranks = options_.traffic.hosts;
    if (options_.traffic.pattern != "ring-all-reduce") bad_input("the driver \"ranks\" is for ring-all-reduce");
    for (std::uint32_t rank = 0; rank < ranks; ++rank) {
      s4u::Actor::create("r" + std::to_string(rank), hosts_[rank], [this, rank] { pass_parts(rank); });
    }
    times_.resize(pattern_.phases() * ranks);
  }

  void pass_parts(std::uint32_t rank) {
    static int token;
    const std::uint32_t ranks = options_.traffic.hosts;
    const auto part = static_cast<std::uint64_t>(options_.traffic.bytes) / ranks;
    auto* const to = s4u::Mailbox::by_name("m" + std::to_string((rank + 1) % ranks));
    auto* const from = s4u::Mailbox::by_name("m" + std::to_string(rank));
    int* received = nullptr;
    for (std::size_t step = 0; step < pattern_.phases(); ++step) {
      const s4u::CommPtr receiving = from->get_async<int>(&received);
      const s4u::CommPtr sending = to->put_async(&token, part);
      receiving->wait();
      sending->wait();
      record(step * ranks + rank, sending);
    }
  }

  void report_ranks() {
    for (std::size_t step = 0; step < pattern_.phases(); ++step) {
      pattern_.next(flows_);
      report_.add_phase(flows_, std::span(times_).subspan(step * flows_.size(), flows_.size()));
    }
  }

  s4u::Engine& engine_;
  Options options_;
  Pattern pattern_;
  Report report_;
  std::string driver_;
  std::vector<s4u::Host*> hosts_;
  std::uint64_t steps_ = 0;
  std::vector<Flow> flows_;  // of the present phase, as are the times
  std::vector<Times> times_;
  s4u::BarrierPtr barrier_;
  std::vector<s4u::Mailbox*> mailboxes_;
  std::vector<std::vector<std::size_t>> flows_of_host_;
};

}  // namespace
}  // namespace clustersim::peers

int main(int argc, char** argv) {
  using namespace clustersim::peers;
  simgrid::s4u::Engine engine(&argc, argv);
  for (const char* setting : {"network/model:CM02", "network/crosstraffic:0", "network/TCP-gamma:1e30",
                              "network/bandwidth-factor:1", "network/latency-factor:1", "network/weight-S:0"}) {
    simgrid::s4u::Engine::set_config(setting);
  }
  std::string driver = "central";
  std::string limit = "1e9";
  return run_program(argc, argv, "Traffic on SimGrid",
                     {{"--driver", &driver, "central, hosts or ranks"},
                      {"--limit", &limit, "Processor seconds after which a run is given up"}},
                     [&](const Options& options) { FlowRun(engine, options, driver, std::stod(limit)).run(); });
}
