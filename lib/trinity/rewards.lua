-- Reward shapes. A reward is a function of metrics that a search maximises; write your own in the
-- script, these are the published ones.

local check = require 'trinity.check'
local util = require 'trinity.util'

local rewards = {}

--- Minus the step time in seconds; a placement that does not fit counts ten times its time.
function rewards.step_time()
  return function(m) return -m.step_time_s * (m.feasible and 1 or 10) end
end

local mdpe_defaults = { alpha = 0.5, beta = 0.3, gamma = 0.2, communication_tolerance_bytes = 8e9,
  memory_tolerance_bytes = 8e9, mode = 'both', hinge_factor = 10, failing_factor = 10 }

local modes = {
  linear = function(x) return x end,
  hinge = function(x, factor) return factor * math.max(0, x - 1) end,
  both = function(x, factor) return x + factor * math.max(0, x - 1) end,
}

local mdpe_rules = { mode = { 'choice', modes } }
for key, default in util.sorted_pairs(mdpe_defaults) do
  if type(default) == 'number' then mdpe_rules[key] = { 'number', 0, 1e300 } end
end
mdpe_rules.communication_tolerance_bytes, mdpe_rules.memory_tolerance_bytes = { 'positive' }, { 'positive' }

--- Trinity's multi-dimensional performance evaluation (papers.md eq. 8, readings 1 to 6 of 1.9):
--- -log(alpha T + beta q(C) + gamma q(M)), T the step time in seconds, C and M the largest device's
--- traffic and memory over their tolerances, q linear below the tolerance and steeper above it
--- (mode 'linear', 'hinge' or 'both'). A placement that does not fit has its cost multiplied by
--- failing_factor and by one plus its excess over the memory tolerance, so that it is worse than
--- any that fits and still has a slope.
function rewards.mdpe(options)
  options = check.options('rewards.mdpe', 1, 'options', options, mdpe_rules)
  local o = {}
  for key, default in util.sorted_pairs(mdpe_defaults) do
    o[key] = options[key]
    if o[key] == nil then o[key] = default end
  end
  local q = modes[o.mode]
  local alpha, beta, gamma, factor = o.alpha, o.beta, o.gamma, o.hinge_factor
  local tolerated_communication = o.communication_tolerance_bytes
  local tolerated_memory = o.memory_tolerance_bytes
  return function(m)
    local cost = alpha * m.step_time_s
      + beta * q(m.peak_communication_bytes / tolerated_communication, factor)
      + gamma * q(m.peak_memory_bytes / tolerated_memory, factor)
    if not m.feasible then
      cost = o.failing_factor * cost * (1 + m.excess_memory_bytes / tolerated_memory)
    end
    return -math.log(cost)
  end
end

return rewards
