-- Random programs over everything that lib/trinity declares: an input's bytes choose objects, functions and
-- arguments, right and wrong ones, objects that were closed, callbacks that raise errors, close what they are given or
-- call on. Every call must return or raise an error that a person can act on.

local trinity = require 'trinity'
local frame = require 'frame'
local values = require 'api_values'

-- Functions that a program may not touch: other processes, measurements of seconds, files that are programs.
local left_out = { ['trinity.parallel_map'] = true, ['trinity.ProfileModule.measure'] = true, ['trinity.global'] = true,
  ['trinity.options'] = true }
local modules_out = { ['trinity.DistModule'] = true, ['trinity.Job'] = true,
  ['trinity.Run'] = true }

local modules = { ['trinity'] = trinity }
local nested = { topology = trinity.devices.topology, rankers = trinity.search.rankers, layers = trinity.graph.layers,
  json = trinity.files.json }
for _, name in ipairs(values.declared.order) do
  local word = name:match '^trinity%.(%u%l+)Module$'
  if word and not modules_out[name] then modules[name] = nested[word:lower()] or trinity[word:lower()] end
end
modules['trinity.Run'] = nil

local most_calls = 25

-- All functions: { class =, method =, owner = the module's table or nil }.
local calls = {}
for _, name in ipairs(values.declared.order) do
  if not modules_out[name] then
    for _, method in ipairs(values.declared.classes[name].methods) do
      if not left_out[name .. '.' .. method.name] then
        calls[#calls + 1] = { class = name, method = method, owner = modules[name] }
      end
    end
  end
end

local function arguments(c, pool, method)
  local list, count = {}, #method.parameters
  for i, parameter in ipairs(method.parameters) do
    local own = values.named[parameter.name]
    if parameter.optional and c:rarely(3) then
      list[i] = nil
    elseif own and not c:rarely(12) then
      list[i] = own(c)
    else
      list[i] = values.generate(c, pool, parameter.type, 0)
    end
  end
  if c:rarely(24) then
    count = count + 1
    list[count] = values.junk(c, pool)
  end
  return list, count
end

--- Puts what a call returned among the objects of its declared class.
local function keep(pool, method, results)
  for i, returned in ipairs(method.returns) do
    local class, object = returned.type:match '^[%w_.]+', results[i + 1]
    if values.declared.classes[class] and type(object) ~= 'nil' and type(object) ~= 'number' and #pool.all < 200 then
      pool:put(class, object)
    end
  end
end

local function call(c, pool)
  local chosen = calls[c:pick(#calls)]
  local method, object = chosen.method, chosen.owner
  if not object then object = c:rarely(20) and values.junk(c, pool) or pool:get(chosen.class) end
  if object == nil then return end
  local list, count = arguments(c, pool, method)
  local ok, f = pcall(function() return object[method.name] end)
  if not ok or type(f) ~= 'function' then return end
  local results
  if method.separator == ':' then results = { frame.try(f, object, unpack(list, 1, count)) }
  else results = { frame.try(f, unpack(list, 1, count)) } end
  if results[1] then keep(pool, method, results) end
end

--- Lua operations on an object that have no function's name.
local function poke(c, pool)
  local object = #pool.all > 0 and c:one_of(pool.all) or values.junk(c, pool)
  if type(object) == 'table' and not getmetatable(object) then return end
  local key = c:one_of { 1, 0, -1, 1e9, 0.5, 'no such thing', 'name', 'step_time_s', 2 ^ 53, 0 / 0 }
  local kind = c:pick(4)
  if kind == 1 then frame.try(tostring, object) end
  if kind == 2 then pcall(function() return #object end) end
  if kind == 3 and type(object) ~= 'string' then pcall(function() return object[key] end) end
  if kind == 4 and type(object) == 'cdata' then pcall(function() object[key] = values.junk(c, pool) end) end
end

local function run(text)
  local c = values.chooser(text)
  local pool = values.pool(c)
  function pool.reenter() call(c, pool) end
  for _ = 1, most_calls do
    if c.spent then break end
    if c:rarely(12) then poke(c, pool) else call(c, pool) end
  end
end

--- Programs at random, from short to long.
local function seeds()
  local list, stream = {}, trinity.random(1, 'programs')
  for i = 1, 60 do
    local bytes = {}
    for b = 1, 40 + 4 * i do bytes[b] = string.char(stream:integer(256) - 1) end
    list[i] = table.concat(bytes)
  end
  return list
end

return { seeds = seeds(), run = run, asks_for_memory = true }
