#pragma once

// Headers of others that most files of the core include, parsed once (a precompiled header: a third
// less time to build). Files include what they need all the same.
#include <fmt/format.h>

#include <algorithm>
#include <boost/graph/compressed_sparse_row_graph.hpp>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>
