#include "fuzz/target.h"

#include <csignal>
#include <ctime>
#include <fstream>
#include <iterator>

#include "base/error.h"

namespace trinity::fuzz {
namespace {

/// SIGABRT comes once `seconds` of a clock are over, unless it is gone by then.
class Limit {
 public:
  Limit(clockid_t clock, time_t seconds) {
    sigevent event = {};
    event.sigev_notify = SIGEV_SIGNAL;
    event.sigev_signo = SIGABRT;
    if (timer_create(clock, &event, &timer_) != 0) throw LimitError("cannot make a timer");
    const itimerspec once{{0, 0}, {seconds, 0}};
    timer_settime(timer_, 0, &once, nullptr);
  }
  ~Limit() { timer_delete(timer_); }
  Limit(const Limit&) = delete;
  Limit& operator=(const Limit&) = delete;

 private:
  timer_t timer_{};
};

}  // namespace

std::vector<Target> all_targets() {
  auto targets = format_targets();
  for (auto& target : lua_targets()) targets.push_back(std::move(target));
  return targets;
}

Target find_target(const std::string& name) {
  std::vector<std::string> names;
  for (auto& target : all_targets()) {
    if (name == target.name) return target;
    names.emplace_back(target.name);
  }
  throw ArgumentError(fmt::format("no target '{}'{} (known: {})", name, suggestion(name, names),
                                  fmt::join(names, ", ")));
}

std::string run(const Session& session, std::string_view input) {
  const Limit work(CLOCK_PROCESS_CPUTIME_ID, 10), waiting(CLOCK_MONOTONIC, 120);
  try {
    session.run(input);
  } catch (const Error&) {
  } catch (const Finding& finding) {
    return finding.what();
  } catch (const std::exception& error) {
    return std::string("an exception that is no trinity::Error: ") + error.what();
  }
  return "";
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw FileError(path + ": cannot read");
  return {std::istreambuf_iterator<char>(file), {}};
}

void write_text(const std::string& path, std::string_view text) {
  std::ofstream(path, std::ios::binary)
      .write(text.data(), static_cast<std::streamsize>(text.size()));
}

}  // namespace trinity::fuzz
