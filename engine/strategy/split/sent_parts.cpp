#include "strategy/sent_parts.h"

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "base/error.h"
#include "base/index.h"

namespace trinity {
namespace {

class Sending {
 public:
  Sending(LoweredGraph& made, int32_t tensor, const std::vector<bool>& whole)
      : made_(made),
        parts_(tensor),
        built_(made.lanes[1] == 1 ? at(tensor) : 1),
        whole_(whole),
        builder_(std::move(made.graph)),
        operators_(builder_.operator_count()),
        cut_of_(at(builder_.tensor_count()), -1),
        readers_(cut_of_.size()) {
    for (int32_t op = 0; op < operators_; ++op)
      for (const int32_t input : builder_.op(op).inputs) readers_[at(input)].push_back(op);
    find();
  }

  /// Tensors sent in parts are cut after the last operator that writes a copy of it.
  void run() {
    auto collectives = builder_.take_collectives();
    for (int32_t op = 0; op < operators_; ++op)
      for (const int32_t output : TensorNumbers(builder_.op(op).outputs))
        if (cut_of_[output] >= 0 && ++cuts_[cut_of_[output]].written == built_)
          add_cut(cuts_[cut_of_[output]], op + 1);
    for (int32_t op = 0; op < operators_; ++op)
      for (int32_t& input : builder_.op(op).inputs) input = tensor_for(input, op);
    for (auto& collective : collectives) builder_.add_collective(std::move(collective));
    std::vector<int32_t> numbers;
    made_.graph = builder_.build(&numbers);
    const auto roles = std::move(made_.roles);
    made_.roles.clear();
    for (const int32_t number : numbers)
      made_.roles.push_back(number < operators_ ? roles[number] : roles_[number - operators_]);
  }

 private:
  /// The copies of a tensor on a group, by position, and the groups that get parts of them.
  struct Cut {
    std::vector<int32_t> tensors;
    std::set<int32_t> groups;
    std::string suffix;  // of names: distinguishes the second cut of an operator from its first
    size_t written = 0;
    std::map<int32_t, std::vector<int32_t>> gathered;  // by group, by place; in the builder
  };

  int32_t group_of(int32_t op) const { return made_.device_of(op) / parts_; }
  int32_t place_of(int32_t op) const { return made_.device_of(op) % parts_; }

  /// The name of a part's whole: without the number after the last '@'.
  static std::string name_of_whole(const std::string& name) {
    const auto at_sign = name.rfind('@');
    if (at_sign == std::string::npos) return name;
    const auto end = name.find_first_not_of("0123456789", at_sign + 1);
    return name.substr(0, at_sign) + (end == std::string::npos ? "" : name.substr(end));
  }

  /// Finds the groups that read a tensor of another group; false if other devices read it.
  bool groups_reading(int32_t tensor, std::set<int32_t>& groups) const {
    const int32_t from = builder_.tensor(tensor).producer;
    for (const int32_t reader : readers_[at(tensor)]) {
      if (made_.device_of(reader) == made_.device_of(from)) continue;
      if (group_of(reader) == group_of(from) || place_of(reader) != place_of(from)) return false;
      groups.insert(group_of(reader));
    }
    return true;
  }

  bool divides(const Tensor& tensor) const {
    return tensor.shape.size() >= 2 && tensor.shape[1] % parts_ == 0;
  }

  /// Finds the tensors to cut. The devices of a group have equally many operators of a type for each original operator,
  /// in one order.
  void find() {
    std::map<std::tuple<int32_t, std::string, int32_t>, int32_t> count;  // [served operator, type, device]
    std::map<std::tuple<int32_t, std::string, int32_t, int32_t>, std::vector<int32_t>> producers;
    for (int32_t op = 0; op < operators_; ++op) {
      const auto& about = builder_.op(op);
      const int32_t serves = made_.roles[at(op)].serves;
      if (about.inputs.empty()) continue;
      const int32_t number = count[{serves, about.type, made_.device_of(op)}]++;
      producers[{serves, about.type, group_of(op), number}].push_back(op);
    }
    for (auto& [same, ops] : producers) {
      std::ranges::sort(ops, {}, [&](int32_t op) { return place_of(op); });
      const size_t outputs = builder_.op(ops[0]).outputs.size();
      const auto equal = [&](int32_t op) { return builder_.op(op).outputs.size() == outputs; };
      if (ops.size() != built_ || !std::ranges::all_of(ops, equal)) continue;
      for (size_t k = 0; k < outputs; ++k) consider(ops, k);
    }
  }

  void consider(const std::vector<int32_t>& ops, size_t output) {
    Cut cut;
    for (size_t i = 0; i < ops.size(); ++i) {
      const int32_t tensor = builder_.op(ops[i]).outputs[output];
      std::set<int32_t> groups;
      if (!whole_[at(tensor)] || !divides(builder_.tensor(tensor)) || !groups_reading(tensor, groups))
        return;
      if (i > 0 && groups != cut.groups) return;
      cut.groups = std::move(groups);
      cut.tensors.push_back(tensor);
    }
    if (cut.groups.empty()) return;
    const auto earlier = std::ranges::count_if(builder_.op(ops[0]).outputs, [&](int32_t tensor) {
      return cut_of_[at(tensor)] >= 0;
    });
    if (earlier > 0) cut.suffix = std::to_string(earlier + 1);
    for (const int32_t tensor : cut.tensors)
      cut_of_[at(tensor)] = static_cast<int32_t>(cuts_.size());
    cuts_.push_back(std::move(cut));
  }

