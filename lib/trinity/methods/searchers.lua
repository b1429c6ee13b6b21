-- Searches over the simulator whose moves live in the engine (engine/search): annealing, local search, FlexFlow's
-- Markov chain and exhaustive search. The loop is here, so that any reward, budget and Ctrl-C hold for them as for
-- every other method.

local ask_tell = require 'trinity.search.ask_tell'
local ask_tell_checkpoint = require 'trinity.search.ask_tell_checkpoint'
local checkpoints = require 'trinity.runs.checkpoints'
local core = require 'trinity.core'
local search = require 'trinity.search'
local util = require 'trinity.base.util'

local function register(methods, name, own, about)
  local defaults = {} -- `false` stands for the engine's
  for i = 1, #own do defaults[own[i]] = false end
  methods.register(name, function(problem, options)
    options = search.options(name, defaults, options)
    return search.run(name, problem, options, function(self)
      checkpoints.begin(self)
      local resumed = checkpoints.restore_kept('methods.' .. name, self)
      local searcher = core.searcher(problem.handle, name, util.merged(util.picked(options, own, false),
        { seed = options.seed, evaluations = math.min(options.evaluations, 2 ^ 40) }))
      ask_tell(self, searcher, ask_tell_checkpoint.hooks(self, resumed, 0, {}))
      searcher:close()
    end)
  end, about)
end

return function(methods)
  register(methods, 'annealing', { 'starts', 'first_temperature', 'last_temperature', 'groups', 'evenly_one_in' },
    { help = 'simulated annealing over moves of units, clusters and ranges', budget = true,
      source = 'Kirkpatrick et al. 1983' })
  register(methods, 'exhaustive', {},
    { help = 'every placement once: the optimum of small graphs', budget = true, deterministic = true,
      source = 'engine/search/placement/exhaustive.h', needs = 'at most 4 million placements' })
  register(methods, 'local_search', { 'starts' },
    { help = 'iterated local search over the simulator', budget = true, source = 'Lourenco et al. 2003' })
  register(methods, 'mcmc', { 'starts', 'alpha_per_ms' },
    { help = "FlexFlow's Markov chain over placements", budget = true, source = 'Jia et al., MLSys 2019' })
end
