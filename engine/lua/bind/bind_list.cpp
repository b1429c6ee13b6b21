#include "base/index.h"
#include "learn/list_policy.h"
#include "lua/bind/bind_ranker.h"
#include "lua/bind/module.h"

namespace trinity::lua {

/// A list scheduler of a problem, without its weights.
struct BoundList {
  explicit BoundList(std::shared_ptr<const Problem> bound)
      : problem(std::move(bound)), space(*problem), list(*problem) {}
  std::shared_ptr<const Problem> problem;
  PlacementSpace space;
  LearnedList list;
};

template <>
inline constexpr const char* kTypeName<BoundList> = "list scheduler of a problem";
template <>
inline constexpr const char* kTypeName<ListPolicy> = "list scheduler";

namespace {

/// list_policy(members) -> policy; members: a list of lists of kListWeightCount numbers
int policy_new(lua_State* L) {
  table_arg(L, 1, "members");
  std::vector<std::vector<double>> members;
  for_each(L, 1, [&](int) {
    const int member = lua_gettop(L);
    table_arg(L, member, "member");
    members.emplace_back();
    for_each(L, member,
             [&](int) { members.back().push_back(number_arg(L, lua_gettop(L), "weight")); });
  });
  push_object(L, std::make_shared<ListPolicy>(list_policy(std::move(members))));
  return 1;
}

/// load_list_policy(path) -> policy, notes
int policy_load(lua_State* L) {
  auto saved = load_list_policy(string_arg(L, 1, "path"));
  push_object(L, std::make_shared<ListPolicy>(std::move(saved.policy)));
  push_notes(L, saved.notes);
  return 2;
}

/// policy:save(path, notes): notes are texts by name
int policy_save(lua_State* L) {
  save_list_policy(object_arg<ListPolicy>(L, 1), string_arg(L, 2, "path"), notes_arg(L, 3));
  return 0;
}

/// policy:members() -> list of lists of weights
int policy_members(lua_State* L) {
  lua_newtable(L);
  int number = 0;
  for (const auto& member : object_arg<ListPolicy>(L, 1).members) {
    push_numbers(L, member);
    lua_rawseti(L, -2, ++number);
  }
  return 1;
}

/// list_terms() -> names of terms, names of circumstances
int list_terms(lua_State* L) {
  const auto push = [&](std::string_view name) { lua_pushlstring(L, name.data(), name.size()); };
  push_list(L, kListTerms, push);
  push_list(L, kListCircumstances, push);
  return 2;
}

/// list_scheduler(problem) -> what policies build placements of it with
int list_new(lua_State* L) {
  push_object(L, std::make_shared<BoundList>(object_arg<BoundProblem>(L, 1, "problem").problem));
  return 1;
}

/// scheduler:build(policy, member, placement) -> seconds of the schedule itself, whether all fits
/// by its own count; member: from 1, or 0 for the best of all members and of one device alone
int list_build(lua_State* L) {
  const auto& self = object_arg<BoundList>(L, 1);
  const auto& members = object_arg<ListPolicy>(L, 2, "policy").members;
  const auto member = integer_arg(L, 3, "member", 0, std::ssize(members));
  lua_settop(L, 4);
  const auto made =
      member == 0 ? self.list.best(members) : self.list.build(members[at(member) - 1]);
  fill_from_1(L, 4, "placement", self.space.placement(made.assignment));
  lua_pushnumber(L, static_cast<double>(made.makespan) / 1e9);
  lua_pushboolean(L, made.fits);
  return 2;
}

constexpr luaL_Reg kPolicy[] = {TRINITY_BIND("save", policy_save),
                                TRINITY_BIND("members", policy_members)};
constexpr luaL_Reg kList[] = {TRINITY_BIND("build", list_build)};
constexpr luaL_Reg kListFunctions[] = {
    TRINITY_BIND("list_policy", policy_new), TRINITY_BIND("load_list_policy", policy_load),
    TRINITY_BIND("list_terms", list_terms), TRINITY_BIND("list_scheduler", list_new)};

}  // namespace

void open_list(lua_State* L) {
  register_functions(L, kListFunctions);
  register_type<ListPolicy>(L, kPolicy);
  register_type<BoundList>(L, kList);
}

}  // namespace trinity::lua
