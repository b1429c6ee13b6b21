// The loop that the simulator is measured against: discrete events over standard containers, as one
// writes it first from the rules in simulator.h. Sender queues, first in first out; no memory.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <queue>
#include <set>
#include <utility>
#include <vector>

namespace trinity::bench {

/// A graph whose operators write one tensor each, read by all their readers.
struct TextbookGraph {
  std::vector<std::vector<int>> readers;  // ascending
  std::vector<int> inputs;                // number of edges into every operator
  std::vector<int64_t> cost_ns, wire_ns;  // of every operator, and of its tensor between devices
  std::vector<int64_t> bytes;             // of its tensor
};

/// One simulation of one placement.
class TextbookLoop {
 public:
  /// Operators take at least 1 ns: among operators without a duration this loop knows no order.
  TextbookLoop(const TextbookGraph& graph, const std::vector<int32_t>& placement, int devices)
      : graph_(graph),
        placement_(placement),
        missing_(graph.inputs),
        devices_(static_cast<size_t>(devices)) {}

  /// The end of the last operator.
  int64_t run() {
    for (int op = 0; op < static_cast<int>(missing_.size()); ++op)
      if (missing_[op] == 0) make_ready(op);
    start_operators();
    while (!events_.empty()) {
      now_ns_ = events_.top().time_ns;
      while (!events_.empty() && events_.top().time_ns == now_ns_) {
        const Event event = events_.top();
        events_.pop();
        if (event.kind == Kind::finish)
          finish(event.op);
        else
          arrive(event.op, event.device);
      }
      start_operators();
    }
    return now_ns_;
  }

 private:
  enum class Kind { finish, arrival };
  struct Event {
    int64_t time_ns;
    Kind kind;
    int op;
    int device;  // where it runs, or where its tensor arrives
    bool operator>(const Event& other) const { return time_ns > other.time_ns; }
  };
  template <class T>
  using LeastFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;
  struct Transfer {
    int op;
    int to;
  };
  struct Device {
    LeastFirst<std::pair<int64_t, int>> ready;  // (ready time, operator)
    bool busy = false;
    std::deque<Transfer> pending;
    bool sending = false;
  };

  void make_ready(int op) { devices_[placement_[op]].ready.push({now_ns_, op}); }

  void give(int reader) {
    if (--missing_[reader] == 0) make_ready(reader);
  }

  void start_operators() {
    for (auto& device : devices_) {
      if (device.busy || device.ready.empty()) continue;
      const int op = device.ready.top().second;
      device.ready.pop();
      device.busy = true;
      events_.push({now_ns_ + graph_.cost_ns[op], Kind::finish, op, placement_[op]});
    }
  }

  void start_transfer(Device& sender) {
    if (sender.sending || sender.pending.empty()) return;
    const Transfer transfer = sender.pending.front();
    sender.pending.pop_front();
    sender.sending = true;
    events_.push({now_ns_ + graph_.wire_ns[transfer.op], Kind::arrival, transfer.op, transfer.to});
  }

  /// Readers on the same device have the tensor at once; every other device is sent one copy.
  void finish(int op) {
    const int from = placement_[op];
    auto& device = devices_[from];
    device.busy = false;
    std::set<int> sent;
    for (const int reader : graph_.readers[op]) {
      const int to = placement_[reader];
      if (to == from)
        give(reader);
      else if (sent.insert(to).second)
        device.pending.push_back({op, to});
    }
    start_transfer(device);
  }

  void arrive(int op, int at) {
    auto& sender = devices_[placement_[op]];
    sender.sending = false;
    for (const int reader : graph_.readers[op])
      if (placement_[reader] == at) give(reader);
    start_transfer(sender);
  }

  const TextbookGraph& graph_;
  const std::vector<int32_t>& placement_;
  std::vector<int> missing_;
  std::vector<Device> devices_;
  LeastFirst<Event> events_;
  int64_t now_ns_ = 0;
};

}  // namespace trinity::bench
