---@meta _
-- Options that functions of lib/trinity/search take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

--- Settings of the training of a ranker.
---@class trinity.MoveTrainerOptions
---@field seed? integer of everything that is drawn (default 1; 0 to 2^53)
---@field evaluations? integer of an episode: one annealing (default 1000; 16 to 1e9)
---@field candidates? integer moves drawn for each that is tried (default 16; 2 to 1024)
---@field sharpness? number one is drawn with odds exp(sharpness x score) (default 1.5; 0.001 to 100)
---@field plain_one_in? integer one move in so many is drawn as it comes (default 10; 1 to 1e6)
---@field first_temperature? number of the annealing (default 0.1; 1e-12 to 1e12)
---@field learning_rate? number of Adam (default 0.001; 1e-9 to 10)
---@field discount? number of the worth of a trial later (default 0.8; 0 to 0.9999)
---@field entropy? number weight of the choice's entropy (default 0.003; 0 to 10)
---@field clip? number of the ratio of chances; 0: REINFORCE instead of PPO (default 0.2; 0 to 1)
---@field epochs? integer over the trials of a round, but of REINFORCE (default 2; 1 to 100)
---@field baseline_trials? integer whose mean return is the baseline (default 100; 2 to 1e6)

--- What problem:moves takes.
---@class trinity.MovesOptions
---@field seed? integer of what is drawn (default 1; 0 to 2^53)
---@field evenly_one_in? integer one seed in so many is drawn evenly, others by how long they hold up the step (default 2; 1 to 1e6)
---@field groups? boolean one move in eight takes a group of units of any level (default false)
---@field memory_share? number feature of that name (default 0; 0 to 1)

--- What a ranker is made of.
---@class trinity.RankerOptions
---@field hidden? integer[] widths of its hidden layers; none: a linear score (default: { 32, 32 }; 1 to 1024)
---@field seed? integer of the weights as they are drawn (default 1; 0 to 2^53)
---@field told? boolean whether it is told the reward's share of memory and who holds the memory, too (default false)

--- What every method takes.
---@class trinity.SearchOptions
---@field seed? integer fixes every random number (default 1; 0 or more)
---@field evaluations? integer placements to simulate (default 2000; 1 or more)
---@field seconds? number wall-clock limit; results then depend on the machine's speed (default: no limit; above 0)
---@field quiet? boolean no progress line (default false)
---@field rescue? string a file for the best so far when the script fails (default: in the run's folder)
