#include "simulator/mesh/lane_fold.h"

#include <algorithm>
#include <map>

#include "base/index.h"

namespace trinity {

std::optional<LaneFold> LaneFold::make(const ReplicaLanes& few, const Mesh& mesh,
                                       int32_t few_stages, int32_t stages,
                                       const std::vector<int32_t>& parts) {
  LaneFold fold(few, mesh, few_stages, stages);
  if (!fold.find_lanes(few) || !fold.find_groups(few)) return std::nullopt;
  if (!parts.empty()) fold.parts_ = parts;
  return fold;
}

bool LaneFold::find_lanes(const ReplicaLanes& few) {
  lane_of_part_.resize(at(width_));
  for (const auto& lane : few.lanes()) {
    const size_t parts = lane.devices.size() / at(few_stages_);
    if (parts == 0 || parts * at(few_stages_) != lane.devices.size()) return false;
    for (size_t i = 0; i < lane.devices.size(); ++i)
      if (lane.devices[i] != lane.devices[i % parts] +
                                               static_cast<int32_t>(i / parts) * width_)
        return false;
    for (size_t part = 0; part < parts; ++part)
      lane_of_part_[at(lane.devices[part])] = static_cast<int32_t>(lanes_.size());
    auto& made = lanes_.emplace_back();
    made.kind = lane.kind;
    for (int32_t stage = 0; stage < stages_; ++stage)
      for (size_t part = 0; part < parts; ++part)
        made.devices.push_back(stage * width_ + lane.devices[part]);
    if (!find_sends(lane, made)) return false;
    if (at(lane.kind) + 1 == lanes_.size())
      parts_.insert(parts_.end(), lane.devices.begin(),
                    lane.devices.begin() + static_cast<std::ptrdiff_t>(parts));
  }
  std::sort(parts_.begin(), parts_.end());
  return true;
}

/// Parts of neighbouring stages must send to each other everywhere or nowhere, parts of one stage
/// in all inner stages or none; other sends must be from end to end.
bool LaneFold::find_sends(const ReplicaLanes::Lane& few, ReplicaLanes::Lane& lane) const {
  if (few_stages_ == stages_) {
    lane.sends = few.sends;
    return true;
  }
  const int32_t p = few_stages_, last = stages_ - 1;
  std::map<std::pair<int32_t, int32_t>, std::vector<bool>> found;  // by parts; [stage]
  for (const auto& [from, to] : few.sends) {
    auto& sends = found[{from % width_, to % width_}];
    sends.resize(at(p * p));
    sends[at(from / width_ * p + to / width_)] = true;
  }
  for (const auto& [parts, sends] : found) {
    const auto sent = [&sends, p](int32_t from, int32_t to) { return sends[at(from * p + to)]; };
    const bool up = sent(0, 1), down = sent(1, 0), inside = sent(1, 1);
    for (int32_t a = 0; a < p; ++a)
      for (int32_t b = 0; b < p; ++b) {
        const bool ends = std::min(a, b) == 0 && std::max(a, b) == p - 1;
        const bool at_end = a == b && (a == 0 || a == p - 1);
        const bool expected = b == a + 1 ? up : b == a - 1 ? down : a == b && inside;
        if (!ends && !at_end && sent(a, b) != expected) return false;
      }
    const auto add = [&, &parts = parts](bool sends_there, int32_t from, int32_t to) {
      if (sends_there)
        lane.sends.emplace_back(from * width_ + parts.first, to * width_ + parts.second);
    };
    for (int32_t stage = 0; stage < stages_; ++stage) {
      const int32_t like = stage == 0 ? 0 : stage == last ? p - 1 : 1;
      add(sent(like, like), stage, stage);
      add(up && stage < last, stage, stage + 1);
      add(down && stage < last, stage + 1, stage);
    }
    add(sent(0, p - 1), 0, last);
    add(sent(p - 1, 0), last, 0);
  }
  return true;
}

bool LaneFold::find_groups(const ReplicaLanes& few) {
  std::map<std::vector<int32_t>, size_t> known;  // parts of a stage: index in group_of_
  std::vector<int32_t> between;  // [index]: number of inner stages that have it
  for (int32_t g = 0; g < few.first_joined(); ++g) {
    auto members = few.groups()[at(g)];
    const int32_t stage = members.front() / width_;
    const bool inside = members.back() / width_ == stage;
    at_stage_.push_back(group_of_.size());
    if (inside) {
      for (int32_t& device : members) device %= width_;
      at_stage_.back() = known.emplace(members, group_of_.size()).first->second;
    }
    if (at_stage_.back() == group_of_.size()) {
      group_of_.emplace_back(inside ? at(stages_) : 1, -1);
      between.push_back(0);
    }
    auto& of = group_of_[at_stage_.back()];
    if (inside) {
      between[at_stage_.back()] += many_stage(stage) < 0;
      add_inside(members, stage, of);
    } else if (!add_across(members, of)) {
      return false;
    }
  }
  if (at(few.first_joined()) < few.groups().size()) add_joined();
  return std::all_of(between.begin(), between.end(), [this](int32_t count) {
    return count == 0 || count == few_stages_ - 2;
  });
}

/// Adds a group within a reduced stage to all stages that it represents.
void LaneFold::add_inside(const std::vector<int32_t>& parts, int32_t few_stage,
                          std::vector<int32_t>& of) {
  const auto add = [&](int32_t stage) {
    auto devices = parts;
    for (int32_t& device : devices) device += stage * width_;
    of[at(stage)] = add_group(std::move(devices));
  };
  if (const int32_t stage = many_stage(few_stage); stage >= 0) return add(stage);
  if (of[1] >= 0) return;
  for (int32_t stage = 1; stage + 1 < stages_; ++stage) add(stage);
}

bool LaneFold::add_across(std::vector<int32_t> devices, std::vector<int32_t>& of) {
  for (int32_t& device : devices) {
    const int32_t stage = many_stage(device / width_);
    if (stage < 0) return false;
    device = stage * width_ + device % width_;
  }
  of[0] = add_group(std::move(devices));
  return true;
}

int32_t LaneFold::add_group(std::vector<int32_t> devices) {
  const auto number = static_cast<int32_t>(groups_.size());
  for (const int32_t device : devices) {
    auto& groups = lanes_[at(lane_of_part_[at(device % width_)])].groups;
    if (groups.empty() || groups.back() != number) groups.push_back(number);
  }
  groups_.push_back(std::move(devices));
  return number;
}

/// As in ReplicaLanes: per stage and `tensor` rank, the devices that hold the same data.
void LaneFold::add_joined() {
  first_joined_ = static_cast<int32_t>(groups_.size());
  for (int32_t stage = 0; stage < stages_; ++stage)
    for (int32_t part = 0; part < tensor_; ++part) {
      std::vector<int32_t> devices;
      for (int32_t d = part; d < width_; d += tensor_) devices.push_back(stage * width_ + d);
      add_group(std::move(devices));
    }
}

}  // namespace trinity
