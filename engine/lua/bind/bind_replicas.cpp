#include "lua/bind/module.h"
#include "strategy/replica_clock.h"

namespace trinity::lua {

template <>
inline constexpr const char* kTypeName<ReplicaClock> = "replica clock";

namespace {

constexpr int64_t kMostBatches = int64_t{1} << 53;

using Batches = Integer<"batches", 1, kMostBatches>;

/// replica_clock(alone_s, together_s) -> clock; see replica_clock.h.
auto replica_clock_new(Numbers<"alone_s"> alone_s, Numbers<"together_s"> together_s) {
  return std::make_shared<ReplicaClock>(std::move(alone_s), std::move(together_s));
}

double clock_local_sgd_epoch_s(ReplicaClock& clock, Batches batches, Integer<"steps", 1, kMostBatches> steps,
                               Number<"average_s"> average_s) {
  return clock.local_sgd_epoch_s(batches, steps, average_s);
}

double clock_server_epoch_s(ReplicaClock& clock, Batches batches, Number<"all_s"> all_s, Number<"one_s"> one_s,
                            bool asynchronous) {
  return clock.server_epoch_s(batches, all_s, one_s, asynchronous);
}

void clock_step(ReplicaClock& clock, bool together) { clock.step(together); }

/// A method that takes seconds.
template <void (ReplicaClock::*f)(double)>
void clock_seconds(ReplicaClock& clock, Number<"seconds"> seconds) { (clock.*f)(seconds); }

constexpr luaL_Reg kClock[] = {
    TRINITY_BIND("compute_s", &ReplicaClock::compute_s), TRINITY_BIND("latest_s", &ReplicaClock::latest_s),
    TRINITY_BIND("local_sgd_epoch_s", clock_local_sgd_epoch_s), TRINITY_BIND("server_epoch_s", clock_server_epoch_s),
    TRINITY_BIND("step", clock_step), TRINITY_BIND("step_of_all", clock_seconds<&ReplicaClock::step_of_all>),
    TRINITY_BIND("add", clock_seconds<&ReplicaClock::add>), TRINITY_BIND("send", clock_seconds<&ReplicaClock::send>),
    TRINITY_BIND("end_batch", &ReplicaClock::end_batch), TRINITY_BIND("wait_for_sent", &ReplicaClock::wait_for_sent),
    TRINITY_BIND("wait_for_earlier", &ReplicaClock::wait_for_earlier)};
constexpr luaL_Reg kReplicaFunctions[] = {TRINITY_BIND("replica_clock", replica_clock_new)};

}  // namespace

void open_replicas(lua_State* L) {
  register_functions(L, kReplicaFunctions);
  register_type<ReplicaClock>(L, kClock);
}

}  // namespace trinity::lua
