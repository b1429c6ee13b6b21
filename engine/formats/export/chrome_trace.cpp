#include "formats/export/chrome_trace.h"

#include <fmt/compile.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <queue>

#include "base/error.h"
#include "base/index.h"
#include "base/json.h"
#include "simulator/analysis.h"

namespace {

/// Nanoseconds, written as microseconds with three decimals.
struct Micros {
  int64_t ns;
};

}  // namespace

template <>
struct fmt::formatter<Micros> {
  constexpr auto parse(format_parse_context& context) { return context.begin(); }
  template <typename Context>
  auto format(Micros time, Context& context) const {
    return fmt::format_to(context.out(), FMT_COMPILE("{}.{:03}"), time.ns / 1000, time.ns % 1000);
  }
};

namespace trinity {
namespace {

/// Assigns slices, in order of start, to the lowest free row.
class Lanes {
 public:
  int32_t take(int64_t start_ns, int64_t end_ns) {
    while (!busy_.empty() && busy_.top().first <= start_ns) {
      free_.push(busy_.top().second);
      busy_.pop();
    }
    int32_t lane = count_;
    if (free_.empty()) {
      ++count_;
    } else {
      lane = free_.top();
      free_.pop();
    }
    busy_.push({end_ns, lane});
    return lane;
  }
  int32_t count() const { return count_; }

 private:
  template <typename T>
  using LeastFirst = std::priority_queue<T, std::vector<T>, std::greater<>>;
  LeastFirst<std::pair<int64_t, int32_t>> busy_;  // end, row
  LeastFirst<int32_t> free_;
  int32_t count_ = 0;
};

/// Thread and time of a slice.
struct Slice {
  int32_t device = -1, thread = 0;
  int64_t start_ns = 0, end_ns = 0;
};

/// Threads of every device: "compute", then transfers by receiver, then collectives.
class Threads {
 public:
  Threads(const Problem& problem, const std::vector<int32_t>& placement, const Timeline& timeline)
      : problem_(problem), placement_(placement), timeline_(timeline) {
    lay_transfers();
    lay_collectives();
    number();
  }

  /// Names by thread number.
  const std::vector<std::string>& names(int32_t device) const { return names_[device]; }
  Slice transfer(size_t i) const {
    const auto& sent = timeline_.transfers[i];
    return {sent.from, first_.at(group(sent)) + transfer_lane_[i], sent.start_ns, sent.end_ns};
  }
  /// A collective on a member's device.
  Slice collective(size_t run, int32_t device) const {
    const auto& ran = timeline_.collectives[run];
    const int32_t lane = collective_lane_.at({run, device});
    return {device, first_.at({device, kCollectives}) + lane, ran.start_ns, ran.end_ns};
  }

 private:
  using Group = std::pair<int32_t, int32_t>;  // device; receiver, kSend or kCollectives
  static constexpr int32_t kSend = -1;
  static constexpr int32_t kCollectives = std::numeric_limits<int32_t>::max();

  Group group(const Transfer& sent) const {
    return {sent.from, problem_.rules().queue == QueueModel::sender ? kSend : sent.to};
  }

  void lay_transfers() {
    for (const auto& sent : timeline_.transfers)
      transfer_lane_.push_back(lanes_[group(sent)].take(sent.start_ns, sent.end_ns));
  }

  void lay_collectives() {
    std::vector<size_t> runs(timeline_.collectives.size());
    for (size_t i = 0; i < runs.size(); ++i) runs[i] = i;
    std::stable_sort(runs.begin(), runs.end(), [&](size_t a, size_t b) {
      return timeline_.collectives[a].start_ns < timeline_.collectives[b].start_ns;
    });
    for (const size_t i : runs) {
      const auto& run = timeline_.collectives[i];
      for (const int32_t member : problem_.graph().collectives()[run.collective].members) {
        const int32_t device = placement_[member];
        const auto [lane, added] = collective_lane_.insert({{i, device}, 0});
        if (added) lane->second = lanes_[{device, kCollectives}].take(run.start_ns, run.end_ns);
      }
    }
  }

  void number() {
    names_.assign(at(problem_.devices()), {"compute"});
    for (const auto& [group, lanes] : lanes_) {
      const auto [device, kind] = group;
      auto& names = names_[device];
      first_[group] = static_cast<int32_t>(names.size());
      const std::string name = kind == kSend ? "send"
                               : kind == kCollectives
                                   ? "collectives"
                                   : "to " + problem_.cluster().device(kind).name;
      for (int32_t lane = 0; lane < lanes.count(); ++lane)
        names.push_back(lane == 0 ? name : fmt::format("{} ({})", name, lane + 1));
    }
  }

