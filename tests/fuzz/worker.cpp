#include <algorithm>
#include <cctype>
#include <chrono>
#include <iterator>

#include "base/error.h"
#include "base/hash.h"
#include "fuzz/shared.h"

namespace trinity::fuzz {
namespace {

double now_s() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return std::chrono::duration<double>(now).count();
}

class Worker {
 public:
  Worker(const Target& target, Shared& shared, const std::string& folder, uint64_t seed,
         uint64_t number)
      : shared_(shared),
        session_(target.begin(folder, number)),
        mutator_(mix64(seed) + number, target.grammar) {}

  void prepare() {
    if (shared_.seeds == 0) {
      for (const auto& text : session_.seeds) shared_.add(text);
      if (shared_.count == 0) shared_.add("");
      shared_.seeds = shared_.count;
    }
    for (uint32_t i = 0; i < shared_.count; ++i) mutator_.learn(shared_.entry(i));
  }

  /// Whether the input ended as it should.
  bool run(const std::string& input) {
    shared_.input_size = input.size();
    std::memcpy(shared_.input, input.data(), input.size());
    shared_.inputs.fetch_add(1);
    begin_input();
    shared_.running = true;
    try {
      session_.run({shared_.input, input.size()});
    } catch (const Error&) {
    } catch (const Finding& finding) {
      return fail("finding", finding.what());
    } catch (const std::exception& error) {
      return fail("an exception that is no trinity::Error", error.what());
    }
    shared_.running = false;
    fresh_ = end_input();
    return true;
  }

  bool replay() {
    while (shared_.replayed < shared_.seeds) {
      const uint32_t i = shared_.replayed.fetch_add(1);
      if (!run(shared_.entry(i))) return false;
    }
    return true;
  }

  /// An input made from one of the corpus: rather a late one, rather a short one.
  bool step() {
    auto& random = mutator_.random();
    const auto any = [&] { return static_cast<uint32_t>(random.below(shared_.count)); };
    const auto late = [&] { return std::max(any(), any()); };
    const auto first = late(), second = late();
    const auto from = shared_.size[first] < shared_.size[second] ? first : second;
    const auto input = mutator_.mutate(shared_.entry(from), shared_.entry(any()));
    if (!run(input)) return false;
    if (fresh_ > 0) shared_.add(input);
    return true;
  }

 private:
  /// False for a failure that is new; the same text with other numbers is no news.
  bool fail(const char* kind, const char* what) {
    std::string plain;
    for (const char* c = what; *c && *c != '\n' && plain.size() < 100; ++c)
      if (!std::isdigit(static_cast<unsigned char>(*c))) plain += *c;
    const auto key = Hasher().add(plain).value();
    auto* const end = shared_.known + shared_.known_count;
    if (std::find(shared_.known, end, key) != end) {
      shared_.running = false;
      return true;
    }
    if (shared_.known_count < std::size(shared_.known)) shared_.known[shared_.known_count++] = key;
    std::snprintf(shared_.message, sizeof shared_.message, "%s: %s", kind, what);
    return false;
  }

  Shared& shared_;
  Session session_;
  Mutator mutator_;
  size_t fresh_ = 0;
};

}  // namespace

int run_worker(const Target& target, Shared& shared, uint8_t* places, const std::string& folder,
               uint64_t seed, uint64_t number, double lifetime_s, bool only_replay) {
  Worker worker(target, shared, folder, seed, number);
  worker.prepare();
  count_into(shared.seen, places);
  shared.ready = true;
  if (!worker.replay()) return 1;
  if (only_replay) return 0;
  for (const double end_s = now_s() + lifetime_s; now_s() < end_s;)
    if (!worker.step()) return 1;
  return 0;
}

}  // namespace trinity::fuzz
