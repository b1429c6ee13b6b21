#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/collective.h"
#include "base/dtype.h"
#include "base/shared.h"

namespace trinity {

/// Where in a training step an operator belongs.
enum class Phase : uint8_t { forward, backward, update };
const char* phase_name(Phase phase);

/// An operator attribute, as in ONNX: an integer, a float, a string, or a list of integers.
using Attribute = std::variant<int64_t, double, std::string, std::vector<int64_t>>;
/// Sorted by name, so that every walk over attributes has one order.
using Attributes = SharedMap<Attribute>;

/// Integer attribute `name`, or `fallback` where it is absent or not an integer.
int64_t integer_attribute(const Attributes& attributes, const std::string& name, int64_t fallback);

struct OperatorRule;  // graph/operator_types.h

/// What an operator does: "Conv", "Relu", ..., with "Grad" appended in backward. There are few, of
/// which each is kept once: a copy is a pointer.
class OperatorType {
 public:
  OperatorType() = default;
  OperatorType(std::string_view text);                                   // NOLINT: it is one
  OperatorType(const std::string& text) : OperatorType(std::string_view(text)) {}  // NOLINT
  OperatorType(const char* text) : OperatorType(std::string_view(text)) {}         // NOLINT

  const std::string& text() const;
  operator const std::string&() const { return text(); }    // NOLINT: it is one
  operator std::string_view() const { return text(); }      // NOLINT: it is one
  /// That of the table (operator_rule()); null where it has none.
  const OperatorRule* rule() const { return known_ ? known_->rule : nullptr; }

  bool empty() const { return known_ == nullptr; }
  bool starts_with(std::string_view begin) const { return text().starts_with(begin); }
  bool ends_with(std::string_view end) const { return text().ends_with(end); }

  friend bool operator==(const OperatorType& a, const OperatorType& b) = default;
  friend bool operator==(const OperatorType& a, std::string_view b) { return a.text() == b; }
  friend bool operator==(const OperatorType& a, const std::string& b) { return a.text() == b; }
  friend bool operator==(const OperatorType& a, const char* b) {
    return a.text() == std::string_view(b);
  }

 private:
  struct Known {
    std::string text;
    const OperatorRule* rule;
  };
  static const Known* find(std::string_view text);

  const Known* known_ = nullptr;  // that of an empty text
};

/// A weight owned by an operator.
struct Parameter {
  std::string name;
  SharedList<int64_t> shape;
  DType dtype = DType::float32;
  bool trainable = true;  ///< false: moving statistics and the like, which get no gradient

  int64_t elements() const;
  int64_t bytes() const { return elements() * dtype_bytes(dtype); }
};

/// A value that one operator writes and any number of operators read.
struct Tensor {
  std::string name;
  int32_t producer = -1;       ///< operator that writes it
  SharedList<int64_t> shape;   ///< empty where only the size is known
  DType dtype = DType::float32;
  int64_t bytes = 0;     ///< size on a device and on the wire
  bool gradient = true;  ///< false where no gradient flows back (images, labels)

  int64_t elements() const { return bytes / dtype_bytes(dtype); }
};

/// Seconds that an operator takes on devices of a type and speed by a cost model of one's own, and
/// those of the cluster's cost model: what is made of the operator takes its share of the former.
struct StatedTime {
  int32_t device_type = 0;  ///< Device::type
  double speed = 1, time_s = 0, model_time_s = 0;
  bool operator==(const StatedTime&) const = default;
};
using StatedTimes = std::shared_ptr<const std::vector<StatedTime>>;

/// Tensors that an operator reads or writes.
using TensorNumbers = ShortList<int32_t, 4>;

/// One node of a computation graph. Types and attributes carry ONNX's names.
struct Operator {
  std::string name;  ///< unique in its graph
  OperatorType type;
  Phase phase = Phase::forward;
  Attributes attributes;
  SharedList<Parameter> parameters;
  TensorNumbers inputs;      ///< in the order of its arguments
  TensorNumbers outputs;
  double flops = 0;              ///< floating-point operations of one run; a multiply-add is two
  double traffic_bytes = -1;     ///< memory traffic; negative: inputs + outputs + parameters
  double measured_time_s = -1;   ///< time on the profiled device, negative where not measured
  double measured_backward_time_s = -1;  ///< same for its backward operator (forward graphs only)
  StatedTimes stated;            ///< of a graph bound with a cost model of its own; else null
  int64_t extra_parameter_bytes = 0;     ///< weights whose shapes are not known (profiles)
  int64_t persistent_bytes = 0;          ///< resident all step beside the weights (optimiser state)
  int64_t workspace_bytes = 0;           ///< needed only while it runs
  int32_t forward = -1;     ///< the forward operator that a backward or update one serves
  int32_t unit = -1;        ///< colocation unit: operators of one unit share a device
  int32_t collective = -1;  ///< the collective (Graph::collectives()) that it is a member of

  /// Bytes of all weights.
  int64_t parameter_bytes() const;
  /// Elements of the trainable weights, and their bytes: what gets gradients and updates.
  int64_t parameter_count() const;
  int64_t trainable_bytes() const;
  bool measured() const { return measured_time_s >= 0; }
};

/// Operators, one a device, that communicate together: each hands in its inputs and gets its
/// outputs when all are done. Members occupy wires, not their devices.
struct Collective {
  std::string name;
  CollectiveKind kind = CollectiveKind::all_reduce;
  CollectiveAlgorithm algorithm = CollectiveAlgorithm::automatic;
  int64_t bytes = 0;             ///< full size of the tensor
  std::vector<int32_t> members;  ///< operators, ascending
  /// Of lower_lanes(): which of Lowered::partitions its group is in; else -1.
  int32_t partition = -1;
};

}  // namespace trinity
