#pragma once

#include "base/options.h"
#include "features/features.h"

// Declarations of all feature options.

namespace trinity {

/// Visits (base/options.h) the feature options; node2vec's are "node2vec.NAME". `Options`:
/// FeatureOptions, const or not.
template <class Options, class Visit>
void each_feature_option(Options& o, Visit&& visit) {
  visit("raw_time", o.raw_time, "times instead of their logarithms (the paper)");
  visit("raw_output", o.raw_output,
        "output sizes of units and groups instead of their logarithms (the paper)");
  visit("mean_output_size", o.mean_output_size,
        "mean output size of a group's members (the paper's prose) instead of the sum (its "
        "Table 2)");
  visit("group_time", o.group_time, "the time of a group's members in its embedding");
  visit("adjacency", o.adjacency_out, std::array{"both", "out"},
        "neighbours in a group's embedding: both directions, or successors only (the paper)");
  visit("depth_feature", o.depth, "depth in the graph as a column");
  visit("depth_waves", o.depth_waves, 0, 64,
        "pairs of sine and cosine of the depth, of doubling frequency");
  visit("scale_by_mean", o.scale_by_mean,
        "times and sizes divided by their mean instead of Z-scores (the released code)");
  visit("type_feature", o.type_index, std::array{"embedding", "index"},
        "encoding of an operator's type; 'index': by frequency rank (the released code)");
  visit("group_counts", o.group_counts,
        "counts of types and edges instead of fractions and bits in group embeddings, rows "
        "divided by their largest entry plus 1 (the released code)");
  auto& walks = o.node2vec;
  visit("node2vec.dimensions", walks.dimensions, 0, 100000, "columns; 0: none");
  visit("node2vec.return_parameter", walks.return_parameter, 1e-9, 1e9,
        "p: below 1 favours returning to the previous node");
  visit("node2vec.in_out_parameter", walks.in_out_parameter, 1e-9, 1e9,
        "q: above 1 keeps the walk local");
  visit("node2vec.walk_length", walks.walk_length, 1, 100000, "nodes of a walk");
  visit("node2vec.walks_per_node", walks.walks_per_node, 1, 100000, "walks that begin at a node");
  visit("node2vec.window", walks.window, 1, 100000, "nodes on either side that are predicted");
  visit("node2vec.epochs", walks.epochs, 1, 100000, "passes over all walks");
  visit("node2vec.negatives", walks.negatives, 1, 100000, "sampled nodes per predicted one");
  visit("node2vec.learning_rate", walks.learning_rate, 0, 100, "of the skip-gram model");
}

}  // namespace trinity
