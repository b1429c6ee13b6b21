#pragma once

#include <map>
#include <string>
#include <vector>

#include "search/construct/learned_list.h"

namespace trinity {

/// Weights of a learned list scheduler: members of kListWeightCount numbers, each of which builds a
/// placement; the one whose own schedule is the shortest counts (LearnedList::best).
struct ListPolicy {
  std::vector<std::vector<double>> members;
};

/// Rounds them to float32, as files keep them. Throws ArgumentError for no member, more than 1024,
/// or weights that are too many, too few or not finite.
ListPolicy list_policy(std::vector<std::vector<double>> members);

/// As safetensors: "members" [members][terms][circumstances], float32, the names of terms and
/// circumstances, and notes. Throws FileError.
void save_list_policy(const ListPolicy& policy, const std::string& path,
                      const std::map<std::string, std::string>& notes);

struct SavedListPolicy {
  ListPolicy policy;
  std::map<std::string, std::string> notes;
};
/// Throws FileError for a file that is damaged, foreign, or of other terms than this program's.
SavedListPolicy load_list_policy(const std::string& path);

}  // namespace trinity
