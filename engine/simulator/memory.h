#pragma once

#include "simulator/record.h"

namespace trinity {

/// A tensor or workspace that a device holds over an interval of its slots.
struct HeldTensor {
  int32_t first = 0, last = 0;  ///< positions in the record
  int64_t bytes = 0;
  int32_t task = 0;     ///< producer
  int32_t output = -1;  ///< index of its output; -1: its workspace
  bool copy = false;    ///< true on a device that received it
};

/// Computes the peak memory of every device from a finished run, by slots (rules: simulator.h).
/// Slot k of a device is position first_position + k of the record, so a level is a running sum
/// over positions. Not thread-safe.
class SlotMemory {
 public:
  explicit SlotMemory(const Problem& problem);

  /// Sets peak_memory_bytes of all devices. Fills memory, and owners if requested, of `timeline` if
  /// given. devices: cluster index of each device that placement and record name; empty: identical.
  void account(std::span<const int32_t> placement, std::span<const int32_t> devices,
               const Record& record, Metrics& metrics, Timeline* timeline);

 private:
  /// First and last position at which something is held.
  struct Held {
    int32_t first = -1, last = -1;
  };

  void begin(std::span<const int32_t> placement, const Record& record);
  void place_copies();
  int32_t slot_at(int32_t device, int64_t time_ns, int32_t from);
  int32_t search(int32_t device, int64_t time_ns) const;
  void account_swept();
  void begin_uses(int32_t run);
  void use_copies();
  void use_swept(int32_t run);
  void hold_swept(int32_t run);
  const int32_t* positions(int32_t run) const {
    return record_->position.data() +
           static_cast<size_t>(problem_.operators()) * static_cast<size_t>(run);
  }
  void account_tasks();
  void place_members();
  void visit(int32_t task, size_t first_copy, size_t end_copy);
  void note_readers(int32_t op, int32_t micro);
  void note_reader(int32_t task, int32_t op, int32_t tensor, int32_t& last) const;
  void hold_output(int32_t task, int32_t op, int32_t output, Held held);
  /// Records a task's output, or its workspace (output -1); see HeldTensor.
  void hold(Held held, int64_t bytes, int32_t task, int32_t output, bool copy = false) {
    delta_[held.first] += bytes;
    delta_[static_cast<size_t>(held.last) + 1] -= bytes;
    if (collects_ && bytes > 0)
      held_.push_back({held.first, held.last, bytes, task, output, copy});
  }
  void accumulate(size_t tensor, Held held);
  void hold_accumulated();
  int32_t& last_use(int32_t output, int32_t device) {
    return last_use_[static_cast<size_t>(output) * devices_ + static_cast<size_t>(device)];
  }
  void sum(Metrics& metrics, std::vector<std::vector<MemoryLevel>>* levels);
  /// Fills the owners of the devices' peaks, and what they hold then.
  void own(Timeline& timeline) const;
  MemoryOwner owner_of(const HeldTensor& tensor, int32_t device, int32_t peak) const;
  MemoryOwner kind_of(int32_t op, int32_t output) const;
  struct Uses;
  void add_uses(int32_t micro, int32_t op, int32_t output, int32_t device, Uses& uses) const;
  int32_t last_position(int32_t task) const;
  int64_t framework_bytes(size_t device) const {
    return problem_.framework_bytes(cluster_devices_.empty() ? static_cast<int32_t>(device)
                                                             : cluster_devices_[device]);
  }

  const Problem& problem_;
  const bool members_;
  size_t devices_ = 0;                  // number of devices in the record
  std::vector<int32_t> producer_;       // per output
  std::vector<int64_t> held_bytes_;     // per output: 0 for views
  std::vector<int32_t> view_, viewed_;  // view operators, descending, and the edges they view
  std::vector<bool> accumulates_;  // per output: read once per step, written in every micro-batch
  bool accumulating_ = false;           // tensors read by updates accumulate over micro-batches
  std::span<const int32_t> placement_, cluster_devices_;
  const Record* record_ = nullptr;
  std::vector<int64_t> delta_;  // per position: bytes allocated minus bytes released before
  std::vector<int32_t> hints_;  // [from][to]: where to start the search for an instant's slot
  std::vector<Held> copy_;      // per copy: slot of its start, and slot of its end on the sender
  std::vector<int32_t> last_;   // sweep: [run][output], then per copy: slot of its last use
  std::vector<Held> accumulated_;   // per output

  bool collects_ = false;         // owners are requested
  std::vector<HeldTensor> held_;  // everything held, if collects_
  std::vector<bool> used_;        // per device: something runs there
  std::vector<int32_t> peak_;     // per device: the first position whose level is its peak
  // per forward operator: its input-gradient operator, if W operators are separate
  std::vector<int32_t> input_part_;

  // Used when visiting task by task.
  std::vector<int32_t> last_use_;   // [output][device] of the current task
  std::vector<Held> member_;        // per task: slots of start and end of its collective
  std::vector<int32_t> view_last_;  // per task: last use of the view's output
  std::vector<bool> ended_;         // per operator: its last micro-batch to end has been visited
};

/// Memory model of the published simulator (papers/notes.md "Trinity: the published simulator"):
/// all outputs of an operator are allocated at its start and released one microsecond before its
/// last reader ends (never without a reader). At one instant allocations come before releases.
void account_outputs_only(const Problem& problem, std::span<const int32_t> placement,
                          const Record& record, Metrics& metrics);

}  // namespace trinity
