-- Values for random programs: what an argument declared as some type may be, and what it may not.

local trinity = require 'trinity'
local declarations = require 'trinity.command.declarations'
local small = require 'small'

local values = { declared = declarations.read() }
local classes, aliases = values.declared.classes, values.declared.aliases

local Chooser = {}
Chooser.__index = Chooser

--- Choices that the bytes of `text` make: none are left when `spent`.
function values.chooser(text) return setmetatable({ text = text, at = 0 }, Chooser) end

--- A whole number from 1 to count.
function Chooser:pick(count)
  self.at = self.at + 1
  local byte = self.text:byte(self.at)
  if not byte then
    self.spent = true
    return 1
  end
  if count > 256 then
    self.at = self.at + 1
    byte = byte * 256 + (self.text:byte(self.at) or 0)
  end
  return byte % count + 1
end

function Chooser:one_of(list) return list[self:pick(#list)] end

--- True once in `count`, but not when the bytes are spent.
function Chooser:rarely(count) return self:pick(count) == 2 end

local integers = { 0, 1, 2, 3, 4, 5, 1, 2, 3, 4, 1, 2, 8, 16, 64, -1, 7, 100, 0.5, -2 ^ 31, 2 ^ 31, 2 ^ 53, 2 ^ 63,
  1e300, 0 / 0, 1 / 0, -1 / 0, 65536, 1e6 }
local numbers = { 0, 1, 0.5, 2, 1e-3, 1e3, -1, 1e9, 1e-300, 1e300, 0 / 0, 1 / 0, -1 / 0, 4, 2 ^ 53, -0.0, 1e-9 }
local strings = { '', 'a', 'x', 'a1', 'conv', 'MatMul', 'Relu', 'float32', 'int64', 'p100', 'p100x2', 'vgg16', 'heft',
  'random', 'fifo', '1f1b', 'gpipe', 'bsp', 'cpu', 'cpu:0', 'cuda:0', 'n0/gpu0', 'n0', 'classifier', 'image', 'b',
  'sum', 'mean', 'automatic', 'all_reduce', 'nothing/at/all', 'out.json', ('x'):rep(5000), '\0', '\255\254', '%s%d',
  '\27[31m', '../', 'a\nb', "'", 'not a thing', 'Work', 'nvlink2', 'step' }

-- How objects of a class are made, in addition to those that calls have returned.
local makers = {}

makers['trinity.Graph'] = function() return small.graph(1) end
makers['trinity.Cluster'] = function(c) return trinity.cluster(c:one_of { 'p100x2', 'p100', 'dgx_a100' }) end
makers['trinity.Problem'] = function() return small.problem(1) end
makers['trinity.Placement'] = function(c, pool)
  local problem = pool:get 'trinity.Problem'
  local placement = problem:placement()
  for op = 1, #placement do placement[op] = c:pick(2) end
  return placement
end
makers['trinity.Strategy'] = function(_, pool)
  local problem = pool:get 'trinity.Problem'
  return problem:strategy(problem:placement())
end
makers['trinity.Metrics'] = function(_, pool)
  local problem = pool:get 'trinity.Problem'
  return problem:evaluate(problem:placement())
end
makers['trinity.Timeline'] = function(_, pool)
  local problem = pool:get 'trinity.Problem'
  return problem:timeline(problem:placement())
end
makers['trinity.DoubleArray'] = function(_, pool) return pool:get('trinity.Timeline').start_s end
makers['trinity.Builder'] = function() return trinity.graph.new { name = 'g' } end
makers['trinity.Tensor'] = function(_, pool)
  local builder = pool:get 'trinity.Builder'
  return builder:add { name = 't' .. #pool.all, type = 'Input', outputs = { { shape = { 2, 2 } } } }
end
makers['trinity.Layers'] = function() return trinity.graph.layers.new 'net' end
makers['trinity.Topology'] = function() return trinity.devices.topology.new() end
makers['trinity.TorchTensor'] = function(c)
  local tensor = trinity.tensor
  return tensor.new(c:one_of { { 1, 2, 3 }, { { 1, 2 }, { 3, 4 } }, { { { 1 } } }, 5 })
end
makers['trinity.Module'] = function() return trinity.nn.linear { inputs = 2, outputs = 2 } end
makers['trinity.NetworkOptimiser'] = function(_, pool)
  return trinity.nn.sgd { parameters = pool:get('trinity.Module'):parameters(), learning_rate = 0.1 }
end
makers['trinity.RandomStream'] = function() return trinity.random(1, 'x') end
makers['trinity.Comparison'] = function(_, pool)
  return trinity.compare(pool:get 'trinity.Problem', { 'round_robin' }, { quiet = true })
end
makers['trinity.Agent'] = function(_, pool)
  return trinity.learn.agent(pool:get 'trinity.Problem', { hidden = 4, samples = 2, groups = 4 })
end
makers['trinity.Method'] = function(c) return trinity.methods.get(c:one_of { 'heft', 'random', 'round_robin' }) end

local Pool = {}
Pool.__index = Pool

--- Objects by class.
function values.pool(chooser) return setmetatable({ chooser = chooser, of = {}, all = {}, depth = 0 }, Pool) end

function Pool:put(class, object)
  local list = self.of[class] or {}
  self.of[class], list[#list + 1] = list, object
  self.all[#self.all + 1] = object
end

--- An object of a class: one that is there, else a new one; nil where none can be made.
function Pool:get(class)
  local list = self.of[class]
  if list and not self.chooser:rarely(4) then return self.chooser:one_of(list) end
  local make = makers[class]
  if not make or self.depth > 6 then return nil end
  self.depth = self.depth + 1
  local ok, object = pcall(make, self.chooser, self)
  self.depth = self.depth - 1
  if not ok then return nil end
  self:put(class, object)
  return object
end

local generate -- (chooser, pool, type's text, depth)

--- Anything at all.
local function junk(c, pool)
  local kind = c:pick(10)
  if kind == 1 then return nil end
  if kind == 2 then return c:one_of(numbers) end
  if kind == 3 then return c:one_of(strings) end
  if kind == 4 then return c:pick(2) == 1 end
  if kind == 5 then return {} end
  if kind == 6 then return { c:one_of(numbers), c:one_of(strings) } end
  if kind == 7 then return function() return c:one_of(numbers) end end
  if kind == 8 then return { [c:one_of(strings)] = c:one_of(integers) } end
  if kind == 9 then return coroutine.create(function() end) end
  return #pool.all > 0 and c:one_of(pool.all) or io.stdout
end

-- Fields with a meaning that no type expresses: work must stay small, files below the working folder.
local named = {
  evaluations = function(c) return c:pick(40) end, seconds = function() return 0.05 end,
  quiet = function() return true end,
  hidden = function(c) return c:pick(8) end, samples = function(c) return c:pick(4) end,
  groups = function(c) return c:pick(6) end, epochs = function(c) return c:pick(2) end,
  path = function(c) return c:one_of { 'a.json', 'b.json', 'c.txt', 'no/x' } end,
  out = function(c) return c:one_of { 'out', 'out.json' } end, steps = function(c) return c:pick(3) end,
  words = function(c) return { c:one_of(strings) } end, name = function(c) return c:one_of(strings) end,
}

local function fields_of(name)
  local class, list = classes[name], {}
  while class do
    for _, field in ipairs(class.fields) do list[#list + 1] = field end
    class = class.parent and classes[class.parent]
  end
  return list
end

local function structure(c, pool, fields, depth)
  local result = {}
  for _, field in ipairs(fields) do
    local wanted = not field.optional and not c:rarely(16) or field.optional and c:rarely(5)
    if field.name == 'evaluations' or field.name == 'quiet' then wanted = true end
    if wanted and not field.name:match '^%[' then
      local own = named[field.name]
      if own and not c:rarely(12) then result[field.name] = own(c)
      else result[field.name] = generate(c, pool, field.type, depth + 1) end
    end
  end
  if c:rarely(20) then result[c:one_of(strings)] = junk(c, pool) end
  return result
end

--- The fields of '{ a: T, b?: U }'.
local function inline_fields(text)
  local fields = {}
  for name, optional, kind in text:sub(2, -2):gmatch '([%w_]+)(%??): ([^,}]+)' do
    fields[#fields + 1] = { name = name, optional = optional == '?', type = kind }
  end
  return fields
end

--- A function that returns something, raises an error, or calls what it was given.
local function callback(c, pool, text, depth)
  local returned = text:match '%): (.+)$'
  local behaviour = c:pick(6)
  return function(...)
    pool.calls = (pool.calls or 0) + 1
    if behaviour == 2 then error 'fuzz callback' end
    if behaviour == 3 then return junk(c, pool) end
    if behaviour == 4 and pool.reenter and pool.calls < 8 then pool.reenter() end
    if behaviour == 5 then
      local first = ...
      if type(first) == 'table' and type(first.close) == 'function' then first:close() end
    end
    if returned then return generate(c, pool, returned, depth + 1) end
  end
end

local plain = {
  integer = function(c) return c:one_of(integers) end, number = function(c) return c:one_of(numbers) end,
  string = function(c) return c:one_of(strings) end, boolean = function(c) return c:pick(2) == 1 end,
  ['nil'] = function() return nil end, any = junk, userdata = junk, table = function() return {} end,
  ['function'] = function(c, pool) return callback(c, pool, 'fun(): any', 0) end,
}

local function of_list(c, pool, element, depth)
  local list = {}
  for i = 1, c:pick(4) - 1 do list[i] = generate(c, pool, element, depth + 1) end
  return list
end

local function of_class(c, pool, name, depth)
  local class = classes[name]
  local object = pool:get(name)
  if object ~= nil then return object end
  if class and #class.methods == 0 then return structure(c, pool, fields_of(name), depth) end
  return junk(c, pool)
end

--- A value for a type as declarations write it.
function generate(c, pool, text, depth)
  if depth > 5 or c:rarely(24) then return junk(c, pool) end
  local options = declarations.alternatives((text:gsub('%?$', '')))
  if text:match '%?$' and c:rarely(4) then return nil end
  if #options > 1 then return generate(c, pool, c:one_of(options), depth) end
  text = options[1]
  local word, element = text:match "^'([^']*)'$", text:match '^%(?(.-)%)?%[%]$'
  if word then return word end
  if plain[text] then return plain[text](c, pool) end
  if text:match '^fun%(' then return callback(c, pool, text, depth) end
  if element then return of_list(c, pool, element, depth) end
  if text:match '^{' then return structure(c, pool, inline_fields(text), depth) end
  local key, value = text:match '^table<(.-), (.+)>$'
  if key then
    local k = generate(c, pool, key, depth + 1)
    return k ~= nil and k == k and { [k] = generate(c, pool, value, depth + 1) } or {}
  end
  if text:match '^%((.*)%)$' then return generate(c, pool, text:match '^%((.*)%)$', depth) end
  if aliases[text] and aliases[text].type then return generate(c, pool, aliases[text].type, depth) end
  return of_class(c, pool, text, depth)
end

values.generate, values.junk, values.named = generate, junk, named

return values
