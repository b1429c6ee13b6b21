-- What reading data costs beside a step: processor seconds of the thread that reads ahead over those of the operators.
--   build/trinity tests/bench/bench_reading.lua
-- Both are measured in the same steps, so that what else the machine does meets both; medians of steps.

local core = require 'trinity.core'
local lowered = require 'trinity.execute.lowered'
local training = require 'trinity.execute.training'
local trinity = require 'trinity'
local util = require 'trinity.base.util'

local written = {}

local function write(ending, text)
  local name = os.tmpname()
  local path = name .. ending
  written[#written + 1], written[#written + 2] = name, path
  core.write_file(path, text)
  return path
end

local random = trinity.random(1, 'bench')
local function rows(count, width, classes)
  return util.listed(count, function()
    local row = util.listed(width, function() return tostring(random:integer(17) - 1) end)
    return table.concat(row, ',') .. ',' .. (random:integer(classes) - 1)
  end)
end

local images = util.listed(500, function(i)
  return string.char(i % 10) .. string.char(random:integer(256) - 1):rep(3072)
end)
local text = table.concat(util.listed(40000, function() return string.char(96 + random:integer(26)) end))

local cases = {
  { 'digits, CSV, mlp of 64-128-10, batch 25', write('.csv', table.concat(rows(1500, 64, 10), '\n') .. '\n'),
    trinity.model('mlp', { inputs = 64, hidden = { 128 }, classes = 10, batch_size = 25 }) },
  { "CIFAR-10's images, mlp of 3072-128-10, batch 25", write('.bin', table.concat(images)),
    trinity.model('mlp', { inputs = 3072, hidden = { 128 }, classes = 10, batch_size = 25 }) },
  { 'bytes, decoder of 2 layers of 64, batch 4', write('.txt', text),
    trinity.model('gpt2', { batch_size = 4, sequence = 32, layers = 2, hidden = 64, heads = 4, vocabulary = 256,
      positions = 32, fused = false, dropout = 0, optimizer = 'adam' }) },
}

local function measure(case)
  local problem = trinity.problem { graph = case[3], cluster = trinity.cluster 'p100x1' }
  local what = lowered(problem, problem:strategy { mesh = {} })
  local executor = core.executor(what.graph.handle, what.placement, 1, what.order, {
    data = training.read(case[3], case[2]), devices = { 'cpu:0' }, micro_batches = what.micro_batches })
  local read, busy = {}, {}
  for step = 1, 220 do
    local took = executor:step()
    if step > 20 then read[#read + 1], busy[#busy + 1] = took.read_s, took.busy_s[1] end
  end
  executor:close()
  return util.median(read), util.median(busy)
end

local table_rows = {}
for i, case in ipairs(cases) do
  local read_s, busy_s = measure(case)
  table_rows[i] = { case[1], ('%.1f us'):format(1e6 * read_s), ('%.1f us'):format(1e6 * busy_s),
    ('%.2f %%'):format(100 * read_s / busy_s) }
end
for _, path in ipairs(written) do os.remove(path) end
print(trinity.system.format_table({ 'data', 'reading', 'operators', 'ratio' }, table_rows))
