#include "bench/simgrid.h"

#ifdef TRINITY_SIMGRID
#include <fmt/format.h>

#include <cmath>
#include <simgrid/s4u.hpp>
#include <simgrid/version.h>

namespace trinity::bench {
namespace {

namespace sg4 = simgrid::s4u;

// An amount of one takes a nanosecond, on a host as on a link, so that all amounts are whole.
constexpr double kPerSecond = 1e9;

class Installed : public SimGrid {
 public:
  explicit Installed(int devices) {
    auto* zone = sg4::create_full_zone("cluster");
    for (int d = 0; d < devices; ++d)
      hosts_.push_back(zone->create_host(fmt::format("device{}", d), kPerSecond));
    for (int from = 0; from < devices; ++from) {
      auto* link = zone->create_link(fmt::format("sender{}", from), kPerSecond)->seal();
      for (int to = 0; to < devices; ++to)
        if (from != to)
          zone->add_route(hosts_[from]->get_netpoint(), hosts_[to]->get_netpoint(), nullptr,
                          nullptr, {sg4::LinkInRoute(link)}, false);
    }
    zone->seal();
  }

  std::string version() const override {
    int major = 0, minor = 0, patch = 0;
    sg_version_get(&major, &minor, &patch);
    return fmt::format("{}.{}", major, minor);
  }

  int64_t step_ns(const TextbookGraph& graph, const SimGridRun& run) override {
    const auto executions = executed(graph, run);
    chain(executions, run);
    const auto transfers = sent(executions, graph, run);
    const double start_s = sg4::Engine::get_clock();
    for (const auto& execution : executions)
      if (execution->dependencies_solved()) execution->vetoable_start();
    engine_.run();
    return std::llround((sg4::Engine::get_clock() - start_s) * 1e9);
  }

 private:
  using Executions = std::vector<sg4::ExecPtr>;

  Executions executed(const TextbookGraph& graph, const SimGridRun& run) const {
    Executions result;
    for (size_t o = 0; o < graph.inputs.size(); ++o)
      result.push_back(sg4::Exec::init()
                           ->set_flops_amount(static_cast<double>(graph.cost_ns[o]))
                           ->set_host(hosts_[run.placement[o]]));
    return result;
  }

  template <class Activity>
  static void link(const Activity& before, const sg4::ActivityPtr& after) {
    if (after->get_dependencies().count(before) == 0) before->add_successor(after);
  }

  /// Operators of one device one after the other.
  void chain(const Executions& executions, const SimGridRun& run) const {
    Executions last(hosts_.size());
    for (const int op : run.order) {
      auto& before = last[run.placement[op]];
      if (before) link(before, executions[op]);
      before = executions[op];
    }
  }

  /// What is read on its device is a dependency, what is read elsewhere a transfer; those of one
  /// sender one after the other.
  std::vector<sg4::CommPtr> sent(const Executions& executions, const TextbookGraph& graph,
                                 const SimGridRun& run) const {
    std::vector<sg4::CommPtr> result, last(hosts_.size());
    for (const auto& [op, to] : run.transfers) {
      const int from = run.placement[op];
      auto transfer = sg4::Comm::sendto_init(hosts_[from], hosts_[to])
                          ->set_payload_size(static_cast<uint64_t>(graph.wire_ns[op]));
      link(executions[op], transfer);
      if (last[from]) link(last[from], transfer);
      last[from] = transfer;
      for (const int reader : graph.readers[op])
        if (run.placement[reader] == to) link(transfer, executions[reader]);
      result.push_back(transfer);
    }
    for (size_t op = 0; op < graph.readers.size(); ++op)
      for (const int reader : graph.readers[op])
        if (run.placement[reader] == run.placement[op]) link(executions[op], executions[reader]);
    return result;
  }

  /// Its simplest models: no factors of TCP on bandwidths, no traffic of acknowledgements.
  static sg4::Engine engine() {
    static std::string given[] = {"bench_simulator",
                                  "--log=root.thresh:critical",
                                  "--cfg=network/model:CM02",
                                  "--cfg=network/bandwidth-factor:1",
                                  "--cfg=network/latency-factor:1",
                                  "--cfg=network/weight-S:0",
                                  "--cfg=network/crosstraffic:0",
                                  "--cfg=surf/precision:1e-12"};
    static std::vector<char*> arguments;
    for (auto& argument : given) arguments.push_back(argument.data());
    int count = static_cast<int>(arguments.size());
    arguments.push_back(nullptr);
    return sg4::Engine(&count, arguments.data());
  }

  sg4::Engine engine_ = engine();
  std::vector<sg4::Host*> hosts_;
};

}  // namespace

std::unique_ptr<SimGrid> SimGrid::open(int devices) { return std::make_unique<Installed>(devices); }

}  // namespace trinity::bench

#else
namespace trinity::bench {
std::unique_ptr<SimGrid> SimGrid::open(int) { return nullptr; }
}  // namespace trinity::bench
#endif