  const Problem& problem_;
  const std::vector<int32_t>& placement_;
  const Timeline& timeline_;
  std::map<Group, Lanes> lanes_;
  std::map<Group, int32_t> first_;  // thread of row 0
  std::vector<int32_t> transfer_lane_;
  std::map<std::pair<size_t, int32_t>, int32_t> collective_lane_;  // by run and device
  std::vector<std::vector<std::string>> names_;
};

class TraceWriter {
 public:
  TraceWriter(const Problem& problem, const Timeline& timeline)
      : problem_(problem),
        timeline_(timeline),
        placement_(placement_of(problem, timeline)),
        threads_(problem, placement_, timeline) {
    for (const auto& op : problem.graph().operators()) {
      names_.push_back(json_text(op.name));
      types_.push_back(json_text(op.type));
    }
    for (size_t i = 0; i < timeline.collectives.size(); ++i) {
      const auto& run = timeline.collectives[i];
      runs_[{run.collective, run.micro_batch}] = i;
    }
  }

  std::string write() {
    const auto last = std::max_element(timeline_.end_ns.begin(), timeline_.end_ns.end());
    const int64_t step = last == timeline_.end_ns.end() ? 0 : *last;
    out_.reserve(timeline_.end_ns.size() * 256 + timeline_.transfers.size() * 768 + 4096);
    append(FMT_COMPILE("{{\"displayTimeUnit\":\"ns\",\"otherData\":{{\"graph\":{},\"cluster\":{},"
                       "\"step_time_s\":{}.{:09}}},\"traceEvents\":["),
           json_text(problem_.graph().name()), json_text(problem_.cluster().name()),
           step / 1000000000, step % 1000000000);
    write_names();
    write_tasks();
    write_transfers();
    write_collectives();
    write_flows();
    write_memory();
    out_.append(std::string_view("\n]}\n"));
    return fmt::to_string(out_);
  }

 private:
  /// Every operator runs in the last micro-batch.
  static std::vector<int32_t> placement_of(const Problem& problem, const Timeline& timeline) {
    TRINITY_CHECK_EQ(timeline.device.size(), at(problem.operators()) * at(timeline.micro_batches));
    return {timeline.device.end() - problem.operators(), timeline.device.end()};
  }

  template <typename Format, typename... Values>
  void append(const Format& format, Values&&... values) {
    fmt::format_to(fmt::appender(out_), format, std::forward<Values>(values)...);
  }

  void begin_event() {
    out_.append(std::string_view(first_event_ ? "\n" : ",\n"));
    first_event_ = false;
  }

  void write_names() {
    for (int32_t d = 0; d < problem_.devices(); ++d) {
      const auto& device = problem_.cluster().device(d);
      begin_event();
      append(FMT_COMPILE(R"({{"ph":"M","pid":{},"name":"process_name","args":{{"name":{}}}}})"), d,
             json_text(fmt::format("{} ({})", device.name, problem_.cluster().type_of(d).name)));
      begin_event();
      append(FMT_COMPILE(
                 R"({{"ph":"M","pid":{},"name":"process_sort_index","args":{{"sort_index":{}}}}})"),
             d, d);
      const auto& names = threads_.names(d);
      for (size_t t = 0; t < names.size(); ++t) {
        begin_event();
        append(FMT_COMPILE(
                   R"({{"ph":"M","pid":{},"tid":{},"name":"thread_name","args":{{"name":{}}}}})"),
               d, t, json_text(names[t]));
        begin_event();
        append(FMT_COMPILE(R"({{"ph":"M","pid":{},"tid":{},"name":"thread_sort_index",)"
                           R"("args":{{"sort_index":{}}}}})"),
               d, t, t);
      }
    }
  }

  /// Writes a slice except its arguments.
  void begin_slice(const Slice& slice, std::string_view name, std::string_view category) {
    begin_event();
    append(FMT_COMPILE(
               R"({{"ph":"X","pid":{},"tid":{},"ts":{},"dur":{},"name":{},"cat":"{}","args":{{)"),
           slice.device, slice.thread, Micros{slice.start_ns},
           Micros{slice.end_ns - slice.start_ns}, name, category);
  }

  void write_tasks() {
    const int32_t n = problem_.operators();
    for (int32_t task = 0; task < n * timeline_.micro_batches; ++task) {
      const auto& op = problem_.graph().op(task % n);
      if (op.collective >= 0 || timeline_.end_ns[task] < 0) continue;
      int64_t bytes = 0;
      for (const int32_t tensor : op.outputs) bytes += problem_.graph().tensor(tensor).bytes;
      const int64_t ready = timeline_.ready_ns[task];
      begin_slice(slice_of(task), names_[task % n], choice_name(op.phase));
      append(FMT_COMPILE(
                 R"("operator":{},"type":{},"micro_batch":{},"flops":{},"bytes":{},"ready_us":{},)"
                 R"("queued_us":{}}}}})"),
             names_[task % n], types_[task % n], task / n + 1,
             std::isfinite(op.flops) ? op.flops : 0, bytes, Micros{ready},
             Micros{timeline_.start_ns[task] - ready});
    }
  }

