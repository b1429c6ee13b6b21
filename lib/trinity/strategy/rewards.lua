-- Reward shapes. A reward is a function of metrics that a search maximises; write your own in the
-- script, these are the published ones.

local options_of = require 'trinity.base.options'

---@class trinity.RewardsModule
---@since 0.1.0
local rewards = {}

local function step_time(m) return -m.step_time_s * (m.feasible and 1 or 10) end

--- Minus the step time in seconds; a placement that does not fit counts ten times its time. Always the same function,
--- by which searches know that a step may be given up as soon as it is too long.
---@return trinity.Reward
function rewards.step_time() return step_time end

local modes = {
  linear = function(x) return x end,
  hinge = function(x, factor) return factor * math.max(0, x - 1) end,
  both = function(x, factor) return x + factor * math.max(0, x - 1) end,
}

-- The reward of a weighted time (alpha T) and weighted penalties (beta qC + gamma qM), and of the cost of both.
local tiny = 1e-300 -- weights of zero: a logarithm stays finite
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
  { 'communication_tolerance_bytes', 'number', 8e9, above = 0, help = 'of the largest device' },
  { 'memory_tolerance_bytes', 'number', 8e9, above = 0, help = 'of the largest device' },
  { 'mode', options_of.words('trinity.MdpeMode', { 'linear', 'hinge', 'both' }), 'both',
    help = 'what lies below and above the tolerance' },
  { 'hinge_factor', 'number', 10, least = 0, most = 1e300, help = 'slope above the tolerance' },
  { 'failing_factor', 'number', 10, least = 0, most = 1e300, help = 'on the cost of a placement that does not fit' },
  { 'scale', options_of.words('trinity.MdpeScale', { 'log', 'log_time', 'sqrt', 'linear' }), 'log',
    help = 'what is taken of the cost' },
  { 'failing_signal', 'number', least = 0, most = 1e300, otherwise = 'failing_factor counts',
    help = 'the reward of a placement that does not fit is minus this' },
})

--- Trinity's multi-dimensional performance evaluation (eq. 8 of papers/notes.md "Trinity: equations"): T is the step
--- time in seconds, C and M are the largest device's traffic and memory over their tolerances. The readings of
--- "Trinity: contradictions and gaps" there, item by item:
---   1  the reward falls with T, C and M: eq. 8 as printed grows with what it should lower;
---   2  three weights, alpha for T, beta for C, gamma for M;
---   3  scale: 'log' -log(alpha T + beta q(C) + gamma q(M)); 'log_time' -log(alpha T) - beta q(C) - gamma q(M), the
---      other scope that eq. 8 may have; 'sqrt' minus the root of the sum, as the released code; 'linear' minus it;
---   4  T is the simulated step time;
---   5  q by mode: 'linear' C, 'hinge' hinge_factor * max(0, C - 1), 'both' their sum;
---   6  tolerances are bytes and soft; the limit is the memory of the device.
--- A placement that does not fit has time and penalties multiplied by failing_factor and by one plus its excess over
--- the memory tolerance: worse than any that fits nearby, and with a slope. With failing_signal = s its reward is -s
--- instead (10 in Hierarchical, in seconds in the released code).
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
      local worse = o.failing_factor * (1 + m.excess_memory_bytes / tolerated_memory)
      time, penalty = worse * time, worse * penalty
    end
    return scale(time, penalty)
  end
end

return rewards
