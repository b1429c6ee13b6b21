#!/usr/bin/env trinity
-- Effects of alpha, beta and gamma of Trinity's reward: the same search under ten settings of the weights, from step
-- time alone towards little communication (beta) and little memory (gamma), and the paper's own. Writes a table, CSV
-- and a picture.

local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local progress = require 'trinity.base.progress'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local options = trinity.options {
  'Step time, communication and memory of what Trinity finds under ten settings of alpha, beta and gamma.',
  set = require('trinity.command.settings').of_model,
  model = { default = 'inception_v3', help = 'a model in models/, or a file .lua .onnx .json .txt' },
  cluster = { default = 'p100x2', help = 'a cluster in models/clusters with a count, a Lua file, a profile' },
  batch_size = { default = 64, help = 'samples per step (a profile has its own)', min = 1, integer = true },
  evaluations = { default = 1000, help = 'placements that each search may simulate', min = 1, integer = true },
  seconds = { default = math.huge, help = 'wall-clock limit of each search; results then depend on the machine',
    min = 0 },
  seeds = { default = 3, help = 'searches of each setting; the table has medians', min = 1, integer = true },
  tolerance = { default = 8e9, help = 'bytes of communication and memory tolerated', min = 1,
    unit = 'bytes' },
  output = { default = 'runs/tradeoff', writes = '.csv', help = 'where PATH.csv, PATH.svg and PATH.png go' },
}

-- alpha, beta, gamma, and the line in the picture that a setting is on.
local settings = {
  { 1, 0, 0, 'both' },
  { 0.95, 0.05, 0, 'beta' }, { 0.8, 0.2, 0, 'beta' }, { 0.5, 0.5, 0, 'beta' }, { 0.1, 0.9, 0, 'beta' },
  { 0.95, 0, 0.05, 'gamma' }, { 0.8, 0, 0.2, 'gamma' }, { 0.5, 0, 0.5, 'gamma' }, { 0.1, 0, 0.9, 'gamma' },
  { 0.5, 0.3, 0.2, 'paper' },
}

local graph = cli.load_model(options)
local cluster = trinity.cluster(options.cluster)

local function measure(setting)
  local alpha, beta, gamma = unpack(setting)
  local problem = trinity.problem { graph = graph, cluster = cluster, reward = trinity.rewards.mdpe { alpha = alpha,
    beta = beta, gamma = gamma, communication_tolerance_bytes = options.tolerance,
    memory_tolerance_bytes = options.tolerance } }
  local runs = {}
  for seed = 1, options.seeds do
    runs[seed] = trinity.methods.trinity(problem, { evaluations = options.evaluations,
      seconds = options.seconds, seed = seed })
    if runs[seed].stopped then return nil end
  end
  local function median(name)
    return trinity.system.median(util.map(runs, function(found) return found.metrics[name] end))
  end
  return { setting = setting, time_s = median 'step_time_s', sends = median 'peak_communication_bytes',
    holds = median 'peak_memory_bytes' }
end

local found, rows, cells = {}, {}, {}
-- Ctrl-C may come between two searches, too.
trinity.system.stoppable(function(stop_requested)
  for i, setting in ipairs(settings) do
    local ok, row = pcall(measure, setting)
    if not ok and not stop_requested() then error(row, 0) end
    if not ok or not row then return end
    found[i] = row
    progress.note(('setting %d of %d: step time %.4g s'):format(i, #settings, row.time_s))
  end
end)
for i, setting in ipairs(settings) do
  if not found[i] then break end
  local f = found[i]
  rows[i] = { ('%.2f'):format(setting[1]), ('%.2f'):format(setting[2]), ('%.2f'):format(setting[3]),
    text.seconds(f.time_s), trinity.system.format_bytes(f.sends), trinity.system.format_bytes(f.holds) }
  cells[i] = { setting[4], setting[1], setting[2], setting[3], f.time_s, f.sends, f.holds }
end
print(trinity.system.format_table({ 'alpha', 'beta', 'gamma', 'step time', 'peak communication', 'peak memory' }, rows))
if #found < #settings then cli.leave_stopped(('%d of %d settings'):format(#found, #settings)) end

--- How often `what` does not fall (by more than a hundredth) from one setting of a line to the next.
local function rises(line, what)
  local count, before = 0, found[1][what]
  for i = 2, #found do
    if settings[i][4] == line then
      if found[i][what] > 1.01 * before then count = count + 1 end
      before = found[i][what]
    end
  end
  return count
end
print(('\npeak communication rises on %d of 4 steps of beta, peak memory on %d of 4 steps of gamma'):format(
  rises('beta', 'sends'), rises('gamma', 'holds')))

trinity.plot.csv(options.output .. '.csv', { 'line', 'alpha', 'beta', 'gamma', 'step_time_s',
  'peak_communication_bytes', 'peak_memory_bytes' }, cells)

--- Points of a line: GB and seconds.
local function points(line, what)
  local list = {}
  for i, f in ipairs(found) do
    if settings[i][4] == line or settings[i][4] == 'both' then list[#list + 1] = { f[what] / 1e9, f.time_s } end
  end
  return list
end
local picture, reason = trinity.plot.lines(options.output, { x = 'GB of the fullest device', y = 'step time in s',
  title = ('%s on %s: Trinity under weights of communication (beta) and memory (gamma)'):format(graph.name,
    cluster.name), series = { { name = 'peak communication by beta', points = points('beta', 'sends') },
    { name = 'peak memory by gamma', points = points('gamma', 'holds') } } })
print(('in %s.csv%s'):format(options.output, picture and ' and ' .. picture or '; no picture: ' .. reason))
local words = 'simulated; medians of seeds 1 to %d, %d evaluations%s a search\nmade by: trinity study tradeoff %s'
print(words:format(
  options.seeds, options.evaluations, options.seconds < math.huge and (' or %g s'):format(options.seconds) or '',
  cli.words()))
