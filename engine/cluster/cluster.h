#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "base/dtype.h"
#include "base/words.h"
#include "cluster/library.h"
#include "cluster/routes.h"

namespace trinity {

class Hasher;

/// Efficiencies that kernels of one operator type reach, if they differ from the device's.
struct Efficiency {
  std::optional<double> compute, memory;  ///< fractions of the peaks
  std::optional<double> launch_s;
  std::optional<double> contention;
  std::optional<double> dispatch_s;

  bool operator==(const Efficiency&) const = default;
};

/// A device model. Rates are peaks; `*_efficiency` is the fraction of the peak that kernels reach.
struct DeviceType {
  std::string name;
  std::map<DType, double> peak_flops_per_s;  ///< per element type; float32 is required
  double memory_bandwidth_bytes_per_s = 0;
  int64_t memory_bytes = 0;
  int64_t reserved_memory_bytes = 0;  ///< held by the driver, unavailable to a step
  /// Memory that the training software takes on a device that it uses: context, library buffers,
  /// workspaces. Part of a step's peak.
  int64_t framework_bytes = 0;
  /// Buffers for weight gradients stay allocated between steps.
  bool keeps_gradients = false;
  /// Between the device and its host, in each direction; and of the host's memory, the device's share of its node: what
  /// offloaded states need (strategy/offload.h). 0: not known.
  double host_bandwidth_bytes_per_s = 0, host_memory_bandwidth_bytes_per_s = 0;
  double launch_s = 0;                ///< added to every operator
  /// Host time to dispatch a kernel, if the device waits for it: strategy/dispatch.h.
  double dispatch_s = 0;
  double compute_efficiency = 0.5;    ///< convolutions and matmuls
  double memory_efficiency = 0.75;
  /// Columns at which a matmul reaches half of compute_efficiency (Hockney's n_1/2); see cost.h.
  double half_width = 0;
  /// Consecutive element-wise operators are one kernel; see cost.h.
  bool fuses_elementwise = false;
  /// Matmuls of one input are one kernel (queries, keys and values); see cost.h.
  bool joins_products = false;
  /// Fraction (0 to 1) of the smaller of arithmetic and memory time that the larger hides.
  double overlap = 1;
  /// Slowdown factor of operators while all devices of this type on a node compute and share its
  /// memory bandwidth; see simulator.h.
  double contention = 1;
  std::map<std::string, Efficiency, std::less<>> operators;  ///< by operator type, see cost.h

  bool operator==(const DeviceType&) const = default;
};

struct Device {
  std::string name;  ///< unique in its cluster
  int32_t type = 0;  ///< index into Cluster::device_types()
  double speed = 1;  ///< operator times are divided by this (stragglers: below 1)
  std::string node;  ///< its machine, for hierarchical collectives
};

/// A connection between two endpoints: devices, or switches named only here. Full duplex gives each
/// direction the full bandwidth; half duplex shares it.
struct Link {
  std::string from, to;
  double bandwidth_bytes_per_s = 0;
  double latency_s = 0;
  bool half_duplex = false;
};

/// A switch with limited bandwidth, shared by all routes through it. Switches without an entry are
/// unlimited.
struct Switch {
  std::string name;
  double bandwidth_bytes_per_s = 0;
};

/// The resource that a transfer occupies (rules: simulator.h).
enum class QueueModel : uint8_t {
  sender,    ///< the producer's one send queue
  pair,      ///< one queue per ordered pair of devices
  none,      ///< nothing: transfers never wait
  route,     ///< every channel of the route at once, one transfer at a time
  fair,      ///< a max-min fair share of every channel of the route
  receiver,  ///< the receiving device, which makes the copy itself before it computes
};
template <>
inline constexpr auto kWords<QueueModel> = words("queue model", "sender", "pair", "none", "route", "fair", "receiver");

/// Description of a cluster, before it is checked.
struct ClusterSpec {
  std::string name;
  std::vector<DeviceType> device_types;
  std::vector<Device> devices;
  std::vector<Link> links;
  std::vector<Switch> switches;
  QueueModel queue = QueueModel::sender;
  /// Collective library; if missing, collectives cost what the plain formulas say.
  std::optional<CollectiveLibrary> collectives;
};

/// Maximum number of devices of a cluster.
inline constexpr int32_t kMostDevices = 131072;
/// With more devices, no algorithm iterates over all pairs.
inline constexpr int32_t kPairedDevices = 4096;

/// Devices and the links between them (see Routes). A route passes through as few other devices as
/// possible, takes the fewest links and, among those, the widest. Immutable and thread-safe.
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
  /// [device]: its node. Nodes are numbered from 0 in the order of their first devices.
  const std::vector<int32_t>& node_of() const { return node_of_; }
  const std::vector<Link>& links() const { return spec_.links; }
  QueueModel queue() const { return spec_.queue; }
  /// [device type]: index of the first device type that equals it apart from its name.
  std::vector<int32_t> kinds() const;
  const std::optional<CollectiveLibrary>& library() const { return spec_.collectives; }

  /// Device memory available to a training step, in bytes.
  int64_t capacity_bytes(int32_t d) const {
    return type_of(d).memory_bytes - type_of(d).reserved_memory_bytes;
  }
  /// The same without the training software's: available for weights, states and tensors.
  int64_t room_bytes(int32_t d) const { return capacity_bytes(d) - type_of(d).framework_bytes; }
  /// Sum of the latencies on the route, and its narrowest bandwidth. Requires from != to.
  double latency_s(int32_t from, int32_t to) const { return routes_.wire(from, to).latency_s; }
  double bandwidth_bytes_per_s(int32_t from, int32_t to) const {
    return routes_.wire(from, to).bandwidth_bytes_per_s;
  }
  /// Both at once.
  Wire wire(int32_t from, int32_t to) const { return routes_.wire(from, to); }

  /// Channels on the route, in order. Requires from != to.
  Route route(int32_t from, int32_t to) const { return routes_.route(from, to); }
  const std::vector<Channel>& channels() const { return routes_.channels(); }
  /// "a -> b" for a direction of a link, "a - b" for a half-duplex one, a switch's own name.
  /// Further channels of the same name (parallel links) get " #2", " #3", ....
  std::string channel_name(int32_t channel) const;
  const Routes& routes() const { return routes_; }

  /// The device called `name`, or -1.
  int32_t find(std::string_view name) const;
  std::vector<std::string> device_names() const;
  /// Equal for clusters on which everything takes the same time. Covers the routes of all pairs:
  /// 0.1 ms for 32 devices, seconds for thousands; from kPairedDevices on the links of every device
  /// within its piece (see Routes) and to one device of every other class of pieces.
  uint64_t fingerprint() const;

 private:
  static ClusterSpec checked(ClusterSpec spec);
  std::string plain_name(const Channel& channel) const;
  void add_pairs(Hasher& hash) const;
  void add_pieces(Hasher& hash) const;
  static std::vector<int32_t> numbered_nodes(const std::vector<Device>& devices);

  ClusterSpec spec_;
  Routes routes_;
  std::vector<int32_t> node_of_;  // [device]
};

}  // namespace trinity
