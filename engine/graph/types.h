#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/collective.h"
#include "base/dtype.h"
#include "base/shared.h"

namespace trinity {

/// Phase of a training step.
enum class Phase : uint8_t { forward, backward, update };
template <>
inline constexpr auto kWords<Phase> = words("phase", "forward", "backward", "update");

/// An operator attribute, as in ONNX: an integer, a float, a string, or a list of integers.
using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>>;
/// Sorted by name: iteration is deterministic.
using Attributes = SharedMap<Attribute>;

/// Null if the attribute is absent or of another type.
template <class T>
const T* find_attribute(const Attributes& attributes, const std::string& name) {
  const auto found = attributes.find(name);
  return found == attributes.end() ? nullptr : std::get_if<T>(&found->second);
}
/// Integer attribute `name`, or `fallback` if it is absent or not an integer.
int64_t integer_attribute(const Attributes& attributes, const std::string& name, int64_t fallback);

struct OperatorRule;  // graph/operator_types.h

/// Type of an operator: "Conv", "Relu", ..., with "Grad" appended in backward. Types are interned:
/// a copy is a pointer. Thread-safe.
class OperatorType {
 public:
  OperatorType() = default;
  OperatorType(std::string_view text);                                   // NOLINT: implicit
  OperatorType(const std::string& text) : OperatorType(std::string_view(text)) {}  // NOLINT
  OperatorType(const char* text) : OperatorType(std::string_view(text)) {}         // NOLINT

  const std::string& text() const;
  operator const std::string&() const { return text(); }    // NOLINT: implicit
  operator std::string_view() const { return view(); }      // NOLINT: it is one
  /// Rule of the type (operator_rule()); null if the table has none.
  const OperatorRule* rule() const { return known_ ? known_->rule : nullptr; }

  bool empty() const { return known_ == nullptr; }
  bool starts_with(std::string_view begin) const { return view().starts_with(begin); }
  bool ends_with(std::string_view end) const { return view().ends_with(end); }

  friend bool operator==(const OperatorType& a, const OperatorType& b) = default;
  /// Inline, so that the length of a literal is known.
  friend bool operator==(const OperatorType& a, std::string_view b) {
    return a.view().size() == b.size() && std::memcmp(a.view().data(), b.data(), b.size()) == 0;
  }
  friend bool operator==(const OperatorType& a, const std::string& b) { return a == std::string_view(b); }
  friend bool operator==(const OperatorType& a, const char* b) { return a == std::string_view(b); }

 private:
  struct Known {
    std::string text;
    const OperatorRule* rule;
  };
  std::string_view view() const { return known_ ? std::string_view(known_->text) : ""; }
  static const Known* find(std::string_view text);

  const Known* known_ = nullptr;  // of an empty text
};

/// A weight owned by an operator.
struct Parameter {
  std::string name;
  SharedList<int64_t> shape;
  DType dtype = DType::float32;
  bool trainable = true;  ///< false: no gradient (e.g. moving statistics)

  int64_t elements() const;
  int64_t bytes() const { return elements() * dtype_bytes(dtype); }
};

/// A value that one operator writes and any number of operators read.
struct Tensor {
  std::string name;
  int32_t producer = -1;       ///< operator that writes it
  SharedList<int64_t> shape;   ///< empty if only the size is known
  DType dtype = DType::float32;
  int64_t bytes = 0;     ///< size on a device and in transfers
  bool gradient = true;  ///< false: no gradient flows back (images, labels)
  int64_t host_bytes = 0;  ///< part that the host keeps from forward to backward (strategy/offload.h)

  int64_t elements() const { return bytes / dtype_bytes(dtype); }
};

/// Seconds that an operator takes on devices of one type and speed by a user's cost model, and by
/// the cluster's cost model. Operators derived from it take a proportional share of the former.
struct StatedTime {
  int32_t device_type = 0;  ///< Device::type
  double speed = 1, time_s = 0, model_time_s = 0;
  bool operator==(const StatedTime&) const = default;
};
using StatedTimes = std::shared_ptr<const std::vector<StatedTime>>;

/// Indices of tensors that an operator reads or writes.
using TensorNumbers = ShortList<int32_t, 4>;

/// A node of a computation graph. Types and attributes use ONNX's names.
struct Operator {
  std::string name;  ///< unique in its graph
  OperatorType type;
  Phase phase = Phase::forward;
  Attributes attributes;
  SharedList<Parameter> parameters;
  TensorNumbers inputs;      ///< in argument order
  TensorNumbers outputs;
  double flops = 0;  ///< floating-point operations per run; a multiply-add counts as two
  double traffic_bytes = -1;     ///< memory traffic; negative: inputs + outputs + parameters
  double measured_time_s = -1;   ///< time on the profiled device; negative: not measured
  /// the same for its backward operator (forward graphs only)
  double measured_backward_time_s = -1;
  StatedTimes stated;            ///< set if the graph was bound with a user's cost model
  int64_t extra_parameter_bytes = 0;     ///< weights with unknown shapes (profiles)
  /// resident during the whole step, without the weights (optimiser state)
  int64_t persistent_bytes = 0;
  int64_t workspace_bytes = 0;           ///< needed only while it runs
  int32_t forward = -1;     ///< forward operator of a backward or update operator
  int32_t unit = -1;        ///< colocation unit: its operators share a device
  int32_t collective = -1;  ///< its collective (index in Graph::collectives()), or -1
  /// Operators during which their device copies host_bytes, all together, to or from its host; -1: none.
  int32_t host_run = -1;
  int64_t host_bytes = 0;

  /// Bytes of all weights.
  int64_t parameter_bytes() const;
  /// Elements of the trainable weights, which get gradients and updates; and their bytes.
  int64_t parameter_count() const;
  int64_t trainable_bytes() const;
  bool measured() const { return measured_time_s >= 0; }
};

/// Operators on different devices that communicate together: each provides its inputs and receives
/// its outputs when all are done. Members occupy links, not their devices.
struct Collective {
  std::string name;
  CollectiveKind kind = CollectiveKind::all_reduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
  int64_t bytes = 0;             ///< full size of the tensor
  std::vector<int32_t> members;  ///< operators, ascending
  /// In a lowered mesh: bits of the axes that it spans (strategy/splits.h); otherwise -1.
  int32_t axes = -1;
};

}  // namespace trinity
