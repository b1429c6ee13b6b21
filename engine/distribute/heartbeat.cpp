#include "distribute/heartbeat.h"

#include <sstream>

#include "base/error.h"
#include "base/words.h"

namespace trinity {
namespace {

constexpr const char* kScopeNames[] = {"world", "node", "across", "meeting"};
/// Additional patience for a collective that every rank has started: data may be in transfer.
constexpr double kBegunPatience = 1.3;
/// Time for a rank that left to exit, so that launchers report its status first.
constexpr double kLeaving_s = 2;
constexpr const char* kScopeWords[] = {"world", "node", "across"};  // as named in scripts

/// True if rank `other` takes part in the collectives of `rank` in a scope.
bool is_member(const Heartbeat& rank, const Heartbeat& other, Scope scope) {
  if (scope == Scope::node) return rank.node == other.node;
  if (scope == Scope::across) return rank.local_rank == other.local_rank;
  return true;
}

bool is_late(const Heartbeat& waiting, const Heartbeat& other) {
  return is_member(waiting, other, waiting.scope) && other.begun[static_cast<size_t>(waiting.scope)] < waiting.number;
}

/// True if a field differs between ranks.
template <class Field>
bool differs(const std::vector<Seen>& ranks, Field field) {
  const Seen* first = nullptr;
  for (const auto& rank : ranks) {
    if (rank.heartbeat.beat == 0) continue;
    if (!first) first = &rank;
    if (rank.heartbeat.*field != first->heartbeat.*field) return true;
  }
  return false;
}

std::string describe_wait(const Heartbeat& heartbeat) {
  return fmt::format("{} {} ({})", heartbeat.what, heartbeat.number, scope_name(heartbeat.scope));
}

/// Ranks that `waiting` waits for, ascending.
std::vector<size_t> late_ranks(const std::vector<Seen>& ranks, const Heartbeat& waiting) {
  std::vector<size_t> late;
  for (size_t r = 0; r < ranks.size(); ++r)
    if (is_late(waiting, ranks[r].heartbeat)) late.push_back(r);
  return late;
}

std::optional<std::string> judge_wait(const std::vector<Seen>& ranks, size_t waiter,
                                      const Timeouts& timeouts) {
  const Heartbeat& waiting = ranks[waiter].heartbeat;
  const auto late = late_ranks(ranks, waiting);
  for (const size_t r : late)
    if (ranks[r].heartbeat.has_left && ranks[r].silent_s >= kLeaving_s)
      return fmt::format(
          "{} has left the job (its script ended or failed) while rank {} waits for it in {}",
          name_rank(ranks, r), waiter, describe_wait(waiting));
  if (waiting.waiting_s < timeouts.waiting_s) return std::nullopt;
  for (const size_t r : late)
    if (ranks[r].heartbeat.number == 0)
      return fmt::format("{} hangs: for {:.0f} s rank {} has waited for it in {}",
                         name_rank(ranks, r), waiting.waiting_s, waiter, describe_wait(waiting));
  for (const size_t r : late)
    if (ranks[r].heartbeat.waiting_s >= timeouts.waiting_s && is_late(ranks[r].heartbeat, waiting))
      return fmt::format("{} and {} wait for each other, rank {} in {}, rank {} in {}",
                         name_rank(ranks, waiter), name_rank(ranks, r), waiter,
                         describe_wait(waiting), r, describe_wait(ranks[r].heartbeat));
  if (late.empty() && waiting.waiting_s >= kBegunPatience * timeouts.waiting_s)
    return fmt::format("{} has waited {:.0f} s for {}, which every rank has begun{}",
                       name_rank(ranks, waiter), waiting.waiting_s, describe_wait(waiting),
                       waiting.broken.empty() ? "" : ": " + waiting.broken);
  return std::nullopt;
}

}  // namespace

Scope parse_scope(std::string_view name) {
  return static_cast<Scope>(parse_word("scope", name, kScopeWords));
}

const char* scope_name(Scope scope) { return kScopeNames[static_cast<size_t>(scope)]; }

std::string Heartbeat::text() const {
  return fmt::format("{} {} {} {} {} {} {} {} {} {} {} {:.3f} {}\n{}", beat, node, local_rank, host,
                     has_left ? 1 : 0, begun[0], begun[1], begun[2], begun[3], number,
                     static_cast<int>(scope), waiting_s, what.empty() ? "-" : what, broken);
}

Heartbeat Heartbeat::parse(const std::string& text) {
  std::istringstream in(text);
  Heartbeat heartbeat;
  int left = 0, scope = 0;
  in >> heartbeat.beat >> heartbeat.node >> heartbeat.local_rank >> heartbeat.host >> left;
  for (auto& count : heartbeat.begun) in >> count;
  in >> heartbeat.number >> scope >> heartbeat.waiting_s >> heartbeat.what;
  if (!in || scope < 0 || scope >= kScopes)
    throw Error("the job's store holds a heartbeat of another program");
  heartbeat.has_left = left != 0;
  heartbeat.scope = static_cast<Scope>(scope);
  in.ignore();
  std::getline(in, heartbeat.broken, '\0');
  return heartbeat;
}

std::string name_rank(const std::vector<Seen>& ranks, size_t rank) {
  const Heartbeat& heartbeat = ranks[rank].heartbeat;
  if (heartbeat.beat == 0 || !differs(ranks, &Heartbeat::node)) return fmt::format("rank {}", rank);
  const bool several_hosts = differs(ranks, &Heartbeat::host);
  return fmt::format("rank {} (node {}{}{})", rank, heartbeat.node, several_hosts ? ", " : "",
                     several_hosts ? heartbeat.host : "");
}

std::optional<std::string> judge(const std::vector<Seen>& ranks, const Timeouts& timeouts) {
  for (size_t r = 0; r < ranks.size(); ++r)
    if (!ranks[r].heartbeat.has_left && ranks[r].silent_s > timeouts.silent_s)
      return fmt::format(
          "{} has not answered for {:.0f} s: it was killed or stopped, or its machine is gone",
          name_rank(ranks, r), ranks[r].silent_s);
  for (size_t r = 0; r < ranks.size(); ++r)
    if (ranks[r].heartbeat.number > 0 && !ranks[r].heartbeat.has_left)
      if (auto verdict = judge_wait(ranks, r, timeouts)) return verdict;
  return std::nullopt;
}

}  // namespace trinity
