-- What the ranks of DASO's section 'overlap' do (daso_overlap.lua): trains a network of six equal layers in step, each
-- variant in turn, and writes seconds of a batch by variant and round. arg: Mbit/s, rounds, batches, a file.

local core = require 'trinity.core'
local dist = require 'trinity.dist'
local json = require 'trinity.base.json'
local nn = require 'trinity.nn'
local random = require 'trinity.base.random'
local tensor = require 'trinity.nn.tensor'

local mbit_s, rounds, batches, path = tonumber(arg[1]), tonumber(arg[2]), tonumber(arg[3]), arg[4]
local job = dist.init { timeout_s = 60, link = { bandwidth_bytes_per_s = mbit_s * 1e6 / 8, latency_s = 1e-4 } }

local function trainer(options)
  local layers = { seed = 1 }
  for i = 1, 6 do
    layers[2 * i - 1], layers[2 * i] = nn.linear { inputs = 512, outputs = 512 }, nn.relu
  end
  options.module = nn.sequential(layers)
  options.optimiser = nn.sgd { parameters = options.module:parameters(), learning_rate = 0.01 }
  return dist.trainer(job, options)
end

local trainers = { trainer { bucket_bytes = 0 }, trainer { bucket_bytes = 2 ^ 20, overlap = false },
  trainer { bucket_bytes = 2 ^ 20 } }
local x = tensor.normal({ 256, 512 }, random(1, 'x', job.rank))
local y = tensor.normal({ 256, 512 }, random(1, 'y', job.rank))

--- Seconds of a batch in an epoch of a trainer.
local function measure(one)
  job:barrier()
  local began_s = core.clock_s()
  one:epoch(batches, function() return nn.mse(one.module(x), y) end)
  job:barrier()
  return (core.clock_s() - began_s) / batches
end

local seconds = { {}, {}, {} }
for v = 1, #trainers do measure(trainers[v]) end -- to warm up
for round = 1, rounds do
  for v = 1, #trainers do seconds[v][round] = measure(trainers[v]) end
end
local alike = (trainers[2]:pack() - trainers[3]:pack()):abs():max():item() == 0
if job.rank == 0 then core.write_file(path, json.encode { seconds = seconds, alike = alike }) end
job:close()
