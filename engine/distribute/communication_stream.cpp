#include "distribute/communication_stream.h"

#include <chrono>

#include "distribute/c10d.h"

namespace trinity {

bool Work::is_done() const {
  const std::lock_guard lock(mutex_);
  return done_;
}

std::string Work::failure() const {
  const std::lock_guard lock(mutex_);
  return failure_;
}

bool Work::wait_for(double seconds) const {
  std::unique_lock lock(mutex_);
  return ended_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return done_; });
}

void Work::finish(const std::string& failure) {
  {
    const std::lock_guard lock(mutex_);
    done_ = true;
    failure_ = failure;
  }
  ended_.notify_all();
}

CommunicationStream::CommunicationStream() : thread_([this] { run(); }) {}

CommunicationStream::~CommunicationStream() {
  {
    const std::lock_guard lock(mutex_);
    closing_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CommunicationStream::begin(std::shared_ptr<Work> work, std::function<void()> body) {
  {
    const std::lock_guard lock(mutex_);
    queue_.push_back({std::move(work), std::move(body)});
  }
  changed_.notify_all();
}

void CommunicationStream::run() {
  at::set_num_threads(1);  // cores belong to the ranks' computation
  const at::NoGradGuard no_grad;
  std::string failure;
  for (;;) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return closing_ || !queue_.empty(); });
    if (queue_.empty()) return;
    Item item = std::move(queue_.front());
    queue_.pop_front();
    lock.unlock();
    try {
      if (failure.empty()) item.body();
    } catch (const std::exception& error) {
      const std::string text = error.what();
      failure = text.substr(0, text.find('\n'));
      if (failure.empty()) failure = "a collective failed";
    }
    item.work->finish(failure);
  }
}

}  // namespace trinity
