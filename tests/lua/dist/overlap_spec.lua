-- Gradients averaged in buckets while the backward pass goes on: the same bits as behind it, the right averages.

with_torch()

local processes = dofile(root .. '/tests/lua/support/processes.lua')

-- A network of five layers, the third of which every second batch leaves out on rank 1.
local training = [[
local trinity = require 'trinity'
local nn, tensor = trinity.nn, trinity.tensor
local job = trinity.dist.init()
local layers = {}
local function make(options)
  layers = {}
  for i = 1, 5 do layers[i] = nn.linear { inputs = 6, outputs = 6, seed = 3 * i } end
  local class = nn.class 'net'
  function class:build() for i = 1, 5 do self['layer' .. i] = layers[i] end end
  function class:forward(x, skip)
    for i = 1, 5 do if i ~= skip then x = layers[i](x):tanh() end end
    return x
  end
  local net = class {}
  options.module = net
  options.optimiser = nn.sgd { parameters = net:parameters(), learning_rate = 0.5, momentum = 0.5 }
  return net, trinity.dist.trainer(job, options)
end
local function loss_of(net, batch)
  local stream = trinity.random(1, 'data', job.rank + 10 * batch)
  local skip = job.rank == 1 and batch % 2 == 0 and 3 or nil
  return nn.mse(net(tensor.normal({ 4, 6 }, stream), skip), tensor.normal({ 4, 6 }, stream))
end
local function train(options)
  local net, trainer = make(options)
  trainer:epoch(6, function(batch) return loss_of(net, batch) end)
  local list = {}
  for i, x in ipairs(trainer:pack():totable()) do list[i] = ('%.9g'):format(x) end
  return table.concat(list, ' '), trainer
end
local function counts(trainer) return ('%d %d'):format(trainer.buckets:counts()) end
local function say(...) job:print(table.concat({ ... }, ' ')) end
]]

describe('gradients in buckets', function()
  it('that overlap the backward pass give the bytes of those behind it, on nodes of two ranks', function()
    local status, output = processes.launch('-n 4 --per_node 2', training .. [[
      for _, bytes in ipairs { 1, 200, 400, 25000000 } do
        local before, one = train { bucket_bytes = bytes, overlap = false }
        local during, two = train { bucket_bytes = bytes }
        say(bytes, tostring(before == during), 'begun during backward:', counts(one), 'and', counts(two))
      end
    ]])
    expect(output):equals('1 true begun during backward: 10 0 and 10 10\n200 true begun during backward: 5 0 and 5 5\n'
      .. '400 true begun during backward: 3 0 and 3 3\n25000000 true begun during backward: 1 0 and 1 1\n')
    expect(status):equals(0)
  end)
  it('give two nodes the bytes of one buffer, and wait for no gradient that a batch does not make', function()
    local status, output = processes.launch('-n 2 --per_node 1', training .. [[
      local whole = train { bucket_bytes = 0 }
      local parts, trainer = train { bucket_bytes = 200 }
      say(tostring(whole == parts))
      trainer.optimiser:zero_grad()
      trainer:epoch(2, function(batch) return loss_of(trainer.module, batch) end)
      local _, begun = trainer.buckets:counts()
      say(job:mean(begun)) -- five on rank 0; on rank 1 the second bucket and those behind it wait for layer 3
    ]])
    expect(output):equals 'true\n3\n'
    expect(status):equals(0)
  end)
  it('are the means over all ranks', function()
    local status, output = processes.launch('-n 4 --per_node 2 --all_output', training .. [[
      local net, trainer = make { bucket_bytes = 200 }
      loss_of(net, 2):backward()
      job:average_gradients(net:parameters())
      local expected = {}
      for i, p in ipairs(net:parameters()) do expected[i] = p - p.grad * 0.5 end
      trainer.optimiser:zero_grad()
      trainer:epoch(1, function() return loss_of(net, 2) end)
      local off = 0
      for i, p in ipairs(net:parameters()) do off = math.max(off, (p - expected[i]):abs():max():item()) end
      print(off < 1e-6)
    ]])
    expect(output:gsub('%[%d%] ', '')):equals 'true\ntrue\ntrue\ntrue\n'
    expect(status):equals(0)
  end)
end)

processes.clean()
