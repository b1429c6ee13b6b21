#pragma once

#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "simulator/metrics.h"
#include "simulator/problem.h"

namespace trinity {

/// Which task, and which transfer, each input of a task of a timeline came from.
class Inputs {
 public:
  /// Keeps references to all three.
  Inputs(const Problem& problem, std::span<const int32_t> placement, const Timeline& timeline);

  struct Source {
    int64_t arrival_ns = 0;
    int32_t task = -1;      ///< producer; of an accumulated tensor the last of its tasks to end
    int32_t transfer = -1;  ///< position in Timeline::transfers; -1 on the producer's device
  };
  /// The inputs of `task`, in the operator's argument order. The reference lives until the next
  /// call.
  const std::vector<Source>& of(int32_t task);
  /// The input that arrived last; ties go to the lowest producer, then to the earlier input. Task
  /// -1 and arrival 0 where there is none.
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
  std::vector<int32_t> by_task_, first_;  // transfers by task and key; where those of a task begin
  std::vector<Source> sources_;
};

/// One link of the chain of events that ends a step.
struct PathStep {
  enum class Kind : uint8_t { compute, collective, transfer };
  Kind kind = Kind::compute;
  /// The task, or the position in Timeline::collectives or Timeline::transfers.
  int32_t index = -1;
  /// When its last input had arrived; of a collective, its last member's; of a transfer, when it
  /// was enqueued. This is the previous link's end.
  int64_t ready_ns = 0;
  int64_t start_ns = 0, end_ns = 0;

  bool operator==(const PathStep&) const = default;
};

/// The chain, and the time it spends in each way. The four shares sum to the end of the last task,
/// which is the step time unless the rules count trailing pauses (SimulationRules::last_event).
struct CriticalPath {
  std::vector<PathStep> steps;  ///< in order of time
  int64_t compute_ns = 0;       ///< running on devices
  int64_t wire_ns = 0;          ///< transfers, from start to end
  int64_t collective_ns = 0;    ///< collectives, from start to end
  int64_t queue_ns = 0;         ///< waiting for a device, a send queue or a link

  bool operator==(const CriticalPath&) const = default;
};

/// Follows data dependencies back from the task that ends last (ties: the lowest number): from a
/// task to its latest-arriving input (Inputs::latest), through the transfer that brought it; from a
/// collective to the member that was ready last (ties: the lowest number), which is what all others
/// waited for.
CriticalPath critical_path(const Problem& problem, std::span<const int32_t> placement,
                           const Timeline& timeline);

/// What a message is for.
enum class MessagePurpose : uint8_t {
  splits,       ///< collectives between parts of operators, in the passes
  activations,  ///< tensors from one device to another, in the passes
  weights,      ///< gathered for their use, or when they are updated
  gradients,    ///< summed for updates, and sent to them
};
inline constexpr size_t kPurposes = 4;
const char* purpose_name(MessagePurpose purpose);

/// Communication that no computation hides.
struct Exposure {
  /// Per device: how long it ran nothing while a transfer towards it was queued or under way, or a
  /// collective waited for other members or ran after its own member was ready.
  std::vector<int64_t> device_ns;
  /// The same by what it was for: their sum is device_ns. Where several are under way at a time, it
  /// counts to the first in the order of MessagePurpose.
  std::vector<std::array<int64_t, kPurposes>> purpose_ns;
  int64_t any_ns = 0;  ///< how long that held for at least one device

  bool operator==(const Exposure&) const = default;
};

Exposure exposed_communication(const Problem& problem, std::span<const int32_t> placement,
                               const Timeline& timeline);

/// The share of one operator type in a step.
struct KindShare {
  std::string type;
  int32_t tasks = 0;
  int64_t total_ns = 0;  ///< sum of end - start; members of collectives count their collective

  bool operator==(const KindShare&) const = default;
};

/// All types of a timeline, the largest total first, ties by name.
std::vector<KindShare> by_type(const Problem& problem, const Timeline& timeline);

}  // namespace trinity
