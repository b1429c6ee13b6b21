#include <algorithm>

#include "base/error.h"
#include "base/stop.h"
#include "learn/torch/networks.h"
#include "learn/torch_policy.h"

namespace trinity {
namespace {

/// Runs `body`; LibTorch's errors become ours, without their list of C++ frames.
template <class Body>
auto torch_call(Body body) {
  try {
    return body();
  } catch (const c10::Error& error) {
    throw Error(fmt::format("LibTorch: {}", error.what_without_backtrace()));
  }
}

torch::Device parse_device(const std::string& name) {
  const auto refuse = [&](const std::string& reason) {
    throw ArgumentError(fmt::format(
        "option 'device': expected cpu or cuda:0 and the like, got '{}'{}", name, reason));
  };
  if (name == "cpu") return torch::Device(torch::kCPU);
  const bool numbered = name.starts_with("cuda:") && name.size() > 5 && name.size() < 8 &&
                        name.find_first_not_of("0123456789", 5) == std::string::npos;
  if (name != "cuda" && !numbered) refuse("");
  const auto count = static_cast<int>(torch::cuda::device_count());
  if (count == 0) refuse(" (this LibTorch has no CUDA, or the machine no GPU)");
  const int index = numbered ? std::stoi(name.substr(5)) : 0;
  if (index >= count) refuse(fmt::format(" (there are {} GPUs)", count));
  return torch::Device(torch::kCUDA, static_cast<c10::DeviceIndex>(index));
}

torch::Tensor from(std::span<const float> values, torch::IntArrayRef shape, torch::Device device) {
  return torch::from_blob(const_cast<float*>(values.data()), shape, torch::kFloat)
      .clone()
      .to(device);
}

torch::Tensor from(std::span<const int32_t> values, torch::IntArrayRef shape,
                   torch::Device device) {
  return torch::from_blob(const_cast<int32_t*>(values.data()), shape, torch::kInt)
      .to(torch::kLong)
      .to(device);
}

void copy_out(const torch::Tensor& tensor, float* to) {
  const auto rows = tensor.detach().to(torch::kCPU).contiguous();
  std::copy_n(rows.data_ptr<float>(), rows.numel(), to);
}

struct Networks {
  Networks(torch::Device place, const PartitionShape& units, const ScheduleShape& steps)
      : device(place),
        partition_shape(units),
        schedule_shape(steps),
        partition(units),
        schedule(steps) {}

  torch::Device device;
  PartitionShape partition_shape;
  ScheduleShape schedule_shape;
  PartitionNet partition;
  ScheduleNet schedule;
  torch::Tensor types, values, prior;         // of units
  torch::Tensor groups;                       // embeddings of the batch [S, K, W]
  torch::Tensor device_prior;                 // [S, K, D]
  torch::Tensor chosen;                       // devices evaluated last [S, K]
  std::vector<torch::Tensor> partition_rows;  // log-probabilities, one tensor a mask
  torch::Tensor schedule_rows;                // [S, K, D]

  /// Named weights in the layout of Parameters.
  std::vector<std::pair<std::string, torch::Tensor>> weights() {
    std::vector<std::pair<std::string, torch::Tensor>> all;
    for (auto& item : partition->named_parameters())
      all.emplace_back("partition." + item.key(), item.value());
    for (auto& item : schedule->named_parameters())
      all.emplace_back("schedule." + item.key(), item.value());
    return all;
  }

