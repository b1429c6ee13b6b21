#pragma once

#include <memory>

#include "base/thread_pool.h"
#include "learn/move_network.h"
#include "search/placement/annealing.h"

namespace trinity {

struct MoveTrainingOptions {
  uint64_t seed = 1;
  int32_t evaluations = 1000;  ///< of an episode: one annealing
  int32_t candidates = 16;     ///< as in RankingOptions, which the policy is trained for
  double sharpness = 1.5;
  int32_t plain_one_in = 10;
  double first_temperature = 0.1;  ///< of the annealing
  double learning_rate = 1e-3;     ///< of Adam
  double discount = 0.8;           ///< of a later trial's reward
  double entropy = 0.003;          ///< bonus of the choice's entropy
  double clip = 0.2;               ///< of the ratio of probabilities; 0: REINFORCE
  int32_t epochs = 2;              ///< over the trials of a round; of REINFORCE always one
  int32_t baseline_trials = 100;   ///< whose mean return is a trial's baseline
};

/// Trains a ranker of moves on annealings of several problems. A round runs episodes side by side,
/// each of a seed of its own, then updates the weights in one thread: the same weights from the
/// same seed, whatever the number of threads.
class MoveTrainer {
 public:
  /// A network that was trained before keeps how it shifts and scales features.
  MoveTrainer(std::shared_ptr<MoveNetwork> network, const MoveTrainingOptions& options,
              ThreadPool& pool);

  /// A problem with placements to start from; each episode takes one of them.
  void add(std::shared_ptr<const Problem> problem, std::span<const std::vector<int32_t>> starts);

  /// The report of a round.
  struct Report {
    int64_t trials = 0;     ///< moves that were simulated and learned from
    int64_t improving = 0;  ///< those that were better than what they changed
    double loss = 0;        ///< mean
    double entropy = 0;     ///< mean, of the choices
    double clipped = 0;     ///< share of trials whose ratio was cut
    double best_share = 0;  ///< geometric mean over episodes of best found / start
  };
  /// Learns which of the moves that were tried made the step shorter: cross-entropy, weighted by
  /// the gain (Ross et al. 2011, DAgger: the states are those that the ranker itself comes to).
  Report imitate(int32_t episodes);
  /// The same from episodes that ran elsewhere (RankingOptions::record), by any reward.
  struct Episode {
    std::vector<RankedMoves::Choice> choices;
    double share = 1;  ///< best found / start, for the report
  };
  Report imitate(const std::vector<Episode>& episodes);
  /// Learns the choice among candidates: REINFORCE, or PPO where options().clip is above 0
  /// (Schulman et al. 2017).
  Report reinforce(int32_t episodes);
  Report reinforce(const std::vector<Episode>& episodes);

  /// The network with the state of the training; load_move_network() reads its weights, too. Throws
  /// FileError.
  void save(const std::string& path, const std::map<std::string, std::string>& notes) const;
  /// Resumes a training on the same problems with the same seed: what follows has the bytes of a
  /// training that was not interrupted. Returns the notes. Throws FileError for a file that holds
  /// none, or of another network, seed or number of problems.
  std::map<std::string, std::string> resume(const std::string& path);

  const MoveTrainingOptions& options() const { return options_; }
  void set_options(const MoveTrainingOptions& options) { options_ = options; }
  int64_t episodes() const { return episodes_; }
  const std::shared_ptr<MoveNetwork>& network() const { return network_; }

 private:
  struct Task;
  struct Trial;
  std::vector<Episode> run(int32_t episodes) const;
  Episode run_one(uint64_t number) const;
  void step(std::vector<float>& gradient, double scale);
  void standardise(const std::vector<float>& rows);
  void add_trials(const std::vector<RankedMoves::Choice>& choices,
                  std::vector<Trial>& trials) const;
  std::vector<double> log_chances(const float* scores, int32_t count) const;
  void add_slopes(const Trial& trial, const float* scores, std::vector<float>& slopes,
                  Report& report) const;
  template <class Use, class End>
  void each_batch(std::vector<Trial>& trials, Use use, End end);

  std::shared_ptr<MoveNetwork> network_;
  MoveTrainingOptions options_;
  ThreadPool& pool_;
  std::vector<std::shared_ptr<const Task>> tasks_;
  int64_t episodes_ = 0;
  bool standardised_ = false;
  AdamState adam_;
};

}  // namespace trinity