  void write_transfers() {
    const int32_t n = problem_.operators();
    std::vector<std::string> devices;
    for (const auto& device : problem_.cluster().devices())
      devices.push_back(json_text(device.name));
    for (size_t i = 0; i < timeline_.transfers.size(); ++i) {
      const auto& sent = timeline_.transfers[i];
      const int32_t op = sent.task % n;
      std::string name = names_[op];
      if (problem_.graph().op(op).outputs.size() > 1)  // "operator:output"
        name.insert(name.size() - 1, fmt::format(":{}", sent.output));
      begin_slice(threads_.transfer(i), name, "transfer");
      append(FMT_COMPILE(
                 R"("operator":{},"type":{},"micro_batch":{},"to":{},"bytes":{},"ready_us":{},)"
                 R"("queued_us":{}}}}})"),
             names_[op], types_[op], sent.task / n + 1, devices[sent.to], sent.bytes,
             Micros{sent.enqueued_ns}, Micros{sent.start_ns - sent.enqueued_ns});
    }
  }

  void write_collectives() {
    for (size_t i = 0; i < timeline_.collectives.size(); ++i) {
      const auto& run = timeline_.collectives[i];
      const auto& collective = problem_.graph().collectives()[run.collective];
      std::vector<bool> written(at(problem_.devices()), false);
      for (const int32_t member : collective.members) {
        const int32_t device = placement_[member];
        if (written[device]) continue;
        written[device] = true;
        const int64_t ready = timeline_.ready_ns[run.micro_batch * problem_.operators() + member];
        begin_slice(threads_.collective(i, device), json_text(collective.name), "collective");
        append(FMT_COMPILE(R"("operator":{},"type":{},"micro_batch":{},"bytes":{},"ready_us":{},)"
                           R"("queued_us":{}}}}})"),
               names_[member], types_[member], run.micro_batch + 1, collective.bytes, Micros{ready},
               Micros{run.start_ns - ready});
      }
    }
  }

  /// The slice of a task: on "compute", or its collective's.
  Slice slice_of(int32_t task) const {
    const int32_t n = problem_.operators();
    const int32_t collective = problem_.graph().op(task % n).collective;
    if (collective >= 0)
      return threads_.collective(runs_.at({collective, task / n}), placement_[task % n]);
    return {placement_[task % n], 0, timeline_.start_ns[task], timeline_.end_ns[task]};
  }

  /// [transfer]: the first reader on the receiver; -1: none.
  std::vector<int32_t> first_readers() const {
    std::vector<int32_t> first(timeline_.transfers.size(), -1);
    Inputs inputs(problem_, placement_, timeline_);
    for (size_t task = 0; task < timeline_.end_ns.size(); ++task) {
      if (timeline_.end_ns[task] < 0) continue;
      for (const auto& source : inputs.of(static_cast<int32_t>(task))) {
        if (source.transfer < 0 || first[source.transfer] >= 0) continue;
        if (placement_[task % placement_.size()] != timeline_.transfers[source.transfer].to)
          continue;  // another receiver of a broadcast
        first[source.transfer] = static_cast<int32_t>(task);
      }
    }
    return first;
  }

  void write_flows() {
    const auto readers = first_readers();
    for (size_t i = 0; i < timeline_.transfers.size(); ++i) {
      const Slice sent = threads_.transfer(i);
      write_flow(2 * i + 1, slice_of(timeline_.transfers[i].task), sent);
      if (readers[i] >= 0) write_flow(2 * i + 2, sent, slice_of(readers[i]));
    }
  }

  /// An arrow from the last nanosecond of one slice (inside it) to the start of another.
  void write_flow(size_t id, const Slice& from, const Slice& to) {
    write_flow_end(R"("ph":"s")", id, from, std::max(from.start_ns, from.end_ns - 1));
    write_flow_end(R"("ph":"f","bp":"e")", id, to, to.start_ns);
  }

  void write_flow_end(std::string_view phase, size_t id, const Slice& slice, int64_t time_ns) {
    begin_event();
    append(FMT_COMPILE(R"({{{},"id":{},"pid":{},"tid":{},"ts":{},"name":"data","cat":"flow"}})"),
           phase, id, slice.device, slice.thread, Micros{time_ns});
  }

  void write_memory() {
    for (size_t d = 0; d < timeline_.memory.size(); ++d)
      for (const auto& level : timeline_.memory[d]) {
        begin_event();
        append(
            FMT_COMPILE(R"({{"ph":"C","pid":{},"ts":{},"name":"memory","args":{{"bytes":{}}}}})"),
            d, Micros{level.time_ns}, level.bytes);
      }
  }

  const Problem& problem_;
  const Timeline& timeline_;
  std::vector<int32_t> placement_;
  Threads threads_;
  std::vector<std::string> names_, types_;              // quoted, per operator
  std::map<std::pair<int32_t, int32_t>, size_t> runs_;  // by collective and micro-batch
  fmt::memory_buffer out_;
  bool first_event_ = true;
};

}  // namespace

std::string chrome_trace(const Problem& problem, const Timeline& timeline) {
  return TraceWriter(problem, timeline).write();
}

}  // namespace trinity
