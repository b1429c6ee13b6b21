// Profiles in PipeDream's format: PipeDream's own and DAPPLE's.
#include <doctest/doctest.h>

#include <nlohmann/json.hpp>
#include <set>

#include "base/file.h"
#include "formats/instances/pipedream.h"
#include "formats/read_model.h"
#include "support/shared_data.h"

using namespace trinity;

namespace {

const std::string kData = test::shared_data();

double time_s(const Graph& graph) {
  double sum = 0;
  for (const auto& op : graph.operators()) sum += op.measured_time_s + op.measured_backward_time_s;
  return sum;
}

std::string type_of(const std::string& description) {
  const auto graph =
      parse_pipedream("n -- " + description +
                          " -- forward_compute_time=1, backward_compute_time=2, activation_size=3, "
                          "parameter_size=4",
                      "x.txt", "x");
  return graph.op(0).type;
}

}  // namespace

TEST_CASE("layer names become ONNX types; layers that differ by their number are of one type") {
  const std::pair<const char*, const char*> cases[] = {
      {"Conv2d(3, 64, kernel_size=(11, 11))", "Conv"},
      {"Conv2d_1_2", "Conv"},
      {"MaxPool2d_5", "MaxPool"},
      {"ReLU(inplace)", "Relu"},
      {"FC1", "Gemm"},
      {"Prediction", "Gemm"},
      {"Linear(in_features=1, out_features=2)", "Gemm"},
      {"Embed-Token", "Gather"},
      {"Embed-Token-Dropout", "Dropout"},
      {"Embed-Segment-one_hot", "OneHot"},
      {"softmax_loss", "SoftmaxCrossEntropyLoss"},
      {"reshape_input", "Reshape"},
      {"__getitem__(0)", "Identity"},
      {"EmuBidirLSTM(  (bidir): LSTM(1024, 1024))", "LSTM"},
      {"Input0", "Input"},
      {"layer_23", "layer"},
      {"Layer_0", "Layer"},
      {"cell_3", "cell"},
      {"cell3", "cell"},
      {"cell_stem_1", "cell_stem"},
      {"reduction_cell_0", "reduction_cell"},
      {"reduction_cell_1/1x1", "Conv"},
      {"cell_3/prev_1x1", "Conv"},
      {"cell_3/Relu_1", "Relu"},
      {"XLNET_LOSS", "XLNET_LOSS"},
      {"12", "Operator"},
  };
  for (const auto& [description, type] : cases) {
    CAPTURE(description);
    CHECK(type_of(description) == type);
  }
}

TEST_CASE("DAPPLE's habits: whole numbers, edges indented by spaces, white space at a line's end") {
  const auto graph = parse_pipedream(
      "node1 -- input_ids -- forward_compute_time=1, backward_compute_time=0, "
      "activation_size=[9216; 4], parameter_size=0 \n"
      "node2 -- layer_0 -- forward_compute_time=8.07, backward_compute_time=13.4, "
      "activation_size=12976128, parameter_size=50384896\r\n"
      "  node1 -- node2  \n"
      "   \n",
      "x.txt", "x");
  CHECK(graph.operator_count() == 2);
  CHECK(graph.edge_count() == 1);
  CHECK(graph.tensor(0).bytes == 9220);
  CHECK(graph.op(1).extra_parameter_bytes == 50384896);
}

TEST_CASE("profiles take the time that PipeDream's own optimizer finds for one machine" *
          test::shared) {
  std::set<std::string> models;
  for (const std::string folder : {"/pipedream", "/dapple"}) {
    const auto expected = nlohmann::json::parse(read_file(kData + folder + "/expected.json"));
    for (const auto& result : expected.at("results")) {
      std::string model = result.at("model");
      if (!models.insert(model).second) continue;
      if (const auto at = model.find("_compressed"); at != std::string::npos) model.resize(at);
      const auto file = kData + folder + "/" + model + (folder == "/dapple" ? ".txt" : ".graph.txt");
      CAPTURE(model);
      CHECK(time_s(read_model(file).graph) == doctest::Approx(result.at("total").get<double>()).epsilon(1e-6));
    }
  }
  CHECK(models.size() == 14);
}
