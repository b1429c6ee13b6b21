#include "graph/types.h"

namespace trinity {
int64_t integer_attribute(const Attributes& attributes, const std::string& name, int64_t fallback) {
  const auto* value = find_attribute<int64_t>(attributes, name);
  return value ? *value : fallback;
}

int64_t Parameter::elements() const {
  int64_t count = 1;
  for (const int64_t extent : shape) count *= extent;
  return count;
}

int64_t Operator::parameter_bytes() const {
  int64_t total = extra_parameter_bytes;
  for (const auto& parameter : parameters) total += parameter.bytes();
  return total;
}

int64_t Operator::parameter_count() const {
  int64_t total = extra_parameter_bytes / dtype_bytes(DType::float32);
  for (const auto& parameter : parameters)
    if (parameter.trainable) total += parameter.elements();
  return total;
}

int64_t Operator::trainable_bytes() const {
  int64_t total = extra_parameter_bytes;
  for (const auto& parameter : parameters)
    if (parameter.trainable) total += parameter.bytes();
  return total;
}

}  // namespace trinity
