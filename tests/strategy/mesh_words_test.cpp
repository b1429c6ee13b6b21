#include "strategy/mesh_words.h"

#include <doctest/doctest.h>

#include <set>

#include "strategy/strategy.h"

namespace trinity {
namespace {

/// A visitor that gives the word at place `index` another value.
struct Changer {
  int index;
  Parallelism& given;
  int at = 0;
  MeshWord word = {};

  template <class Get>
  void operator()(const MeshWord& visited, Get get) {
    if (at++ != index) return;
    word = visited;
    change(get(given));
  }
  void group(const char*, auto words) { words(); }

 private:
  template <class Value>
  void change(Value&& value) {
    using Plain = std::remove_cvref_t<Value>;
    if constexpr (std::is_same_v<Plain, RecomputeWord<Parallelism>>)
      parse_recompute("layernorm+mlp", given);
    else if constexpr (std::is_same_v<Plain, std::string>)
      value = "gpipe";
    else if constexpr (std::is_same_v<Plain, std::map<std::string, OperatorChoice>>)
      value["a"].recompute = true;
    else if constexpr (std::is_class_v<Plain>)
      value.emplace_back();
    else
      value = static_cast<Plain>(static_cast<int64_t>(value) == 0 ? 1 : static_cast<int64_t>(value) + 1);
  }
};

}  // namespace

TEST_CASE("mesh words: every field of a mesh strategy is a word") {
  // These name all fields: whoever adds one adds its word.
  [[maybe_unused]] const auto& [mesh, schedule, tasks, virtual_stages, micro_batches, stages, recompute, modules, sequence_parallel,
               scatter_gather, overlap_tp_grad_allreduce, zero_stage, offload, kept_offload, bucket_bytes, cp_comm_type, sync, operators, inside] =
      Parallelism{};
  [[maybe_unused]] const auto& [data, tensor, pipeline, context, expert, placement, order, devices] = mesh;
  [[maybe_unused]] const auto& [kind, algorithm, inner, every, servers, asynchronous] = sync;
  constexpr int kWords = 16 + 8 + 6;  // recompute and its modules are one

  const Parallelism plain;
  std::set<uint64_t> hashes = {hash_value(plain)};
  std::set<std::string> names;
  for (int index = 0; index < kWords; ++index) {
    Parallelism given;
    Changer changer{index, given};
    each_mesh_word(changer);
    CHECK(changer.at == kWords);
    CAPTURE(changer.word.name);
    CHECK(names.insert(changer.word.name).second);
    CHECK(given != plain);
    CHECK(hashes.insert(hash_value(given)).second);
    for (const auto result : {kSplits, kStructure, kProfile})
      CHECK((without(given, result) == plain) == ((changer.word.free & result) != 0));
  }
}

}  // namespace trinity
