-- Searches over the simulator whose moves live in the engine (engine/search): annealing, local search,
-- FlexFlow's Markov chain, exhaustive search and the house's own recommendation. The loop is here, so that any
-- reward, budget and Ctrl-C hold for them as for every other method.

local checkpoints = require 'trinity.checkpoints'
local core = require 'trinity.core'
local drive = require 'trinity.drive'
local drive_checkpoint = require 'trinity.drive_checkpoint'
local search = require 'trinity.search'

-- Placements that the house's own search begins with, beside those of the engine (engine/search/best.h).
local list_schedulers = { 'heft', 'etf', 'm_etf' }
local most_operators = 20000 -- of a graph that these are tried on

local function house_starts(problem)
  local starts = {}
  if problem.graph.operators > most_operators then return starts end
  for _, name in ipairs(list_schedulers) do
    local placement = problem:placement()
    if core.construct(problem.handle, name, {}, placement) then starts[#starts + 1] = placement end
  end
  return starts
end

--- The searcher's settings: what the caller gave of the method's own options, and the common ones. `false` stands
--- for the engine's default.
local function settings_of(name, own, options, problem)
  local settings = { seed = options.seed, evaluations = math.min(options.evaluations, 2 ^ 40) }
  if name == 'best' then settings.starts = house_starts(problem) end
  if name == 'mcmc' then settings.value_per_ms = 1e-3 end -- rewards are in seconds unless the caller says so
  for i = 1, #own do
    local value = options[own[i]]
    if value ~= false then settings[own[i]] = value end
  end
  return settings
end

local function register(methods, name, own, about)
  local defaults = {}
  for i = 1, #own do defaults[own[i]] = false end
  methods.register(name, function(problem, options)
    options = search.options(name, defaults, options)
    return search.run(name, problem, options, function(self)
      checkpoints.begin(self)
      local resumed = checkpoints.restore_kept('methods.' .. name, self)
      local searcher = core.searcher(problem.handle, name, settings_of(name, own, options, problem))
      drive(self, searcher, drive_checkpoint.hooks(self, resumed, 0, {}))
      searcher:close()
    end)
  end, about)
end

return function(methods)
  register(methods, 'annealing', { 'starts', 'first_temperature', 'last_temperature', 'scale', 'batch', 'focus',
    'groups', 'evenly_one_in' }, { help = 'simulated annealing over moves of units, clusters and ranges', budget = true,
      source = 'Kirkpatrick et al. 1983' })
  register(methods, 'best', { 'starts', 'scale' },
    { help = "the house's own: cheap placements first, then annealing from the best", budget = true,
      source = 'engine/search/best.h' })
  register(methods, 'exhaustive', { 'most_placements' },
    { help = 'every placement once: the optimum of small graphs', budget = true, deterministic = true,
      source = 'engine/search/exhaustive.h', needs = 'at most 4 million placements' })
  register(methods, 'local_search', { 'starts', 'batch', 'patience', 'kick', 'focus' },
    { help = 'iterated local search over the simulator', budget = true, source = 'Lourenco et al. 2003' })
  register(methods, 'mcmc', { 'starts', 'alpha_per_ms', 'value_per_ms' },
    { help = "FlexFlow's Markov chain over placements", budget = true, source = 'Jia et al., MLSys 2019' })
end
