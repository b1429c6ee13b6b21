#pragma once

#include <map>
#include <memory>
#include <span>
#include <string>

#include "learn/move_network.h"
#include "lua/host/check.h"
#include "search/placement/acceptance.h"
#include "search/placement/searcher.h"
#include "simulator/simulator.h"

namespace trinity::lua {

/// A ranker of moves as scripts hold it.
struct BoundRanker {
  std::shared_ptr<MoveNetwork> network;
};

/// A function of a script, which the engine may call until the loan goes out of scope.
template <class Lent>
struct EndLoan {
  void operator()(Lent* lent) const { lent->L_ = nullptr; }
};
template <class Lent>
using Loan = std::unique_ptr<Lent, EndLoan<Lent>>;

/// A ranker that is a Lua function: rank(count) reads the arrays `features` and `device_of` (of
/// every unit) and fills the array `scores`. Valid during the call that lends the function and the
/// arrays. For the thread of the Lua state.
class LuaRanker : public MoveRanker {
 public:
  void show(std::span<const Move> moves, const Assignment& assignment) override;
  void score(const float* features, int32_t count, float* scores) override;

  /// Those that it was shown last.
  std::span<const Move> moves() const { return moves_; }

  /// Lends the function and its arrays at stack indices.
  Loan<LuaRanker> lend(lua_State* L, int function, int features, int scores, int device_of);

 private:
  friend EndLoan<LuaRanker>;
  lua_State* L_ = nullptr;
  int function_ = 0;
  std::span<double> features_, scores_;
  std::span<int32_t> device_of_;
  std::span<const Move> moves_;
};

/// Moves from a Lua function: moves(seed) reads `device_of`, fills the first entries of `units`,
/// and returns their number (0: none) and their device. Valid during the call that lends the
/// function. For the thread of the Lua state.
class LuaMoves : public MoveSource {
 public:
  explicit LuaMoves(int32_t devices) : devices_(devices) {}
  bool draw(int32_t seed, const Assignment& assignment, Move& move) override;

  /// Lends the function and its arrays at stack indices.
  Loan<LuaMoves> lend(lua_State* L, int function, int device_of, int units);

 private:
  friend EndLoan<LuaMoves>;
  lua_State* L_ = nullptr;
  int function_ = 0;
  int32_t devices_;
  std::span<int32_t> device_of_, units_;
};

/// An acceptance rule from a Lua function: `accept(progress, drawn)` returns the maximum rise. Valid
/// during the call that lends the function. For the thread of the Lua state.
class LuaAcceptance : public Acceptance {
 public:
  double rise(double progress, double drawn) override;

  /// Lends the function at a stack index.
  Loan<LuaAcceptance> lend(lua_State* L, int function);

 private:
  friend EndLoan<LuaAcceptance>;
  lua_State* L_ = nullptr;
  int function_ = 0;
};

/// A search in progress with what it refers to.
struct BoundSearcher {
  explicit BoundSearcher(std::shared_ptr<const Problem> bound)
      : problem(std::move(bound)), space(*problem) {}
  std::shared_ptr<const Problem> problem;
  PlacementSpace space;
  std::unique_ptr<Searcher> searcher;
  std::shared_ptr<LuaRanker> rank;        // where the script ranks moves
  std::shared_ptr<LuaAcceptance> accept;  // where it says what is accepted
  std::shared_ptr<LuaMoves> moves;        // where it gives the moves
  size_t asked = 0;
  void give_simulators(size_t count) {
    while (simulators.size() < count) simulators.emplace_back(*problem);
  }
  std::vector<Simulator> simulators;  // where it runs in the engine, one for each of its threads
};

template <>
inline constexpr const char* kTypeName<BoundSearcher> = "searcher";

/// Notes of a file of weights: texts by name.
std::map<std::string, std::string> notes_arg(lua_State* L, int index);

/// Pushes the units of a move, counted from 1, its device and its kind.
void push_move(lua_State* L, const Move& move);

/// Field `key`: a ranker, true for a LuaRanker, or null where there is none.
std::shared_ptr<MoveRanker> ranker_field(lua_State* L, Fields& fields, const char* key);

}  // namespace trinity::lua
