#pragma once

#include <string>
#include <vector>

#include "fuzz/target.h"

namespace trinity::fuzz {

struct CampaignOptions {
  double seconds = 60;  ///< of fuzzing, after the corpus
  uint64_t seed = 1;
  std::string corpus;              ///< folder of kept inputs; may be missing
  std::vector<std::string> files;  ///< replayed instead of the corpus
  std::string failures;            ///< folder where inputs that fail are written
  std::string keep;                ///< folder for inputs that reached new code, "": none is kept
  std::string places;              ///< file for the places of C++ reached, "": none
  double hang_s = 10;              ///< processor time of one input
  double memory_bytes = 2e9;       ///< that the process may grow by
};

struct CampaignResult {
  uint64_t inputs = 0, seeds = 0, corpus = 0, pairs = 0;
  double seconds = 0;
  std::vector<std::string> failures;  ///< a line each: why, and the file
};

/// Replays the corpus of a target, then mutates it until the time is over. The target runs in child
/// processes, replaced every 30 s and after each failure: an exception other than trinity::Error, a
/// signal or a sanitizer's report, a hang, too much memory. Ends after ten failures.
CampaignResult run_campaign(const Target& target, const CampaignOptions& options);

}  // namespace trinity::fuzz
