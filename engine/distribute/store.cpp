#include "distribute/store.h"

#include <vector>

#include "base/error.h"
#include "distribute/c10d.h"

namespace trinity {

JobStore::JobStore(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
JobStore::~JobStore() = default;

namespace {

std::string first_line(const std::exception& error) {
  const std::string text = error.what();
  return text.substr(0, text.find('\n'));
}

/// Runs an operation on the store; converts LibTorch's exceptions to one line.
template <class Body>
auto guarded(Body body) {
  try {
    return body();
  } catch (const std::exception& error) {
    throw StoreError("the job's store does not answer: " + first_line(error));
  }
}

/// LibTorch from 2.4 on uses libuv for the store, and throws if built without it, as Debian's is;
/// the thread-based store of 1.13 exists in all versions.
template <class Options>
void keep_without_libuv(Options& options) {
  if constexpr (requires { options.useLibUV; }) options.useLibUV = false;
}

c10d::TCPStoreOptions options_of(int port, double timeout_s) {
  c10d::TCPStoreOptions options;
  keep_without_libuv(options);
  options.port = static_cast<uint16_t>(port);
  options.waitWorkers = false;
  options.timeout = std::chrono::milliseconds(static_cast<int64_t>(timeout_s * 1e3));
  return options;
}

}  // namespace

std::unique_ptr<JobStore> JobStore::serve(const std::string& address, int port) {
  auto options = options_of(port, 60);
  options.isServer = true;
  auto parts = std::make_unique<Parts>();
  try {
    parts->store = c10::make_intrusive<c10d::TCPStore>(address, options);
  } catch (const std::exception& error) {
    throw Error("cannot keep the job's store at {}:{} (MASTER_ADDR, MASTER_PORT): {}", address, port,
                first_line(error));
  }
  return std::unique_ptr<JobStore>(new JobStore(std::move(parts)));
}

std::unique_ptr<JobStore> JobStore::connect(const std::string& address, int port,
                                            double timeout_s) {
  auto parts = std::make_unique<Parts>();
  try {
    parts->store = c10::make_intrusive<c10d::TCPStore>(address, options_of(port, timeout_s));
  } catch (const std::exception&) {
    throw Error("no store of the job at {}:{} (MASTER_ADDR, MASTER_PORT) within {:g} s: has rank 0 started there?",
                address, port, timeout_s);
  }
  return std::unique_ptr<JobStore>(new JobStore(std::move(parts)));
}

void JobStore::set(const std::string& key, const std::string& value) {
  guarded([&] { parts_->store->set(key, std::vector<uint8_t>(value.begin(), value.end())); });
}

std::optional<std::string> JobStore::get(const std::string& key) {
  return guarded([&]() -> std::optional<std::string> {
    if (!parts_->store->check({key})) return std::nullopt;
    const auto bytes = parts_->store->get(key);
    return std::string(bytes.begin(), bytes.end());
  });
}

int64_t JobStore::add(const std::string& key, int64_t value) {
  return guarded([&] { return parts_->store->add(key, value); });
}

int JobStore::port() const { return parts_->store->getPort(); }

}  // namespace trinity
