-- Strategies that split operators over all devices: PaSE's optimum under its cost model, and the strategies that the
-- paper compares it with (trinity.pase). The simulator evaluates them like any other. Lower bounds of a problem assume
-- whole operators and do not apply to them.

local core = require 'trinity.core'
local options_of = require 'trinity.base.options'
local pase = require 'trinity.pase'
local search = require 'trinity.search'

--- Bytes per second of the slowest route.
local function slowest(cluster)
  local least = 16e9
  for from = 1, #cluster.devices do
    for to = 1, #cluster.devices do
      if from ~= to then
        local _, bandwidth = cluster:wire(from, to)
        least = (from == 1 and to == 2) and bandwidth or math.min(least, bandwidth)
      end
    end
  end
  return least
end

local choices = {
  best = function(layers, o, left_s) return layers:solve { seconds = left_s, seed = o.seed, quiet = o.quiet } end,
  mcmc = function(layers, o) return layers:mcmc(o.iterations, o.seed) end,
  tofu = function(layers) return layers:tofu() end,
}
for _, rule in ipairs { 'data_parallel', 'owt', 'expert' } do
  choices[rule] = function(layers) return layers:by_rule(rule) end
end

local model = pase.declared.by_name
local declared = options_of.declare('trinity.PaseMethodOptions', { extends = search.declared,
  help = 'Settings of methods.pase.',
  { 'seconds', 'number', 60, above = 0, help = 'wall-clock limit' },
  { 'choose', { 'best', 'mcmc', 'data_parallel', 'owt', 'expert', 'tofu' }, 'best',
    help = "PaSE's optimum, or what it is compared with" },
  { 'cutoff', 'integer', 1, least = 1, most = model.cutoff.most, help = model.cutoff.help },
  { 'factors', model.factors[2], 'divisors', help = model.factors.help },
  model.peak_flops,
  { 'bandwidth_bytes_per_s', 'number', 0, least = 0, help = "of the cost model; 0: the slowest route's" },
  { 'iterations', 'integer', 250000, least = 1, most = 2 ^ 40, help = "of 'mcmc'" },
})

local function split(problem, given)
  local o = search.options('pase', declared, given)
  local start = core.clock_s()
  local bandwidth = o.bandwidth_bytes_per_s > 0 and o.bandwidth_bytes_per_s or slowest(problem.cluster)
  local layers = pase.new(problem.graph, { devices = #problem.cluster.devices, cutoff = o.cutoff, factors = o.factors,
    peak_flops = o.peak_flops, bandwidth_bytes_per_s = bandwidth })
  local found, reason = choices[o.choose](layers, o, math.max(0, o.seconds - (core.clock_s() - start)))
  if not found then return nil, reason end
  return problem:strategy({ placement = problem:placement(), splits = layers:splits(found) },
    { method = 'pase', seed = o.seed, evaluations = 1, seconds = found.seconds, optimal = found.optimal })
end

return function(methods)
  methods.register('pase', split, { help = 'every layer split over all devices, exactly by a cost model',
    source = 'Elango, IPDPS 2021', needs = 'layers with shapes', deterministic = true, options = declared })
end
