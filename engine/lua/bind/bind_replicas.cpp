#include "lua/bind/module.h"
#include "strategy/replica_clock.h"

namespace trinity::lua {

template <>
inline constexpr const char* kTypeName<ReplicaClock> = "replica clock";

namespace {

constexpr int64_t kMostBatches = int64_t{1} << 53;

std::vector<double> seconds_arg(lua_State* L, int index, const char* name) {
  table_arg(L, index, name);
  std::vector<double> times_s;
  for_each(L, index, [&](int) { times_s.push_back(number_arg(L, lua_gettop(L), name)); });
  return times_s;
}

/// replica_clock(alone_s, together_s) -> clock; see replica_clock.h.
int replica_clock_new(lua_State* L) {
  auto alone_s = seconds_arg(L, 1, "alone_s");
  push_object(L,
              std::make_shared<ReplicaClock>(std::move(alone_s), seconds_arg(L, 2, "together_s")));
  return 1;
}

int push(lua_State* L, double seconds) { return push_number(L, seconds); }

ReplicaClock& self(lua_State* L) { return object_arg<ReplicaClock>(L, 1); }

int64_t batches_arg(lua_State* L) { return integer_arg(L, 2, "batches", 1, kMostBatches); }

int clock_compute_s(lua_State* L) { return push(L, self(L).compute_s()); }
int clock_latest_s(lua_State* L) { return push(L, self(L).latest_s()); }

/// clock:local_sgd_epoch_s(batches, steps, average_s) -> seconds
int clock_local_sgd_epoch_s(lua_State* L) {
  const int64_t steps = integer_arg(L, 3, "steps", 1, kMostBatches);
  return push(L, self(L).local_sgd_epoch_s(batches_arg(L), steps, number_arg(L, 4, "average_s")));
}

/// clock:server_epoch_s(batches, all_s, one_s, asynchronous) -> seconds
int clock_server_epoch_s(lua_State* L) {
  return push(L, self(L).server_epoch_s(batches_arg(L), number_arg(L, 3, "all_s"),
                                        number_arg(L, 4, "one_s"), lua_toboolean(L, 5)));
}

/// clock:step(together)
int clock_step(lua_State* L) {
  self(L).step(lua_toboolean(L, 2));
  return 0;
}

/// A method that takes seconds.
template <void (ReplicaClock::*F)(double)>
int clock_seconds(lua_State* L) {
  (self(L).*F)(number_arg(L, 2, "seconds"));
  return 0;
}

template <void (ReplicaClock::*F)()>
int clock_plain(lua_State* L) {
  (self(L).*F)();
  return 0;
}

constexpr luaL_Reg kClock[] = {
    TRINITY_BIND("compute_s", clock_compute_s),
    TRINITY_BIND("latest_s", clock_latest_s),
    TRINITY_BIND("local_sgd_epoch_s", clock_local_sgd_epoch_s),
    TRINITY_BIND("server_epoch_s", clock_server_epoch_s),
    TRINITY_BIND("step", clock_step),
    TRINITY_BIND("step_of_all", clock_seconds<&ReplicaClock::step_of_all>),
    TRINITY_BIND("add", clock_seconds<&ReplicaClock::add>),
    TRINITY_BIND("send", clock_seconds<&ReplicaClock::send>),
    TRINITY_BIND("end_batch", clock_plain<&ReplicaClock::end_batch>),
    TRINITY_BIND("wait_for_sent", clock_plain<&ReplicaClock::wait_for_sent>),
    TRINITY_BIND("wait_for_earlier", clock_plain<&ReplicaClock::wait_for_earlier>)};
constexpr luaL_Reg kReplicaFunctions[] = {TRINITY_BIND("replica_clock", replica_clock_new)};

}  // namespace

void open_replicas(lua_State* L) {
  register_functions(L, kReplicaFunctions);
  register_type<ReplicaClock>(L, kClock);
}

}  // namespace trinity::lua
