#pragma once

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "simulator/metrics.h"
#include "simulator/problem.h"

namespace trinity {

/// Finds the task and the transfer that each input of a task of a timeline came from. Not
/// thread-safe.
class Inputs {
 public:
  /// Keeps references to all three.
  Inputs(const Problem& problem, std::span<const int32_t> placement, const Timeline& timeline);

  struct Source {
    int64_t arrival_ns = 0;
    int32_t task = -1;      ///< producer; of an accumulated tensor: its last task to end
    int32_t transfer = -1;  ///< index in Timeline::transfers; -1 on the producer's device
  };
  /// Inputs of `task`, in the operator's argument order. The reference is valid until the next
  /// call.
  const std::vector<Source>& of(int32_t task);
  /// The input that arrived last; ties: lowest producer, then earlier input. Task -1 and arrival 0
  /// if there is none.
  Source latest(int32_t task);

 private:
  using Key = std::pair<int32_t, int32_t>;  // output, receiver

  Key key(int32_t transfer) const;
  Source source(int32_t task, int32_t tensor) const;
  Source accumulated(int32_t reader, int32_t producer, int32_t output) const;
  int32_t transfer(int32_t task, int32_t output, int32_t to) const;

  const Problem& problem_;
  std::span<const int32_t> placement_;
  const Timeline& timeline_;
  // transfers sorted by task and key; start of each task's transfers
  std::vector<int32_t> by_task_, first_;
  std::vector<Source> sources_;
};

/// One link of the critical path.
struct PathStep {
  enum class Kind : uint8_t { compute, collective, transfer };
  Kind kind = Kind::compute;
  /// Task, or index in Timeline::collectives or Timeline::transfers.
  int32_t index = -1;
  /// When its last input had arrived (collective: its last member's; transfer: when it was
  /// enqueued). Equals the end of the previous link.
  int64_t ready_ns = 0;
  int64_t start_ns = 0, end_ns = 0;

  bool operator==(const PathStep&) const = default;
};

/// The chain of events that ends a step, and its time by cause. The four causes sum to the end of
/// the last task, which is the step time unless the rules count trailing pauses
/// (SimulationRules::last_event).
struct CriticalPath {
  std::vector<PathStep> steps;  ///< in order of time
  int64_t compute_ns = 0;       ///< running on devices
  int64_t wire_ns = 0;          ///< transfers, start to end
  int64_t collective_ns = 0;    ///< collectives, start to end
  int64_t queue_ns = 0;         ///< waiting for a device, a send queue or a link

  bool operator==(const CriticalPath&) const = default;
};

/// Follows data dependencies back from the task that ends last (ties: lowest number): from a task
/// to its latest input (Inputs::latest), through the transfer that brought it; from a collective to
/// the member that was ready last (ties: lowest number).
CriticalPath critical_path(const Problem& problem, std::span<const int32_t> placement,
                           const Timeline& timeline);

/// Purpose of a message.
enum class MessagePurpose : uint8_t {
  splits,       ///< collectives between shards of operators, in forward and backward passes
  activations,  ///< tensors sent between devices, in forward and backward passes
  weights,      ///< gathered for use, or after their update
  gradients,    ///< reduced for updates, and sent to them
};
inline constexpr size_t kPurposes = 4;
template <>
inline constexpr auto kWords<MessagePurpose> = words("purpose", "splits", "activations", "weights", "gradients");

/// Communication that no computation hides.
struct Exposure {
  /// Per device: time in which it ran nothing while a transfer towards it was queued or under way,
  /// or while a collective waited for other members or ran after its own member was ready.
  std::vector<int64_t> device_ns;
  /// The same time by purpose; sums to device_ns. Concurrent messages count as the first purpose in
  /// the order of MessagePurpose.
  std::vector<std::array<int64_t, kPurposes>> purpose_ns;
  int64_t any_ns = 0;  ///< time in which at least one device was exposed

  bool operator==(const Exposure&) const = default;
};

Exposure exposed_communication(const Problem& problem, std::span<const int32_t> placement,
                               const Timeline& timeline);

/// Time of one operator type in a step.
struct KindShare {
  std::string type;
  int32_t tasks = 0;
  int64_t total_ns = 0;  ///< sum of end - start; members of collectives count their collective

  bool operator==(const KindShare&) const = default;
};

/// All operator types of a timeline, by falling total, ties by name.
std::vector<KindShare> by_type(const Problem& problem, const Timeline& timeline);

}  // namespace trinity
