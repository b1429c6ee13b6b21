-- Published rewards. A reward is a function of metrics that a search maximizes; a script can define its own.

local options_of = require 'trinity.base.options'

---@class trinity.RewardsModule
local rewards = {}

local function step_time(m) return -m.step_time_s * (m.feasible and 1 or 10) end

--- Returns the default reward: minus the step time in seconds, times ten for a placement that does not fit. The
--- function is always the same one, so that searches recognize it and may stop a simulation once its step is too long.
--- Example: `trinity.problem { graph = graph, cluster = cluster, reward = trinity.rewards.step_time() }`
---@return trinity.Reward
function rewards.step_time() return step_time end

local modes = {
  linear = function(x) return x end,
  hinge = function(x, factor) return factor * math.max(0, x - 1) end,
  both = function(x, factor) return x + factor * math.max(0, x - 1) end,
}

-- The reward for a weighted time (alpha T) and weighted penalties (beta qC + gamma qM).
local tiny = 1e-300 -- keeps the logarithm finite if all weights are zero
local scales = {
  log = function(time, penalty) return -math.log(math.max(tiny, time + penalty)) end,
  log_time = function(time, penalty) return -math.log(math.max(tiny, time)) - penalty end,
  sqrt = function(time, penalty) return -math.sqrt(time + penalty) end,
  linear = function(time, penalty) return -(time + penalty) end,
}

local mdpe = options_of.declare('trinity.MdpeOptions', { help = 'What rewards.mdpe takes.',
  { 'alpha', 'number', 0.5, least = 0, most = 1e300, help = 'weight of the step time' },
  { 'beta', 'number', 0.3, least = 0, most = 1e300, help = 'weight of the peak communication' },
  { 'gamma', 'number', 0.2, least = 0, most = 1e300, help = 'weight of the peak memory' },
  { 'communication_tolerance_bytes', 'number', 8e9, above = 0, help = 'tolerated communication of one device' },
  { 'memory_tolerance_bytes', 'number', 8e9, above = 0, help = 'tolerated memory of one device' },
  { 'mode', options_of.words('trinity.MdpeMode', { 'linear', 'hinge', 'both' }), 'both',
    help = 'penalty relative to the tolerance: linear, hinge (only above it), or both' },
  { 'hinge_factor', 'number', 10, least = 0, most = 1e300, help = 'slope above the tolerance' },
  { 'scale', options_of.words('trinity.MdpeScale', { 'log', 'log_time', 'sqrt', 'linear' }), 'log',
    help = 'function applied to the cost' },
  { 'failing_signal', 'number', least = 0, most = 1e300, otherwise = 'ten times the cost or more',
    help = 'a placement that does not fit has minus this value as its reward' },
})

--- Trinity's multi-dimensional performance evaluation (eq. 8 of papers/notes.md "Trinity: equations"): T is the step
--- time in seconds, C and M are the largest device's traffic and memory over their tolerances. The readings of
--- "Trinity: contradictions and gaps" there, item by item:
---   1  the reward falls with T, C and M: eq. 8 as printed grows with what it should lower;
---   2  three weights, alpha for T, beta for C, gamma for M;
---   3  scale: 'log' -log(alpha T + beta q(C) + gamma q(M)); 'log_time' -log(alpha T) - beta q(C) - gamma q(M), the
---      other possible scope of the logarithm; 'sqrt' minus the root of the sum, as in the released code; 'linear'
---      minus the sum;
---   4  T is the simulated step time;
---   5  q by mode: 'linear' C, 'hinge' hinge_factor * max(0, C - 1), 'both' their sum;
---   6  tolerances are bytes and soft; the limit is the memory of the device.
--- For a placement that does not fit, time and penalties are multiplied by ten and by 1 + excess memory /
--- memory tolerance. It is thus worse than similar placements that fit, and the reward still has a slope. With
--- failing_signal = s its reward is -s instead (10 in Hierarchical; in seconds in the released code). Example:
--- `trinity.rewards.mdpe { alpha = 0.7, gamma = 0.3 }`
---@param options? trinity.MdpeOptions
---@return trinity.Reward
function rewards.mdpe(options)
  local o = mdpe:read('rewards.mdpe', 1, 'options', options)
  local q, scale, failing_signal = modes[o.mode], scales[o.scale], o.failing_signal
  local alpha, beta, gamma, factor = o.alpha, o.beta, o.gamma, o.hinge_factor
  local tolerated_communication = o.communication_tolerance_bytes
  local tolerated_memory = o.memory_tolerance_bytes
  return function(m)
    if failing_signal and not m.feasible then return -failing_signal end
    local time = alpha * m.step_time_s
    local penalty = beta * q(m.peak_communication_bytes / tolerated_communication, factor)
      + gamma * q(m.peak_memory_bytes / tolerated_memory, factor)
    if not m.feasible then
      local worse = 10 * (1 + m.excess_memory_bytes / tolerated_memory)
      time, penalty = worse * time, worse * penalty
    end
    return scale(time, penalty)
  end
end

return rewards
