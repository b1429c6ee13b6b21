#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "fuzz/target.h"

namespace trinity::fuzz {

inline constexpr size_t kMostBytes = size_t{1} << 18;  ///< of an input

/// Makes new inputs of old ones. The same seed and calls make the same inputs.
class Mutator {
 public:
  Mutator(uint64_t seed, Grammar grammar);

  /// Adds the words and quoted texts of an input to the dictionary.
  void learn(std::string_view input);
  /// `input` changed in one to eight places, with parts of `other`.
  std::string mutate(std::string input, const std::string& other);

  RandomStream& random() { return random_; }

 private:
  void change(std::string& input, const std::string& other);
  void change_bytes(std::string& input, const std::string& other);
  void change_text(std::string& input, const std::string& other);

  void flip(std::string& input);
  void overwrite_integer(std::string& input);
  void insert_bytes(std::string& input);
  void erase(std::string& input);
  void repeat(std::string& input);
  void splice(std::string& input, const std::string& other);
  void use_word(std::string& input);
  void replace_number(std::string& input);
  void replace_token(std::string& input, const std::string& other);
  void change_span(std::string& input, const std::string& other);
  void nest(std::string& input);

  size_t below(size_t bound) { return static_cast<size_t>(random_.below(bound)); }
  bool one_in(size_t count) { return below(count) == 0; }
  std::string any_word();

  RandomStream random_;
  Grammar grammar_;
  std::vector<std::string> words_;
};

/// Changes a protobuf message (a field left out, repeated, moved, another number or text), with the
/// lengths around it put right. Returns the input where it is no such message.
std::string mutate_protobuf(std::string_view message, std::string_view other, RandomStream& random);

}  // namespace trinity::fuzz
