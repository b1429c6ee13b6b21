#pragma once

#include <lua.hpp>
#include <optional>

#include "base/random.h"
#include "base/thread_pool.h"
#include "cluster/cluster.h"
#include "features/features.h"
#include "graph/graph.h"
#include "lua/host/bound.h"
#include "lua/host/check.h"
#include "lua/host/structs.h"
#include "selection/selection.h"
#include "simulator/analysis.h"
#include "simulator/batch.h"
#include "simulator/bounds.h"
#include "simulator/pricer.h"
#include "strategy/schedule.h"
#include "strategy/strategy.h"

// The engine as Lua sees it: the module `trinity.core`, one open_<folder> per folder. Scripts use
// `require 'trinity'`, which wraps it.

namespace trinity {
class MeshBounder;
struct AgentOptions;
}

namespace trinity::lua {

/// A problem with the simulators of all threads and their results.
struct BoundProblem {
  BoundProblem(std::shared_ptr<const Problem> bound, ThreadPool& pool)
      : problem(std::move(bound)), batch(*problem, pool) {}
  std::shared_ptr<const Problem> problem;
  BatchSimulator batch;
  std::vector<int32_t> placements;
  std::vector<Plan> plans;
  std::vector<Metrics> metrics;
  std::optional<Bounds> bounds;  // of one micro-batch, once asked for
  std::unique_ptr<StrategyPricer> pricer;  // once a strategy that lowers is simulated
  std::shared_ptr<MeshBounder> bounder;    // once a bound of one is asked for
};

/// A simulated step with the plan that it belongs to.
struct BoundTimeline {
  std::shared_ptr<const Problem> problem;
  std::vector<int32_t> placement;
  Metrics metrics;
  Timeline timeline;
  std::optional<CriticalPath> path;  // once asked for
};

/// The features of a problem's colocation units, inputs of policies.
struct BoundFeatures {
  UnitGraph units;
  UnitFeatures features;
  std::vector<double> position;  // see work_position()
  std::vector<double> time_s;    // see unit_times_s()
};

template <>
inline constexpr const char* kTypeName<GraphBuilder> = "graph builder";
template <>
inline constexpr const char* kTypeName<const Graph> = "graph";
template <>
inline constexpr const char* kTypeName<const Cluster> = "cluster";
template <>
inline constexpr const char* kTypeName<BoundProblem> = "problem";
template <>
inline constexpr const char* kTypeName<const FixedSchedule> = "schedule";
template <>
inline constexpr const char* kTypeName<BoundTimeline> = "timeline";
template <>
inline constexpr const char* kTypeName<BoundFeatures> = "features";
template <>
inline constexpr const char* kTypeName<RandomStream> = "random stream";
template <>
inline constexpr const char* kTypeName<const SelectionProblem> = "selection problem";

/// The pool that all work of the process shares; made on first use.
ThreadPool& shared_pool();
/// The set-up that LibTorch needs in every thread that uses it: called now on this thread and on
/// the pool's, and on all that start later.
void set_thread_setup(void (*setup)());
/// Calls what was set, if anything was.
void set_up_thread();
/// Sets the number of its threads (0: one per core). Throws ArgumentError once the pool exists.
void set_threads(int threads);

/// A placement of a graph (1-based device per operator, an int32 array) at `index`.
std::span<const int32_t> placement_entries(lua_State* L, int index, const Graph& graph);
/// Reads a placement at `index`, 0-based and checked; into `out`.
std::vector<int32_t> placement_arg(lua_State* L, int index, const Problem& problem);
void placement_arg(lua_State* L, int index, const Problem& problem, int32_t* out);
/// Reads a placement, or {placement, schedule}, at `index`; the placement goes into `placement`.
Plan plan_arg(lua_State* L, int index, const Problem& problem, std::span<int32_t> placement);
/// Reads what says how a plan is scheduled ({schedule=, micro_batches=, priority=, order=, tasks=,
/// stage=}) at `index`, checked; the default for nil.
ScheduleSpec schedule_arg(lua_State* L, int index, const Problem& problem);
/// Reads what says how a strategy is the same for all layers ({mesh=, schedule=, micro_batches=,
/// virtual_stages=, stages=, recompute=, bucket_bytes=}) at `index`.
Parallelism parallelism_arg(lua_State* L, int index);
/// Reads the rows of an order of a pipeline (strategy/own_order.h) at `index`.
PipelineOrder order_arg(lua_State* L, int index);
/// Pushes such a table, without what has its default.
void push_parallelism(lua_State* L, const Parallelism& given);
/// Reads a strategy that lowers at `index`: such a table, or { placement =, splits =, schedule = }.
Strategy strategy_arg(lua_State* L, int index, const Problem& problem);
/// Reads the seconds above which strategies are given up at `index`, in nanoseconds.
int64_t limit_arg(lua_State* L, int index);
/// Reads scalars by name, and groups of such, of the table at `index`.
Scalars scalars_arg(lua_State* L, int index, const char* owner);
/// Reads a list of { operator =, factors =, copies =, devices = } at `index`.
Splits splits_arg(lua_State* L, int index, const Graph& graph, int32_t devices);
/// Pushes such a list of the operators that are split.
void push_splits(lua_State* L, const Splits& splits);
/// A number, a string, true or false on top of the stack.
Scalar scalar_arg(lua_State* L, const char* name);
/// Pushes such a table; nil for the default.
void push_schedule(lua_State* L, const ScheduleSpec& spec);
/// Bytes by owner's name.
std::map<std::string, int64_t> named(const OwnedBytes& owned);
/// Reads numbers that scripts count from 1 (an int32 array or a list of integers from `low` to
/// `high`); they count from 0 in the result.
std::vector<int32_t> indices_arg(lua_State* L, int index, const std::string& owner, int64_t low, int64_t high);
/// Writes metrics into the FFI struct at `index`, which must have space for all devices.
void fill_metrics(lua_State* L, int index, const Metrics& metrics);

/// The options of features among `fields`: depth_waves, raw_time, mean_output_size, depth_feature,
/// node2vec = {...} or false.
FeatureOptions feature_options(lua_State* L, Fields& fields, FeatureOptions options);

/// Reads the options of Trinity's policy, its preset and seed among them.
AgentOptions agent_options_arg(lua_State* L, Fields& fields);

/// Each adds its functions to the table on top of the stack and registers its types.
void open_base(lua_State* L);
void open_graph(lua_State* L);
void open_algorithms(lua_State* L);  // more methods of graphs, after open_graph()
void open_formats(lua_State* L);
void open_cluster(lua_State* L);
void open_problem(lua_State* L);
void open_simulator(lua_State* L);
void open_search(lua_State* L);
void open_ranker(lua_State* L);
void open_moves(lua_State* L);  // and more methods of problems, after open_problem()
void open_selection(lua_State* L);
void open_pase(lua_State* L);
void open_splits(lua_State* L);
void open_strategy(lua_State* L);  // and more methods of problems, after open_problem()
void open_parallel(lua_State* L);
void open_features(lua_State* L);
void open_pipeline(lua_State* L);
void open_run(lua_State* L);
/// The functions that need LibTorch (kTorchNames) are opened at their first use.
void open_late(lua_State* L);

/// Opens `trinity.core` as package.preload wants it.
int open_core(lua_State* L);

}  // namespace trinity::lua
