#pragma once

#include <array>

#include "base/error.h"
#include "features/features.h"

// Every option of features, once: its name for scripts, files and errors, and what it may be.

namespace trinity {

/// Throws ArgumentError for a number out of its range.
inline void check_option(const char* name, double value, double least, double most) {
  if (!(value >= least && value <= most))
    throw ArgumentError(
        fmt::format("option '{}': expected {} to {}, got {}", name, least, most, value));
}

/// Calls visit(name, number, least, most), visit(name, flag) or visit(name, choice, words), whose
/// value is the place among the words, for the options of features. Those of node2vec are
/// "node2vec.NAME". `Options`: FeatureOptions, const or not.
template <class Options, class Visit>
void each_feature_option(Options& o, Visit&& visit) {
  visit("raw_time", o.raw_time);
  visit("mean_output_size", o.mean_output_size);
  visit("depth_feature", o.depth);
  visit("depth_waves", o.depth_waves, 0, 64);
  visit("scale_by_mean", o.scale_by_mean);
  visit("type_feature", o.type_index, std::array{"embedding", "index"});
  visit("group_counts", o.group_counts);
  auto& walks = o.node2vec;
  visit("node2vec.dimensions", walks.dimensions, 0, 100000);
  visit("node2vec.return_parameter", walks.return_parameter, 1e-9, 1e9);
  visit("node2vec.in_out_parameter", walks.in_out_parameter, 1e-9, 1e9);
  visit("node2vec.walk_length", walks.walk_length, 1, 100000);
  visit("node2vec.walks_per_node", walks.walks_per_node, 1, 100000);
  visit("node2vec.window", walks.window, 1, 100000);
  visit("node2vec.epochs", walks.epochs, 1, 100000);
  visit("node2vec.negatives", walks.negatives, 1, 100000);
  visit("node2vec.learning_rate", walks.learning_rate, 0, 100);
}

}  // namespace trinity
