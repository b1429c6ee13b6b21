#!/usr/bin/env trinity
-- Trains a move ranker (lib/trinity/search/rankers.lua) with annealing runs on several graphs and clusters. It first
-- imitates the moves that improved a placement, then uses PPO to choose among candidate moves. Writes weights that
-- `search --method trinity --method-set rank=FILE` and `trinity study policy` read.

local trinity = require 'trinity'
local progress = require 'trinity.base.progress'
local run_state = require 'trinity.runs.state'
local training = require 'trinity.methods.move_training'
local util = require 'trinity.base.util'

local options = trinity.options(require 'trinity.command.shared'('', {
  'Trains a ranker of moves, with which method trinity searches.',
  graphs = { default = 'inception_v3:64,resnet50:32,gpt2:4,gnmt:64', help = 'MODEL or '
    .. 'MODEL:BATCH, with commas' },
  clusters = { default = 'p100x2,p100x4', help = 'clusters with commas; every graph is trained on each' },
  minutes = { default = 3, help = 'start no further round after this time', min = 0 },
  rounds = { type = 'number', help = 'number of rounds (default: as the minutes allow)', min = 1, integer = true },
  imitation = { default = training.rounds_of_imitation, help = 'first rounds, which imitate moves that helped '
    .. '(with --start: none)', min = 0, integer = true },
  clip = { default = 0.2, help = "PPO's clip range in the other rounds; 0: REINFORCE", min = 0,
    max = 1 },
  hidden = { default = '32,32', help = "widths of the hidden layers with commas; '': a linear score" },
  start = { type = 'string', help = 'continue from these weights, without imitation' },
  reward = { default = 'step_time', help = 'step_time, mdpe, or front (step time and memory, weights sampled '
    .. 'per episode)' },
  memory_features = { default = false, help = "add the reward's memory weight and memory per unit to the "
    .. "ranker's inputs" },
  evaluations = { default = 1000, help = 'evaluations per episode', min = 16, integer = true },
  alpha = { default = 0.5, help = 'weight of the step time in mdpe', min = 0 },
  beta = { default = 0.3, help = 'weight of the peak communication in mdpe', min = 0 },
  gamma = { default = 0.2, help = 'weight of the peak memory in mdpe', min = 0 },
  seed = { default = 1, help = 'fixes weights and episodes', min = 0, integer = true },
  resume = { default = false, help = 'resume from OUTPUT.training, which every round writes' },
  output = { default = 'runs/train/moves.safetensors', writes = '', help = 'write the weights to this file' },
}, 'alpha beta clip evaluations gamma hidden imitation'))

local hidden = {}
for i, word in ipairs(util.words(options.hidden)) do
  hidden[i] = tonumber(word)
  if not hidden[i] then util.fail_usage("option '--hidden': expected widths with commas, got '%s'", options.hidden) end
end
local rewards = { step_time = trinity.rewards.step_time, mdpe = trinity.rewards.mdpe,
  front = trinity.rewards.step_time }
if not rewards[options.reward] then
  util.fail_usage("option '--reward': unknown reward %s", util.unknown(options.reward,
    { 'front', 'mdpe', 'step_time' }))
end
local draws = options.reward == 'front' and training.front_reward or nil
local weights = options.reward == 'mdpe' and util.picked(options, { 'alpha', 'beta', 'gamma' }, false) or nil
local cases, left_out = training.cases(options.graphs, options.clusters, rewards[options.reward](weights))
if #cases == 0 then util.fail_usage("option '--graphs': no heuristic fits on any of the graphs and clusters") end
for _, label in ipairs(left_out) do print(label .. ': left out, no heuristic fits') end

local ranker = options.start and trinity.search.rankers.load(options.start)
  or trinity.search.rankers.new { hidden = hidden, seed = options.seed, memory_features = options.memory_features }
if options.memory_features and not ranker.memory_features then
  util.fail_usage "option '--memory-features': the weights of --start take none; use weights trained with this option"