  /// The partition network's part of the objective.
  torch::Tensor units_objective(std::span<const int32_t> group_of,
                                std::span<const float> coefficient, double entropy_weight) const {
    const int64_t units = partition_shape.units;
    const auto samples = static_cast<int64_t>(group_of.size()) / units;
    const auto drawn = from(group_of, {samples, units}, device);
    const auto weight = from(coefficient, {samples, units}, device);
    const auto copies = static_cast<int64_t>(partition_rows.size());
    torch::Tensor sum = torch::zeros({}, values.options());
    for (int64_t i = 0; i < copies; ++i) {
      const auto& rows = partition_rows[i];
      const auto range = [&](const torch::Tensor& all) {
        return copies == 1 ? all : all.slice(0, i, i + 1);
      };
      sum = sum + (rows.gather(1, range(drawn).t()).t() * range(weight)).sum() +
            entropy_weight / static_cast<double>(copies) * entropy(rows);
    }
    return sum;
  }

  static torch::Tensor entropy(const torch::Tensor& rows) {
    return -(rows.exp() * rows).sum(-1).mean();
  }
};

class NetworksPolicy : public TorchPolicy {
 public:
  NetworksPolicy(const std::string& device, const PartitionShape& partition,
                 const ScheduleShape& schedule, const UnitFeatures& features);
  void set_prior(const std::vector<float>& prior) override;
  void set_weights(const Parameters& parameters) override;
  void forward_partition(std::span<const float> masks,
                         std::vector<float>& log_probability) override;
  void sample(std::span<const float> groups, std::span<const float> prior, int64_t samples,
              const Choose& choose, std::span<int32_t> devices, std::span<float> taken) override;
  void evaluate(std::span<const int32_t> devices, std::span<float> taken) override;
  void backward(std::span<const int32_t> groups, std::span<const float> group_coefficient,
                std::span<const float> device_coefficient, double entropy_weight,
                double uniform_weight, std::vector<float>& gradient) override;
  double devices_entropy() const override;

