#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "cluster/library.h"
#include "cluster/routes.h"

namespace trinity {

class Hasher;

/// What kernels of one operator type reach, where it differs from the device's.
struct Efficiency {
  std::optional<double> compute, memory;  ///< parts of the peaks
  std::optional<double> launch_s;
  std::optional<double> contention;
  std::optional<double> dispatch_s;

  bool operator==(const Efficiency&) const = default;
};

/// A kind of device. Rates are peak; `*_efficiency` is the part of the peak that kernels reach.
struct DeviceType {
  std::string name;
  std::map<DType, double> peak_flops_per_s;  ///< per element type; float32 is needed
  double memory_bandwidth_bytes_per_s = 0;
  int64_t memory_bytes = 0;
  int64_t reserved_memory_bytes = 0;  ///< of the driver: open to no step
  /// What the training software holds on a device that it uses, whatever runs there: context,
  /// buffers of libraries, workspaces. A part of the step's peak.
  int64_t framework_bytes = 0;
  /// Whether gradients of weights have buffers that stay from step to step.
  bool keeps_gradients = false;
  double launch_s = 0;                ///< added to every operator
  /// What the host needs to dispatch a kernel, for which the device waits: strategy/dispatch.h.
  double dispatch_s = 0;
  double compute_efficiency = 0.5;    ///< convolutions and matrix products
  double memory_efficiency = 0.75;
  /// Columns at which a matrix product reaches half of compute_efficiency (Hockney's n_1/2); see
  /// cost.h.
  double half_width = 0;
  /// Whether element-wise operators that follow each other are one kernel; see cost.h.
  bool fuses_elementwise = false;
  /// Whether matrix products of one input are one kernel (queries, keys and values); see cost.h.
  bool joins_products = false;
  /// How much of the lesser of arithmetic and traffic the greater hides, 0 to 1.
  double overlap = 1;
  /// How many times as long operators take while all devices of this type on a node compute, which
  /// share its memory's bandwidth; see simulator.h.
  double contention = 1;
  std::map<std::string, Efficiency, std::less<>> operators;  ///< by operator type, see cost.h

  bool operator==(const DeviceType&) const = default;
};

struct Device {
  std::string name;  ///< unique in its cluster
  int32_t type = 0;  ///< index into Cluster::device_types()
  double speed = 1;  ///< operator times are divided by this (stragglers below 1)
  std::string node;  ///< the machine it sits in, for hierarchical collectives
};

/// A connection between two endpoints: devices, or switches named only here. Full duplex gives
/// each direction the whole bandwidth, half duplex shares it.
struct Link {
  std::string from, to;
  double bandwidth_bytes_per_s = 0;
  double latency_s = 0;
  bool half_duplex = false;
};

/// A switch with a bandwidth of its own, shared by all routes through it. Other switches need no
/// entry: they have no limit.
struct Switch {
  std::string name;
  double bandwidth_bytes_per_s = 0;
};

/// What a transfer occupies (see the simulator's rules).
enum class QueueModel : uint8_t {
  sender,    ///< the producer's one send queue
  pair,      ///< one queue per ordered pair of devices
  none,      ///< nothing: transfers never wait
  route,     ///< every channel of the route at once, one transfer at a time
  fair,      ///< a max-min fair share of every channel of the route
  receiver,  ///< the receiving device, which makes the copy itself before it computes
};
QueueModel parse_queue_model(std::string_view name);
const char* queue_model_name(QueueModel queue);

/// Everything a cluster is described by, before it is checked.
struct ClusterSpec {
  std::string name;
  std::vector<DeviceType> device_types;
  std::vector<Device> devices;
  std::vector<Link> links;
  std::vector<Switch> switches;
  QueueModel queue = QueueModel::sender;
  /// What carries out collectives; without one they cost what the plain formulas say.
  std::optional<CollectiveLibrary> collectives;
};

/// The most devices of a cluster.
inline constexpr int32_t kMostDevices = 131072;
/// With more devices nothing goes over all pairs of them.
inline constexpr int32_t kPairedDevices = 4096;

/// Devices and the wires between them (see Routes). A route passes through as few other devices as
/// possible, takes the fewest links and, among those, the widest. Immutable.
class Cluster {
 public:
  /// Throws ArgumentError for: no device, a repeated name, a missing or non-positive rate, a link
  /// from an endpoint to itself, a switch that no link reaches, two devices without a route.
  explicit Cluster(ClusterSpec spec);

  const std::string& name() const { return spec_.name; }
  int32_t device_count() const { return static_cast<int32_t>(spec_.devices.size()); }
  const Device& device(int32_t d) const { return spec_.devices[d]; }
  const DeviceType& type_of(int32_t d) const { return spec_.device_types[device(d).type]; }
  const std::vector<Device>& devices() const { return spec_.devices; }
  const std::vector<Link>& links() const { return spec_.links; }
  QueueModel queue() const { return spec_.queue; }
  /// Of every device type the first one that is equal to it but for its name.
  std::vector<int32_t> kinds() const;
  const std::optional<CollectiveLibrary>& library() const { return spec_.collectives; }

  /// Bytes of device memory open to a training step.
  int64_t capacity_bytes(int32_t d) const {
    return type_of(d).memory_bytes - type_of(d).reserved_memory_bytes;
  }
  /// What of these is left for weights, states and tensors.
  int64_t room_bytes(int32_t d) const { return capacity_bytes(d) - type_of(d).framework_bytes; }
  /// Sum of the latencies on the route, and its narrowest bandwidth. from != to.
  double latency_s(int32_t from, int32_t to) const { return routes_.wire(from, to).latency_s; }
  double bandwidth_bytes_per_s(int32_t from, int32_t to) const {
    return routes_.wire(from, to).bandwidth_bytes_per_s;
  }
  /// Both at once.
  Wire wire(int32_t from, int32_t to) const { return routes_.wire(from, to); }

  /// Channels on the route, in order. from != to.
  Route route(int32_t from, int32_t to) const { return routes_.route(from, to); }
  const std::vector<Channel>& channels() const { return routes_.channels(); }
  /// "a -> b" for a direction of a link, "a - b" for a half-duplex one, a switch's own name; where
  /// several have one name (parallel links) " #2", " #3", ... behind those that come later.
  std::string channel_name(int32_t channel) const;
  const Routes& routes() const { return routes_; }

  /// The device called `name`, or -1.
  int32_t find(std::string_view name) const;
  std::vector<std::string> device_names() const;
  /// Equal for clusters on which everything takes equally long. It goes over the routes of all
  /// pairs: 0.1 ms for 32 devices, seconds for thousands; from kPairedDevices on over the wires of
  /// every device within its piece (see Routes) and to a device of every other kind of piece.
  uint64_t fingerprint() const;

 private:
  static ClusterSpec checked(ClusterSpec spec);
  std::string plain_name(const Channel& channel) const;
  void add_pairs(Hasher& hash) const;
  void add_pieces(Hasher& hash) const;

  ClusterSpec spec_;
  Routes routes_;
};

}  // namespace trinity
