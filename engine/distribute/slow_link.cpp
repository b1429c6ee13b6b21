#include "distribute/slow_link.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>

#include "distribute/heartbeat.h"

namespace trinity {

class SlowLink::Delayed final : public Message {
 public:
  bool wait() override {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return aborted_ || sent_; });
    if (!sent_) return false;
    lock.unlock();
    return sent_->wait();
  }

  void abort() override {
    const std::lock_guard lock(mutex_);
    aborted_ = true;
    if (sent_) sent_->abort();
    changed_.notify_all();
  }

  /// On the link's thread: waits, then sends, unless abort() comes first.
  void send_after(double seconds, const std::function<std::unique_ptr<Message>()>& send) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return aborted_; });
    if (!aborted_) sent_ = send();
    aborted_ = !sent_;
    changed_.notify_all();
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool aborted_ = false;
  std::unique_ptr<Message> sent_;
};

std::shared_ptr<Message> SlowLink::send(double bytes,
                                        std::function<std::unique_ptr<Message>()> send) {
  auto message = std::make_shared<Delayed>();
  const double came_s = steady_s();
  stream_.begin(std::make_shared<Work>("send", Scope::across, 0),
                [this, bytes, came_s, message, send = std::move(send)] {
                  const double of = link_.bandwidth_bytes_per_s;
                  free_s_ = std::max(free_s_, came_s) + (of > 0 ? bytes / of : 0);
                  message->send_after(std::max(0.0, free_s_ + link_.latency_s - steady_s()), send);
                });
  return message;
}

}  // namespace trinity
