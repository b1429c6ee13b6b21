-- The ranks of DASO's section 'overlap' (daso_overlap.lua) train a perceptron of six equal layers in step,
-- each variant in turn, and write seconds of a step by variant and round. arg: Mbit/s, rounds, steps, a file.

local core = require 'trinity.core'
package.path = core.home .. '/scripts/?.lua;' .. package.path -- ranks begin without scripts/study.lua
local daso_jobs = require 'studies.papers.daso_jobs'
local dist = require 'trinity.dist'
local execute = require 'trinity.execute'
local json = require 'trinity.base.json'
local model = require 'trinity.graph.model'
local problems = require 'trinity.strategy.problem'
local util = require 'trinity.base.util'

local mbit_s, rounds, steps, path = tonumber(arg[1]), tonumber(arg[2]), tonumber(arg[3]), arg[4]
local job = dist.init { timeout_s = 60, link = { bandwidth_bytes_per_s = mbit_s * 1e6 / 8, latency_s = 1e-4 } }
local graph = model.load('mlp', { inputs = 512, hidden = util.listed(5, function() return 512 end), classes = 512,
  batch_size = 256 })
local problem = problems.new { graph = graph, cluster = daso_jobs.cluster(job.size, 1, mbit_s, 0.1) }
local variants = util.map({ 2 ^ 30, 2 ^ 20 }, function(bytes)
  return problem:strategy { mesh = { data = job.size }, bucket_bytes = bytes }
end)

local seconds, losses = { {}, {} }, {}
for round = 1, rounds do
  for v, strategy in ipairs(variants) do
    local run = execute(problem, strategy, { steps = steps + 1, warm_up = 1, quiet = true })
    seconds[v][round], losses[v] = run.step_time_s, run.losses[steps + 1]
  end
end
if job.rank == 0 then core.write_file(path, json.encode { seconds = seconds, alike = losses[1] == losses[2] }) end
job:close()
