#!/usr/bin/env trinity
-- Figure 5 of the Trinity paper: how the policy converges on NMT, NASNet and InceptionV3. The policy alone, without
-- warm start and refinement; loss, mean and best reward of every update, as CSV and as a picture, seeds as a band.

local trinity = require 'trinity'
local paper = require 'trinity.paper.trinity'
local plot = require 'trinity.base.plot'
local util = require 'trinity.base.util'

local options = trinity.options(paper.declare {
  'Convergence of the Trinity policy: loss and best reward by update, with seeds as a band.',
  updates = { default = 100, help = 'policy updates', min = 1, integer = true },
  seeds = { default = 3, help = 'searches of every network', min = 1, integer = true },
  samples = { default = 0, help = "placements an update; 0: the preset's", min = 0, integer = true },
  preset = { default = 'default', help = 'settings of the policy: default, paper or code' },
  output = { default = 'runs/figure5', writes = '.csv', help = 'where PATH.csv, PATH.svg and PATH.png go' },
  only = { default = 'nmt,nasnet_large,inception_v3', help = 'models with commas' },
  cards = { default = '2', help = 'numbers of cards' },
})

--- Rows of one search: { update, loss, mean reward, best reward }.
local function train(problem, seed)
  local agent = trinity.policies.trinity(problem, { seed = seed, preset = options.preset,
    samples = options.samples > 0 and options.samples or nil })
  local points, best = {}, -math.huge
  for update = 1, options.updates do
    local rewards, placements = {}, agent:sample()
    for i, metrics in ipairs(problem:evaluate_batch(placements)) do
      rewards[i] = problem:score(metrics, placements[i])
      best = math.max(best, rewards[i])
    end
    local report = agent:update(rewards)
    points[update] = { update, report.loss, report.mean_reward, best }
  end
  agent:close()
  return points
end

--- The least, the middle and the largest of column `c` over the seeds at an update.
local function band(runs, update, c)
  local list = util.map(runs, function(points) return points[update][c] end)
  table.sort(list)
  return list[1], list[math.floor((#list + 1) / 2)], list[#list]
end

local cells, blocks, labels, summary = {}, {}, {}, {}
for label, problem in paper.rows(options, trinity.rewards.mdpe()) do
  local runs = trinity.parallel_map(options.seeds, function(seed) return train(problem, seed) end, { workers = 1 })
  local lines = {}
  for update = 1, options.updates do
    for seed, points in ipairs(runs) do
      local p = points[update]
      cells[#cells + 1] = { label, seed, update, p[2], p[3], p[4] }
    end
    local values = { update }
    for _, c in ipairs { 2, 4 } do
      values[#values + 1], values[#values + 2], values[#values + 3] = band(runs, update, c)
    end
    lines[update] = values
  end
  labels[#labels + 1], blocks[#blocks + 1] = label, plot.block('data' .. #labels + 1, lines)
  local _, first = band(runs, 1, 4)
  local _, last = band(runs, options.updates, 4)
  local _, mean_first = band(runs, 1, 3)
  local _, mean_last = band(runs, options.updates, 3)
  summary[#labels] = { label, ('%.4f'):format(first), ('%.4f'):format(last), ('%.4f'):format(mean_first),
    ('%.4f'):format(mean_last) }
  io.stderr:write(label, ' is done\n')
end
local head = { 'network', 'best reward, first update', 'last update', 'mean reward, first update', 'last update' }
print(trinity.format_table(head, summary))
trinity.run:result('table', { head = head, rows = summary }, ('Rewards of the policy over %d updates.'):format(
  options.updates))
plot.csv(options.output .. '.csv', { 'network', 'seed', 'update', 'loss', 'mean_reward', 'best_reward' }, cells)

--- A panel of the picture: a band and a middle line a network, from column `first`.
local function panel(title, first)
  local parts = {}
  for i, label in ipairs(labels) do
    parts[#parts + 1] = ('$data%d using 1:%d:%d with filledcurves fs transparent solid 0.25 lc %d notitle'):format(i,
      first, first + 2, i)
    parts[#parts + 1] = ("$data%d using 1:%d with lines lw 2 lc %d title '%s' noenhanced"):format(i, first + 1, i,
      label)
  end
  return ("set ylabel '%s'\nplot %s\n"):format(title, table.concat(parts, ', \\\n  '))
end
local picture, reason = plot.picture(options.output, table.concat(blocks)
  .. "set multiplot layout 1,2\nset xlabel 'update'\nset grid\nset key bottom right\n" .. panel('loss', 2)
  .. panel('best reward', 5) .. 'unset multiplot\n', 1200, 500)
print(('\nin %s.csv%s'):format(options.output, picture and ' and ' .. picture or '; no picture: ' .. reason))
print(('simulated; medians of seeds 1 to %d; preset %s\nmade by: trinity scripts/figure5.lua %s'):format(options.seeds,
  options.preset, table.concat(arg, ' ')))
