#include "learn/torch_policy.h"

#include "base/late.h"

namespace trinity {

std::unique_ptr<TorchPolicy> make_torch_policy(const std::string& device,
                                               const PartitionShape& partition,
                                               const ScheduleShape& schedule,
                                               const UnitFeatures& features) {
  std::unique_ptr<TorchPolicy> made;
  late<void(const std::string&, const PartitionShape&, const ScheduleShape&, const UnitFeatures&,
            std::unique_ptr<TorchPolicy>&)>(kTorchPart, "trinity_make_torch_policy")(
      device, partition, schedule, features, made);
  return made;
}

void check_policy_device(const std::string& device) {
  if (device != "cpu")
    late<void(const std::string&)>(kTorchPart, "trinity_check_policy_device")(device);
}

}  // namespace trinity
