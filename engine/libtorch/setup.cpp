#include "libtorch/setup.h"

#include <dlfcn.h>
#include <link.h>
#include <malloc.h>
#include <sys/resource.h>

#include <cstdlib>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "libtorch/torch.h"

namespace trinity {
namespace {

/// Real paths of the loaded shared libraries.
std::vector<std::string> loaded_libraries() {
  std::vector<std::string> paths;
  dl_iterate_phdr(
      [](dl_phdr_info* info, size_t, void* out) {
        char* real =
            info->dlpi_name && *info->dlpi_name ? realpath(info->dlpi_name, nullptr) : nullptr;
        if (real) static_cast<std::vector<std::string>*>(out)->emplace_back(real);
        std::free(real);
        return 0;
      },
      &paths);
  return paths;
}

/// A LibTorch built with Vulkan, as Debian 13's, counts one device of it, present or not. Autograd
/// starts a thread for every device but the CPU, and then refuses to work in children of
/// fork, our workers. Nothing here computes on Vulkan.
void forget_vulkan() { c10::impl::device_guard_impl_registry[static_cast<size_t>(c10::DeviceType::Vulkan)] = nullptr; }

}  // namespace

void use_one_torch_thread() {
  forget_vulkan();
  torch::set_num_threads(1);
  // LibTorch sets OpenMP's and MKL's threads; OpenBLAS built on pthreads has its own setting.
  static const auto set_openblas =
      reinterpret_cast<void (*)(int)>(dlsym(RTLD_DEFAULT, "openblas_set_num_threads"));
  if (set_openblas) set_openblas(1);
  // Temporaries of some megabytes come and go all the time: keep their pages, up to the largest size
  // that malloc takes from its heap, unless the process has little memory.
  rlimit limit{};
  if (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) return;
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);
}

void use_exact_gpu_kernels() {
#ifdef TRINITY_CUDA
  static std::once_flag once;
  std::call_once(once, [] {
    setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:8", 0);  // cuBLAS's condition for it
    auto& context = at::globalContext();
    context.lazyInitDevice(c10::DeviceType::CUDA);  // else its allocator counts nothing yet
    context.setAllowTF32CuDNN(false);
    context.setAllowTF32CuBLAS(false);
    context.setDeterministicCuDNN(true);
    context.setDeterministicAlgorithms(true, true);  // what has no such kernel warns
    context.setDeterministicFillUninitializedMemory(false);
  });
#endif
}

#ifdef TRINITY_CUDA
namespace {

class OnceHandler final : public c10::WarningHandler {
 public:
  void process(const c10::Warning& warning) override {
    const std::lock_guard lock(mutex_);
    const auto text = warning.msg();
    if (said_.insert(text).second)
      fmt::print(stderr, "trinity: warning: LibTorch: {}\n", text.substr(0, text.find(". ")));
  }

 private:
  std::mutex mutex_;
  std::set<std::string> said_;
};

c10::WarningHandler* once_handler() {
  static auto* made = new OnceHandler;  // outlives every thread
  return made;
}

}  // namespace

struct WarningsOnce::Guard {
  c10::WarningUtils::WarningHandlerGuard guard{once_handler()};
};
#else
struct WarningsOnce::Guard {};
#endif

WarningsOnce::WarningsOnce() : guard_(std::make_unique<Guard>()) {}
WarningsOnce::~WarningsOnce() = default;

TorchDescription describe_torch() {
  TorchDescription description;
  std::string blas;
  for (const auto& path : loaded_libraries()) {
    const auto name = path.substr(path.rfind('/') + 1);
    if (path.find("openblas") != std::string::npos) blas = "OpenBLAS";
    if (name.starts_with("libmkl")) blas = "MKL";
    if (blas.empty() && name.starts_with("libblas.so")) blas = "reference BLAS";
  }
  if (blas.empty() || blas == "reference BLAS") {
    // LibTorch 2.x links MKL or OpenBLAS into itself and then loads no reference BLAS.
    const auto built_with = torch::show_config();
    if (built_with.find("BLAS_INFO=mkl") != std::string::npos)
      blas = "MKL";
    else if (blas.empty() && built_with.find("BLAS_INFO=open") != std::string::npos)
      blas = "OpenBLAS";
  }
  description.slow = blas == "reference BLAS";
  description.text = fmt::format("LibTorch {} with {}", TORCH_VERSION,
                                 blas.empty() ? std::string("an unknown BLAS") : blas);
  return description;
}

}  // namespace trinity
