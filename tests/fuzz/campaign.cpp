// A target under LLVM's libFuzzer, with libFuzzer's own flags. tests/robustness/fuzz.sh runs it.
//   fuzz_campaign TARGET CORPUS [FLAG ...]   in an empty working directory; CORPUS gets the seeds
//   fuzz_campaign --list                     prints the targets
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>

#include "base/error.h"
#include "fuzz/target.h"

using namespace trinity;

// Functions called at every edge must not be instrumented themselves.
#define UNCOUNTED __attribute__((no_sanitize_coverage, no_sanitize("address", "undefined")))

namespace {

fuzz::Session* g_session = nullptr;
bool g_is_protobuf = false;

// libFuzzer reads these after every input: pairs of places, hashed, that followed each other.
constexpr size_t kPairs = 1 << 16;
__attribute__((section("__libfuzzer_extra_counters"))) uint8_t g_counters[kPairs];
uintptr_t g_last = 0;

UNCOUNTED void count(uintptr_t place) {
  const uintptr_t mixed = (place * 0x9e3779b97f4a7c15ULL) >> 40;
  auto& counter = g_counters[(mixed ^ g_last) % kPairs];
  if (counter < 255) ++counter;
  g_last = mixed >> 1;
}

std::string_view text_of(const uint8_t* data, size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

void begin(const std::string& name, const std::string& corpus) {
  const rlimit files{64 << 20, 64 << 20};
  setrlimit(RLIMIT_FSIZE, &files);
  signal(SIGXFSZ, SIG_IGN);
  static auto session = fuzz::find_target(name).begin(std::filesystem::current_path());
  for (size_t i = 0; i < session.seeds.size(); ++i)
    fuzz::write_text(fmt::format("{}/seed_{}", corpus, i + 1), session.seeds[i]);
  g_is_protobuf = name == "onnx";
  g_session = &session;
}

size_t give(const std::string& made, uint8_t* data, size_t most) {
  const auto size = std::min(made.size(), most);
  std::memcpy(data, made.data(), size);
  return size;
}

}  // namespace

// The sanitizers' settings: every report aborts, for libFuzzer to keep the input; operator new above
// 2 GB is one, malloc returns null.
extern "C" const char* __asan_default_options() {
  return "abort_on_error=1:detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=2048:"
         "quarantine_size_mb=32";
}
extern "C" const char* __ubsan_default_options() {
  return "abort_on_error=1:halt_on_error=1:print_stacktrace=1";
}

// g++ calls __sanitizer_cov_trace_pc at every edge, which libFuzzer has no use for: the linker
// brings the calls here (--wrap).
extern "C" UNCOUNTED void __wrap___sanitizer_cov_trace_pc() {
  count(reinterpret_cast<uintptr_t>(__builtin_return_address(0)));
}

// g++ reports comparisons of floating point, too, which libFuzzer does not know.
extern "C" void __sanitizer_cov_trace_cmpf(float, float) {}
extern "C" void __sanitizer_cov_trace_cmpd(double, double) {}

extern "C" int LLVMFuzzerInitialize(int* argc, char*** argv) {
  if (*argc < 3) {
    for (const auto& target : fuzz::all_targets()) std::puts(target.name);
    std::exit(*argc == 2 ? 0 : 2);
  }
  try {
    fuzz::reach = count;
    begin((*argv)[1], (*argv)[2]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "fuzz_campaign: %s\n", error.what());
    std::exit(2);
  }
  (*argv)[1] = (*argv)[0];
  ++*argv, --*argc;
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  g_last = 0;
  const auto reason = fuzz::run(*g_session, text_of(data, size));
  if (reason.empty()) return 0;
  std::fprintf(stderr, "finding: %s\n", reason.c_str());
  std::abort();
}

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t most);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t most, unsigned seed) {
  if (!g_is_protobuf || seed % 8 == 0) return LLVMFuzzerMutate(data, size, most);
  const auto text = text_of(data, size);
  return give(fuzz::mutate_protobuf(text, text, seed), data, most);
}

extern "C" size_t LLVMFuzzerCustomCrossOver(const uint8_t* first, size_t first_size,
                                            const uint8_t* second, size_t second_size,
                                            uint8_t* out, size_t most, unsigned seed) {
  if (!g_is_protobuf) return 0;
  return give(fuzz::mutate_protobuf(text_of(first, first_size), text_of(second, second_size), seed),
              out, most);
}