 private:
  std::unique_ptr<Networks> networks_;
};

NetworksPolicy::NetworksPolicy(const std::string& device, const PartitionShape& partition,
                               const ScheduleShape& schedule, const UnitFeatures& features) {
  const auto place = parse_device(device);
  torch_call([&] {
    networks_ = std::make_unique<Networks>(place, partition, schedule);
    networks_->partition->to(place);
    networks_->schedule->to(place);
    networks_->types = from(features.type, {partition.units}, place);
    networks_->values = from(features.values, {partition.units, partition.features}, place);
  });
}

void NetworksPolicy::set_prior(const std::vector<float>& prior) {
  const auto& shape = networks_->partition_shape;
  torch_call([&] {
    networks_->prior =
        prior.empty() ? torch::Tensor() : from(prior, {shape.units, shape.groups}, networks_->device);
  });
}

void NetworksPolicy::set_weights(const Parameters& parameters) {
  torch::NoGradGuard no_grad;
  torch_call([&] {
    for (auto& [name, tensor] : networks_->weights()) {
      const auto& weight = parameters.find(name);
      const std::span<const float> values(parameters.values.data() + weight.offset,
                                          static_cast<size_t>(weight.count));
      tensor.copy_(from(values, weight.shape, networks_->device));
    }
  });
}

void NetworksPolicy::forward_partition(std::span<const float> masks,
                                    std::vector<float>& log_probability) {
  auto& self = *networks_;
  torch_call([&] {
    const auto size = static_cast<size_t>(self.partition_shape.units * PartitionShape::kFirst);
    const size_t copies = masks.empty() ? 1 : masks.size() / size;
    const auto rows = static_cast<size_t>(self.partition_shape.units * self.partition_shape.groups);
    self.partition_rows.clear();
    for (size_t i = 0; i < copies; ++i) {
      torch::Tensor mask;
      if (!masks.empty())
        mask = from(masks.subspan(i * size, size),
                    {self.partition_shape.units, PartitionShape::kFirst}, self.device);
      self.partition_rows.push_back(
          self.partition->forward(self.types, self.values, mask, self.prior));
      copy_out(self.partition_rows.back(), log_probability.data() + i * rows);
    }
  });
}

void NetworksPolicy::sample(std::span<const float> groups, std::span<const float> prior,
                         int64_t samples, const Choose& choose, std::span<int32_t> devices,
                         std::span<float> taken) {
  auto& self = *networks_;
  torch::NoGradGuard no_grad;
  torch_call([&] {
    const auto& shape = self.schedule_shape;
    self.groups = from(groups, {samples, shape.groups, shape.width}, self.device);
    self.device_prior = from(prior, {samples, shape.groups, shape.devices}, self.device);
    const auto encoded = self.schedule->encode(self.groups);
    auto state = encoded.state, cell = encoded.cell;
    auto previous = torch::full({samples}, self.schedule->start_symbol(), torch::kLong);
    for (int64_t t = 0; t < shape.groups; ++t) {
      poll_stop();
      const auto rows =
          self.schedule
              ->step(encoded, previous.to(self.device), state, cell, self.device_prior.select(1, t))
              .to(torch::kCPU)
              .contiguous();
      previous = torch::empty({samples}, torch::kLong);
      for (int64_t s = 0; s < samples; ++s) {
        const float* row = rows.data_ptr<float>() + s * shape.devices;
        const int32_t device = choose(s, t, row);
        const auto at = static_cast<size_t>(s * shape.groups + t);
        previous.data_ptr<int64_t>()[s] = devices[at] = device;
        taken[at] = row[device];
      }
    }
  });
}

void NetworksPolicy::evaluate(std::span<const int32_t> devices, std::span<float> taken) {
  auto& self = *networks_;
  torch_call([&] {
    self.chosen = from(devices, {self.groups.size(0), self.schedule_shape.groups}, self.device);
    self.schedule_rows =
        self.schedule->evaluate(self.schedule->encode(self.groups), self.chosen, self.device_prior);
    copy_out(self.schedule_rows.gather(2, self.chosen.unsqueeze(2)).squeeze(2), taken.data());
  });
}

void NetworksPolicy::backward(std::span<const int32_t> groups,
                           std::span<const float> group_coefficient,
                           std::span<const float> device_coefficient, double entropy_weight,
                           double uniform_weight, std::vector<float>& gradient) {
  auto& self = *networks_;
  torch_call([&] {
    const auto taken = self.schedule_rows.gather(2, self.chosen.unsqueeze(2)).squeeze(2);
    const auto on_device = from(device_coefficient, taken.sizes(), self.device);
    auto objective = (taken * on_device).sum() +
                     entropy_weight * Networks::entropy(self.schedule_rows) +
                     uniform_weight * self.schedule_rows.mean(2).sum();
    if (!groups.empty())
      objective = objective + self.units_objective(groups, group_coefficient, entropy_weight);
    std::vector<torch::Tensor> inputs;
    for (auto& item : self.weights()) inputs.push_back(item.second);
    const auto gradients = torch::autograd::grad({objective}, inputs, {}, false, false, true);
    // Both sides list weights in the order in which the networks register them.
    float* out = gradient.data();
    for (size_t i = 0; i < inputs.size(); ++i) {
      if (gradients[i].defined())
        copy_out(gradients[i], out);
      else
        std::fill_n(out, inputs[i].numel(), 0.0f);
      out += inputs[i].numel();
    }
  });
}

double NetworksPolicy::devices_entropy() const {
  torch::NoGradGuard no_grad;
  return torch_call([&] { return Networks::entropy(networks_->schedule_rows).item<double>(); });
}

}  // namespace
}  // namespace trinity

/// What learn/torch_policy.cpp opens.
extern "C" void trinity_make_torch_policy(const std::string& device,
                                          const trinity::PartitionShape& partition,
                                          const trinity::ScheduleShape& schedule,
                                          const trinity::UnitFeatures& features,
                                          std::unique_ptr<trinity::TorchPolicy>& made) {
  made = std::make_unique<trinity::NetworksPolicy>(device, partition, schedule, features);
}

extern "C" void trinity_check_policy_device(const std::string& device) {
  trinity::parse_device(device);
}
