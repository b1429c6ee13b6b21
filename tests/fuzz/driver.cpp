// Fuzzes what reads files and what scripts can say. Use:
//   fuzz [TARGET ...] [options]       the targets named, or all
//   fuzz TARGET FILE ...              replays files
// Options:
//   --seconds N     of each target after its corpus (60); 0: the corpus alone
//   --seed N        of the mutations (1)
//   --part I/N      every N-th target from the I-th on: several processes share them
//   --corpus DIR    a folder of TARGET/ with inputs (tests/fuzz/corpus)
//   --failures DIR  where inputs that fail go (fuzz-failures)
//   --keep DIR      where inputs that reached new code go, DIR/TARGET/
//   --places DIR    where addresses of code reached go, DIR/TARGET
//   --list          prints the targets
// It closes with "P passed, F failed, S skipped", a target each, and ends with 1 where one failed.
#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <vector>

#include "base/error.h"
#include "fuzz/campaign.h"
#include "fuzz/coverage.h"

namespace trinity::fuzz {
namespace {

struct Arguments {
  CampaignOptions campaign;
  std::string corpus = std::string(TRINITY_SOURCE_DIR) + "/tests/fuzz/corpus", keep, places;
  std::vector<std::string> words;
  size_t part = 1, parts = 1;
  bool list = false;
};

template <class Number>
Number number(const std::string& option, std::string_view text) {
  Number value{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size())
    throw ArgumentError(fmt::format("{}: expected a number, got '{}'", option, text));
  return value;
}

void set(Arguments& a, const std::string& option, const std::string& value) {
  if (option == "--seconds") {
    a.campaign.seconds = number<double>(option, value);
  } else if (option == "--seed") {
    a.campaign.seed = number<uint64_t>(option, value);
  } else if (option == "--corpus") {
    a.corpus = value;
  } else if (option == "--failures") {
    a.campaign.failures = value;
  } else if (option == "--keep") {
    a.keep = value;
  } else if (option == "--places") {
    a.places = value;
  } else if (option == "--part") {
    const auto slash = std::min(value.find('/'), value.size());
    a.part = number<size_t>(option, std::string_view(value).substr(0, slash));
    a.parts =
        number<size_t>(option, std::string_view(value).substr(std::min(slash + 1, value.size())));
    if (a.part < 1 || a.part > a.parts)
      throw ArgumentError("--part: expected I/N with I from 1 to N");
  } else {
    throw ArgumentError(
        fmt::format("unknown option '{}'{}", option,
                    suggestion(option, {"--seconds", "--seed", "--part", "--corpus", "--failures",
                                        "--keep", "--places", "--list"})));
  }
}

Arguments parse(const std::vector<std::string>& words) {
  Arguments a;
  a.campaign.failures = "fuzz-failures";
  for (size_t i = 0; i < words.size(); ++i) {
    if (words[i] == "--list") {
      a.list = true;
    } else if (words[i].starts_with("--")) {
      if (i + 1 == words.size()) throw ArgumentError(words[i] + " needs a value");
      set(a, words[i], words[i + 1]);
      ++i;
    } else {
      a.words.push_back(words[i]);
    }
  }
  return a;
}

std::vector<Target> all_targets() {
  auto targets = format_targets();
  for (auto& target : lua_targets()) targets.push_back(std::move(target));
  return targets;
}

/// The targets that the words name; words behind one that are none are files for it.
std::vector<Target> choose(Arguments& a) {
  std::vector<Target> chosen;
  std::vector<std::string> names;
  const auto all = all_targets();
  for (const auto& target : all) names.emplace_back(target.name);
  for (const auto& word : a.words) {
    const auto at =
        static_cast<size_t>(std::find(names.begin(), names.end(), word) - names.begin());
    if (at < all.size()) {
      chosen.push_back(all[at]);
    } else if (chosen.size() == 1 && std::filesystem::exists(word)) {
      a.campaign.files.push_back(word);
    } else {
      throw ArgumentError(fmt::format("no target '{}'{} (known: {})", word, suggestion(word, names),
                                      fmt::join(names, ", ")));
    }
  }
  if (!a.campaign.files.empty()) a.campaign.seconds = 0;
  return a.words.empty() ? all : chosen;
}

/// Whether the target passed.
bool run(const Target& target, const Arguments& a) {
  auto options = a.campaign;
  options.corpus = a.corpus + '/' + target.name;
  if (!a.keep.empty()) options.keep = a.keep + '/' + target.name;
  if (!a.places.empty()) {
    std::filesystem::create_directories(a.places);
    options.places = a.places + '/' + target.name;
  }
  const auto result = run_campaign(target, options);
  fmt::print("{:5} {:16} {} inputs in {:.0f} s ({:.0f}/s), corpus {} -> {}, {} pairs of places{}\n",
             result.failures.empty() ? "ok" : "FAIL", target.name, result.inputs, result.seconds,
             static_cast<double>(result.inputs) / std::max(result.seconds, 1e-3), result.seeds,
             result.corpus, result.pairs,
             result.failures.empty() ? "" : fmt::format(", {} failures", result.failures.size()));
  std::fflush(stdout);
  return result.failures.empty();
}

int run_all(const std::vector<std::string>& words) {
  auto arguments = parse(words);
  const auto targets = choose(arguments);
  if (arguments.list) {
    for (const auto& target : targets) fmt::print("{:16} {}\n", target.name, target.about);
    return 0;
  }
  int passed = 0, failed = 0;
  for (size_t i = arguments.part - 1; i < targets.size(); i += arguments.parts)
    ++(run(targets[i], arguments) ? passed : failed);
  fmt::print("{} passed, {} failed, 0 skipped\n", passed, failed);
  return failed > 0 ? 1 : 0;
}

}  // namespace
}  // namespace trinity::fuzz

int main(int count, char** words) {
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  try {
    return trinity::fuzz::run_all({words + 1, words + count});
  } catch (const trinity::Error& error) {
    std::fprintf(stderr, "fuzz: %s\n", error.what());
    return 2;
  }
}
