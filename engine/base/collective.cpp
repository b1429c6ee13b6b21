#include "base/collective.h"

#include "base/words.h"

namespace trinity {
namespace {

constexpr const char* kKinds[] = {"all_reduce", "reduce_scatter", "all_gather", "broadcast",
                                  "all_to_all"};
constexpr const char* kAlgorithms[] = {"automatic", "ring",         "halving_doubling",
                                       "tree",      "hierarchical", "leader",
                                       "multicast", "in_network"};

}  // namespace

CollectiveKind parse_collective_kind(std::string_view name) {
  return static_cast<CollectiveKind>(parse_word("collective", name, kKinds));
}

CollectiveAlgorithm parse_collective_algorithm(std::string_view name) {
  return static_cast<CollectiveAlgorithm>(parse_word("collective algorithm", name, kAlgorithms));
}

const char* collective_kind_name(CollectiveKind kind) { return kKinds[static_cast<size_t>(kind)]; }

const char* collective_algorithm_name(CollectiveAlgorithm algorithm) {
  return kAlgorithms[static_cast<size_t>(algorithm)];
}

}  // namespace trinity
