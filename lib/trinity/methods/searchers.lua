-- Searches over the simulator whose moves live in the engine (engine/search): annealing, local search, FlexFlow's
-- Markov chain and exhaustive search. The loop is here, so that any reward, budget and Ctrl-C hold for them as for
-- every other method.

local ask_tell = require 'trinity.search.ask_tell'
local ask_tell_checkpoint = require 'trinity.search.ask_tell_checkpoint'
local checkpoints = require 'trinity.runs.checkpoints'
local core = require 'trinity.core'
local in_flight = require 'trinity.search.in_flight'
local ranked = require 'trinity.search.ranked'
local options_of = require 'trinity.base.options'
local search = require 'trinity.search'
local util = require 'trinity.base.util'

-- Declares a searcher's options: class and help, or nothing of its own.
local function declare(name, class)
  if not class then return search.declared end
  local own = { extends = search.declared, help = ('Settings of methods.%s.'):format(name),
    { 'starts', 'table', late = true, as = 'trinity.Placement[]', otherwise = 'everything on one device',
      help = 'placements that are simulated first; the best is the start' } }
  if name == 'annealing' then
    own[#own + 1] = ranked.option(false, 'moves are tried in the order in which they are sampled')
    own[#own + 1] = ranked.accept_option()
  end
  if name == 'annealing' or name == 'local_search' then own[#own + 1] = ranked.moves_option() end
  return options_of.declare('trinity.' .. class, options_of.of_engine(own, core.method_options(name)))
end

local function register(methods, name, class, about)
  local declared, own = declare(name, class), {}
  local functions = { rank = true, accept = true, moves = true }
  for _, entry in ipairs(class and declared.own or {}) do
    if not functions[entry.name] then own[#own + 1] = entry.name end
  end
  about.options = declared
  methods.register(name, function(problem, options)
    options = search.options(name, declared, options)
    return search.run(name, problem, options, function(self)
      checkpoints.begin(self)
      local resumed = checkpoints.restore_kept('methods.' .. name, self)
      local ranker = ranked.of(options.rank)
      local searcher = ranked.searcher(problem, name, util.merged(util.picked(options, own, false),
        { seed = options.seed, evaluations = math.min(options.evaluations, 2 ^ 40) }), ranker, options.accept,
        options.moves)
      if name == 'annealing' then searcher = in_flight(self, searcher, options.accept or ranker) end
      ask_tell(self, searcher, ask_tell_checkpoint.hooks(self, resumed, 0, {}))
      searcher:close()
    end)
  end, about)
end

return function(methods)
  register(methods, 'annealing', 'AnnealingOptions',
    { help = 'simulated annealing over moves of units, clusters and ranges', budget = true,
      source = 'Kirkpatrick et al. 1983' })
  register(methods, 'exhaustive', nil,
    { help = 'every placement once: the optimum of small graphs', budget = true, deterministic = true,
      source = 'engine/search/placement/exhaustive.h', needs = 'at most 4 million placements' })
  register(methods, 'local_search', 'LocalSearchOptions',
    { help = 'iterated local search over the simulator', budget = true, source = 'Lourenco et al. 2003' })
  register(methods, 'mcmc', 'McmcOptions',
    { help = "FlexFlow's Markov chain over placements", budget = true, source = 'Jia et al., MLSys 2019' })
end
