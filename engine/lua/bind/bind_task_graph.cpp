#include "lua/bind/module.h"
#include "search/placement/task_graph.h"

// Task graphs for list schedulers written in Lua.

namespace trinity::lua {
namespace {

template <class Member>
void set_column(lua_State* L, const char* key, const TaskGraph& graph, Member member, int add) {
  std::vector<double> column;
  for (const auto& edge : graph.edges) column.push_back(static_cast<double>(edge.*member) + add);
  set_numbers(L, key, column);
}

/// task_graph(problem) -> the fields of lib/trinity/search/task_graph.lua that are lists. Tasks, devices, edges, units
/// and tensors count from 1.
int task_graph(lua_State* L) {
  const auto problem = object_arg<BoundProblem>(L, 1, "problem").problem;
  const auto graph = make_task_graph(*problem);
  const auto model = problem->rules().memory;
  std::vector<int64_t> output_bytes, workspace_bytes, fixed_bytes, capacity_bytes;
  for (int32_t o = 0; o < graph.tasks; ++o) {
    int64_t sum = 0;
    for (int32_t i = problem->first_output(o); i < problem->first_output(o + 1); ++i)
      sum += problem->held_bytes()[i];
    const bool slots = model == MemoryModel::slots;
    output_bytes.push_back(model == MemoryModel::none ? 0 : sum);
    workspace_bytes.push_back(slots ? problem->workspace_bytes(o) : 0);
    fixed_bytes.push_back(slots ? problem->fixed_bytes(o) : 0);
  }
  for (int32_t d = 0; d < graph.processors; ++d)
    capacity_bytes.push_back(problem->cluster().room_bytes(d));
  lua_newtable(L);
  set_numbers(L, "cost_ns", graph.cost);
  set_column(L, "edge_from", graph, &TaskGraph::Edge::from, 1);
  set_column(L, "edge_to", graph, &TaskGraph::Edge::to, 1);
  set_column(L, "edge_tensor", graph, &TaskGraph::Edge::tensor, 1);
  set_column(L, "edge_bytes", graph, &TaskGraph::Edge::bytes, 0);
  set_numbers(L, "in_edges", graph.in, 1);
  set_numbers(L, "first_in", graph.in_first, 1);
  set_numbers(L, "first_out", graph.out_first, 1);
  set_numbers(L, "latency_ns", graph.latency);
  set_numbers(L, "bytes_per_ns", graph.rate);
  set_numbers(L, "unit", graph.group, 1);
  push_list(L, graph.follows, [&](bool follows) { lua_pushboolean(L, follows); });
  lua_setfield(L, -2, "follows");
  set_numbers(L, "output_bytes", output_bytes);
  set_numbers(L, "workspace_bytes", workspace_bytes);
  set_numbers(L, "fixed_bytes", fixed_bytes);
  set_numbers(L, "capacity_bytes", capacity_bytes);
  return 1;
}

constexpr luaL_Reg kTaskGraph[] = {TRINITY_BIND("task_graph", task_graph)};

}  // namespace

void open_task_graph(lua_State* L) { register_functions(L, kTaskGraph); }

}  // namespace trinity::lua