end
local imitation = options.start and 0 or options.imitation
local by_time = options.reward == 'step_time'
local trainer = trinity.search.rankers.trainer(ranker, { seed = options.seed, clip = options.clip,
  evaluations = options.evaluations,
  first_temperature = not by_time and 1 or nil }) -- as searches with such a reward use (lib/trinity/search/race.lua)
training.add(trainer, cases, draws)
local state, round, before_s = options.output .. '.training', 0, 0
local again = run_state.settings.resume -- a resumed run may have been stopped in its first round
if again and not util.exists(state) then
  progress.note 'no round was saved: the training starts from scratch'
elseif again or options.resume then
  local notes = trainer:resume(state)
  round, before_s = tonumber(notes.rounds) or 0, tonumber(notes.seconds) or 0
end
print(('%d weights; trained on %s; %s\n'):format(ranker.weights, #cases == 1 and 'one problem'
  or ('%d problems'):format(#cases), options.rounds
  and ('%d rounds'):format(options.rounds) or ('%g minutes'):format(options.minutes)))

local begin_s, first_round = trinity.system.clock_s(), round + 1
local rows, most_rows = {}, 50 -- the newest rounds, which are shown
local function seconds() return before_s + trinity.system.clock_s() - begin_s end
local function more()
  if options.rounds then return round < options.rounds end
  return seconds() < 60 * options.minutes
end

local looks = progress.new('train', false)
local stopped = trinity.system.stoppable(function(stop_requested)
  while more() and not stop_requested() do
    local ok, kind, report = pcall(training.round, trainer, round + 1, #cases, imitation)
    if not ok then
      if stop_requested() then return end
      error(kind, 0)
    end
    round = round + 1
    report.round, report.kind = round, kind
    rows[#rows + 1] = report
    if #rows > most_rows then table.remove(rows, 1) end
    trinity.run:log { round = round, kind = kind, improving_share = report.improving / math.max(1, report.trials),
      loss = report.loss, entropy = kind ~= 'imitate' and report.entropy or nil, best_share = report.best_share }
    trainer:save(state, { rounds = tostring(round), seconds = tostring(seconds()) })
    looks:update { text = ('round %d: %.1f %% of the moves improve, best / start %.4f'):format(round,
      100 * report.improving / math.max(1, report.trials), report.best_share) }
  end
end)

if rows[1] and rows[1].round > first_round then
  print(('the newest %d rounds; metrics.jsonl in the run folder has all'):format(most_rows))
end
print(trinity.system.format_table({ 'round', 'learns by', 'trials', 'improving', 'loss', 'best / start' },
  util.map(rows, function(r)
    return { ('%d'):format(r.round), r.kind, ('%d'):format(r.trials),
      ('%.1f %%'):format(100 * r.improving / math.max(1, r.trials)), ('%.4f'):format(r.loss),
      ('%.4f'):format(r.best_share) }
  end)))
if round == 0 then
  print '\nno round was finished: nothing is saved'
  os.exit(stopped and trinity.system.stop_status() or 1)
end
ranker:save(options.output, { rounds = tostring(round), seed = tostring(options.seed),
  trained_on = table.concat(util.map(cases, function(case) return case.label end), ', '),
  hours = ('%.1f'):format(math.ceil(seconds() / 360) / 10),
  command = ('trinity train --graphs %s --clusters %s --rounds %d --hidden %s --seed %d%s%s%s%s%s'):format(
    options.graphs, options.clusters, round, options.hidden == '' and "''" or options.hidden, options.seed,
    options.start and ' --start ' .. options.start
    or imitation ~= training.rounds_of_imitation and (' --imitation %d'):format(imitation) or '',
    options.clip ~= 0.2 and (' --clip %g'):format(options.clip) or '', weights
    and (' --reward mdpe --alpha %g --beta %g --gamma %g'):format(weights.alpha, weights.beta, weights.gamma)
    or draws and ' --reward front' or '', options.memory_features and ' --memory-features' or '',
    options.evaluations ~= 1000 and (' --evaluations %d'):format(options.evaluations) or '') })
print(('\nthe weights are saved in %s'):format(options.output))
if stopped then os.exit(trinity.system.stop_status()) end
