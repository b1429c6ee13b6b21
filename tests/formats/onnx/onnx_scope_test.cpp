#include <doctest/doctest.h>
#include <google/protobuf/unknown_field_set.h>

#include "formats/export/placement_export.h"
#include "formats/onnx/onnx_net.h"

using namespace trinity;

namespace {

/// Metadata as PyTorch's exporter writes it: a field that ONNX before 1.16 does not know.
void add_metadata(onnx::NodeProto& node, const std::string& key, const std::string& value) {
  onnx::StringStringEntryProto entry;
  entry.set_key(key);
  entry.set_value(value);
  node.GetReflection()->MutableUnknownFields(&node)->AddLengthDelimited(9,
                                                                        entry.SerializeAsString());
}

}  // namespace

TEST_CASE("a node of PyTorch's exporter keeps the path of its module") {
  OnnxNet net;
  net.input("x", {"2", "3"}).output("y");
  auto& graph = net.graph();
  const char* names[] = {"a", "b", "c", "y"};
  const char* scopes[] = {"['', 'layer1', 'layer1.0', 'layer1.0.relu', 'relu_2']", "['', 'relu']",
                          "no list", "['', 'unfinished"};
  std::string input = "x";
  for (int i = 0; i < 4; ++i) {
    auto& node = *graph.add_node();
    node.set_name(std::string("node_") + names[i]);
    node.set_op_type("Relu");
    node.add_input(input);
    node.add_output(input = names[i]);
    add_metadata(node, "namespace", ": Net/layer9: Other");
    add_metadata(node, "pkg.torch.onnx.name_scopes", scopes[i]);
  }
  const auto imported = parse_onnx(net.model.SerializeAsString(), "net.onnx", "net", {});
  const auto& read = imported.graph;
  CHECK(module_path(read.op(read.find("node_a"))) == "layer1.0.relu");
  for (const char* name : {"node_b", "node_c", "node_y"})
    CHECK(module_path(read.op(read.find(name))) == "");
}
