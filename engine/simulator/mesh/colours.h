#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/hash.h"
#include "base/index.h"

namespace trinity {

/// Interns lists of numbers: equal lists get equal ids, numbered 0, 1, ... in order of first
/// appearance. All lists share one array, so that little is allocated. Not thread-safe.
class Colours {
 public:
  int32_t of(std::span<const uint64_t> key) {
    if (2 * (count() + 1) > places_.size()) grow();
    uint64_t hash = key.size();
    for (const uint64_t value : key) hash = (hash ^ value) * 0x9e3779b97f4a7c15ULL;
    hash = mix64(hash);
    size_t place = hash & (places_.size() - 1);
    for (; places_[place] >= 0; place = (place + 1) & (places_.size() - 1))
      if (is(places_[place], hash, key)) return places_[place];
    const auto number = static_cast<int32_t>(count());
    places_[place] = number;
    hashes_.push_back(hash);
    words_.insert(words_.end(), key.begin(), key.end());
    end_.push_back(words_.size());
    return number;
  }
  int32_t of(uint64_t a, uint64_t b) { return of(std::array{a, b}); }
  size_t count() const { return hashes_.size(); }
  void clear() {
    std::fill(places_.begin(), places_.end(), -1);
    hashes_.clear();
    words_.clear();
    end_.assign(1, 0);
  }

 private:
  bool is(int32_t number, uint64_t hash, std::span<const uint64_t> key) const {
    return hashes_[number] == hash && end_[at(number) + 1] - end_[number] == key.size() &&
           std::equal(key.begin(), key.end(),
                      words_.begin() + static_cast<std::ptrdiff_t>(end_[number]));
  }
  void grow() {
    places_.assign(std::max<size_t>(64, 2 * places_.size()), -1);
    for (size_t i = 0; i < hashes_.size(); ++i) {
      size_t place = hashes_[i] & (places_.size() - 1);
      while (places_[place] >= 0) place = (place + 1) & (places_.size() - 1);
      places_[place] = static_cast<int32_t>(i);
    }
  }

  std::vector<int32_t> places_;  // a hash table; its size is a power of two; -1: free
  std::vector<uint64_t> hashes_, words_;
  std::vector<size_t> end_{0};
};

/// Multiset of classes, for comparing lists independently of their order. Not thread-safe.
class ColourCounts {
 public:
  /// Colours are in [0, limit).
  explicit ColourCounts(size_t limit) : count_(limit, 0) {}
  void add(int32_t colour, int32_t times = 1) {
    if (count_[colour] == 0) met_.push_back(colour);
    count_[colour] += static_cast<uint32_t>(times);
  }
  /// Appends count << 32 | class for every class, ascending by class, and clears the counts.
  void take(std::vector<uint64_t>& key) {
    std::sort(met_.begin(), met_.end());
    for (const int32_t colour : met_) {
      key.push_back(uint64_t{count_[colour]} << 32 | static_cast<uint64_t>(colour));
      count_[colour] = 0;
    }
    met_.clear();
  }

 private:
  std::vector<uint32_t> count_;
  std::vector<int32_t> met_;
};

}  // namespace trinity