  /// An operator that moves data, on a device, for another one.
  int32_t add_for(int32_t served, Operator op, int32_t device) {
    auto& role = roles_.emplace_back(made_.roles[served]);
    role.device = device;
    role.origin = -1;
    const int32_t id = builder_.add_operator(std::move(op));
    builder_.put_before(before_, id);
    return id;
  }

  /// Adds the slices of all copies, and their gathers in every group, before an operator.
  void add_cut(Cut& cut, int32_t before) {
    before_ = before;
    std::vector<int32_t> pieces;
    const auto built = static_cast<int32_t>(built_);
    for (int32_t place = 0; place < built; ++place) pieces.push_back(add_slice(cut, place));
    for (const int32_t group : cut.groups) {
      Collective collective;
      const int32_t first = builder_.tensor(cut.tensors[0]).producer;
      collective.kind = CollectiveKind::all_gather;
      collective.name = fmt::format("{}/received{}{}", name_of_whole(builder_.op(first).name), group,
                                    cut.suffix.empty() ? "" : "." + cut.suffix);
      collective.bytes = builder_.tensor(cut.tensors[0]).bytes;
      collective.axes = kOverTensor;
      for (int32_t place = 0; place < built; ++place)
        collective.members.push_back(
            add_gather(cut, group, place, collective.name, pieces[at(place)]));
      builder_.add_collective(std::move(collective));
    }
  }

  int32_t add_slice(const Cut& cut, int32_t place) {
    const Tensor of = builder_.tensor(cut.tensors[at(place)]);
    const int64_t rows = of.shape[1] / parts_;
    Operator slice;
    slice.name = builder_.op(of.producer).name + "/sent" + cut.suffix;
    slice.type = "Slice";
    slice.phase = builder_.op(of.producer).phase;
    slice.attributes["axes"] = std::vector<int64_t>{1};
    slice.attributes["starts"] = std::vector<int64_t>{rows * place};
    slice.attributes["ends"] = std::vector<int64_t>{rows * (place + 1)};
    slice.inputs = {cut.tensors[at(place)]};
    const int32_t id = add_for(of.producer, std::move(slice), made_.device_of(of.producer));
    Tensor piece = of;
    piece.name.clear();
    piece.shape.edit()[1] = rows;
    piece.bytes = of.bytes / parts_;
    builder_.op(id).traffic_bytes = 2 * static_cast<double>(piece.bytes);
    return builder_.add_output(id, std::move(piece));
  }

  int32_t add_gather(Cut& cut, int32_t group, int32_t place, const std::string& name,
                     int32_t piece) {
    const int32_t tensor = cut.tensors[at(place)];
    const Tensor of = builder_.tensor(tensor);
    int32_t reader = -1;
    for (const int32_t one : readers_[at(tensor)])
      if (group_of(one) == group && reader < 0) reader = one;
    Operator member;
    member.name = fmt::format("{}@{}", name, place);
    member.type = "AllGather";
    member.phase = builder_.op(of.producer).phase;
    member.traffic_bytes = 0;
    std::vector<int64_t> begins(of.shape.size(), 0);
    begins[1] = of.shape[1] / parts_ * place;
    member.attributes["begins"] = std::move(begins);
    member.inputs = {piece};
    const int32_t id = add_for(reader, std::move(member), group * parts_ + place);
    Tensor whole = of;
    whole.name.clear();
    cut.gathered[group].push_back(builder_.add_output(id, std::move(whole)));
    return id;
  }

  /// A tensor as an operator reads it.
  int32_t tensor_for(int32_t tensor, int32_t reader) const {
    const int32_t cut = cut_of_[at(tensor)];
    if (cut < 0) return tensor;
    const auto found = cuts_[at(cut)].gathered.find(group_of(reader));
    return found == cuts_[at(cut)].gathered.end() ? tensor : found->second[at(place_of(reader))];
  }

  LoweredGraph& made_;
  int32_t parts_;
  size_t built_;  // devices of a group: one, if one pipeline group per class is made
  const std::vector<bool>& whole_;
  GraphBuilder builder_;
  int32_t operators_;  // of the graph
  std::vector<Cut> cuts_;
  std::vector<int32_t> cut_of_;  // per tensor, or -1
  std::vector<std::vector<int32_t>> readers_;
  std::vector<OperatorRole> roles_;  // of what is added
  int32_t before_ = 0;               // where it goes
};

}  // namespace

void send_parts(LoweredGraph& made, int32_t tensor, const std::vector<bool>& whole) {
  Sending(made, tensor, whole).run();
}

}  // namespace trinity
