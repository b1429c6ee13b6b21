#include "learn/torch/agent.h"
#include "lua/bind/module.h"
#include "lua/bind_torch/job.h"
#include "lua/bind_torch/open.h"

namespace trinity::lua {

template <>
inline constexpr const char* kTypeName<Agent> = "agent";

namespace {

/// agent(problem, options [, job]) -> agent, share of weights that came from the file `load`. In a
/// job its ranks share the samples of every batch.
auto agent_new(lua_State* L, BoundProblem& bound, Options<"agent options"> fields) {
  const auto options = agent_options_arg(L, fields);
  const auto load = fields.string("load", ""), resume = fields.string("resume", "");
  fields.refuse_unknown();
  if (!load.empty() && !resume.empty())
    throw ArgumentError("agent options: expected 'load' or 'resume', got both");
  AgentPeers peers;
  if (!lua_isnoneornil(L, 3)) {
    const auto job = handle_arg<Job>(L, 3);
    peers = {job->rank(), job->size(), [job](std::span<float> values) { job->sum(values); },
             [job](std::span<double> values) { job->sum(values); }};
  }
  auto agent = std::make_shared<Agent>(bound.problem, options, shared_pool(), std::move(peers));
  double loaded = 0;
  if (!load.empty()) loaded = agent->load(load);
  if (!resume.empty()) agent->resume(resume);
  return std::tuple(std::move(agent), loaded);
}

/// Writes placements into the list of int32 arrays at `index`.
void fill_placements(lua_State* L, int index, std::span<const int32_t> placements) {
  const size_t count = lua_objlen(L, index);
  TRINITY_CHECK_LT(size_t{0}, count);
  const size_t n = placements.size() / count;
  for_each(L, index, [&](int i) {
    fill_from_1(L, lua_gettop(L), "placements",
                placements.subspan(n * static_cast<size_t>(i - 1), n));
  });
}

/// agent:share() -> the first sample of a batch that is sampled here (from 1), how many are
auto agent_share(const Agent& agent) { return std::tuple(agent.first_sample() + 1, agent.own_samples()); }

/// agent:sample(placements): samples a batch into a list of int32 arrays, of the length that share() says.
void agent_sample(lua_State* L, Agent& agent, Table<"placements">) {
  const auto count = static_cast<int32_t>(lua_objlen(L, 2));
  if (count != agent.own_samples())
    throw WrongArgument(2, "placements", "expected {} arrays, got {}", agent.own_samples(), count);
  fill_placements(L, 2, agent.sample());
}

/// agent:greedy(placements): the most likely placement, into a list of one array.
void agent_greedy(lua_State* L, Agent& agent, Table<"placements">) { fill_placements(L, 2, agent.greedy()); }

/// agent:update(rewards [, failing [, slopes]]) -> report; rewards is a double array of the batch's
/// length, failing an int32 array with 1 where a sample failed, slopes a double array with three
/// numbers a sample: slopes of the reward by step time, communication and memory.
auto agent_update(lua_State* L, Agent& agent) {
  const auto rewards = numbers_arg(L, 2, "rewards");
  std::vector<uint8_t> failing;
  if (!lua_isnoneornil(L, 3))
    for (const int32_t mark : integers_arg(L, 3, "failing")) failing.push_back(mark != 0 ? 1 : 0);
  std::vector<RewardSlopes> slopes;
  if (!lua_isnoneornil(L, 4)) {
    const auto given = numbers_arg(L, 4, "slopes");
    TRINITY_CHECK_EQ(given.size() % 3, size_t{0});
    for (size_t i = 0; i + 2 < given.size(); i += 3)
      slopes.push_back({given[i], given[i + 1], given[i + 2]});
  }
  const auto report = agent.update(rewards, failing, slopes);
  return record("mean_reward", report.mean_reward, "loss", report.loss, "baseline", report.baseline, "entropy_groups",
                report.entropy_groups, "entropy_devices", report.entropy_devices, "clipped_share",
                report.clipped_share, "gradient_norm", report.gradient_norm, "learning_rate", report.learning_rate);
}

/// The list of int32 arrays at `index` as 0-based devices, one placement after the other.
std::vector<int32_t> read_placements(lua_State* L, int index) {
  std::vector<int32_t> all;
  for_each(L, index, [&](int) {
    for (const int32_t device : integers_arg(L, lua_gettop(L), "placements"))
      all.push_back(device - 1);
  });
  return all;
}

/// agent:imitate(placements, settings) -> report
auto agent_imitate(lua_State* L, Agent& agent, Table<"placements">) {
  ImitationOptions how;
  std::vector<double> weights;
  if (!lua_isnoneornil(L, 3)) {
    table_arg(L, 3, "settings");
    Fields fields(L, 3, "settings");
    fields.take("steps", how.steps, "learning_rate", how.learning_rate, "smoothing", how.smoothing);
    const auto read = [&](int) { weights.push_back(lua_tonumber(L, -1)); };
    fields.table("weights", [&] { for_each(L, lua_gettop(L), read); });
    fields.refuse_unknown();
  }
  const auto report = agent.imitate(read_placements(L, 2), weights, how);
  return record("steps", report.steps, "log_likelihood_groups", report.log_likelihood_groups,
                "log_likelihood_devices", report.log_likelihood_devices, "agreement", report.agreement);
}

/// agent:save(path)
void agent_save(const Agent& agent, Text<"path"> path) { agent.save(path); }

auto agent_summary(const Agent& agent) {
  return record("groups", agent.groups(), "units", agent.units(), "samples", agent.options().samples,
                "gradient_steps", agent.gradient_steps(), "parameters", agent.parameter_count());
}

constexpr luaL_Reg kAgent[] = {
    TRINITY_BIND("share", agent_share), TRINITY_BIND("sample", agent_sample), TRINITY_BIND("greedy", agent_greedy),
    TRINITY_BIND("update", agent_update), TRINITY_BIND("imitate", agent_imitate),
    TRINITY_BIND("save", agent_save), TRINITY_BIND("summary", agent_summary)};
constexpr luaL_Reg kAgentFunctions[] = {TRINITY_BIND("agent", agent_new)};

}  // namespace

void open_agent(lua_State* L) {
  register_functions(L, kAgentFunctions);
  register_type<Agent>(L, kAgent);
}

}  // namespace trinity::lua
