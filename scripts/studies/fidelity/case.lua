-- A run that others measured, as a script says it: a case is { model = name, model_options = {...}, cluster = a name or
-- a description, runtime = name or { base =, ... }, constants = a table or nil, strategy = {...}, recomputes = words
-- that are tried in turn until the plan fits }. Its prediction is problem:evaluate of that and nothing else.

local model = require 'trinity.graph.model'
local problems = require 'trinity.strategy.problem'
local runtimes = require 'trinity.cluster.runtimes'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local case = {}

local headroom = 0.9 -- of a GPU's memory: the allocator needs the rest

--- The runtime of a case and those that it is based on, the last first.
function case.runtimes(one)
  local list, name = {}, type(one.runtime) == 'table' and one.runtime.base or one.runtime
  while name do
    table.insert(list, 1, name)
    name = runtimes.list[name].base
  end
  return list
end

--- The case with values of a fit: constants by kind of GPU and runtimes' fields by name.
local function with_values(one, values)
  if not values then return one end
  local list, runtime = case.runtimes(one), {}
  for _, name in ipairs(list) do runtime = util.merged(runtime, runtimes.list[name], values.runtimes[name]) end
  runtime.source = nil
  return util.merged(one, { constants = one.constants or values.constants,
    runtime = util.merged(runtime, { base = list[#list] }, type(one.runtime) == 'table' and one.runtime or nil) })
end

--- The problem of a case; close it and its graph after use.
function case.problem(one)
  return problems.simulator { graph = model.load(one.model, one.model_options),
    cluster = model.cluster(one.cluster, { constants = one.constants, runtime = one.runtime }) }
end

--- Seconds of a step, bytes of the fullest GPU, and the recomputation that fits. values: of a fit, in place of the
--- calibrated ones.
function case.evaluate(one, values)
  local problem = case.problem(with_values(one, values))
  local most, found = headroom * problem.cluster.devices[1].capacity_bytes, nil
  for _, recompute in ipairs(one.recomputes or { one.strategy.recompute or 'none' }) do
    local metrics = problem:evaluate(util.merged(one.strategy, { recompute = recompute }))
    found = { step_time_s = metrics.step_time_s, memory_bytes = metrics.peak_memory_bytes, recompute = recompute,
      basis = problem.cluster.basis }
    if metrics.peak_memory_bytes <= most then break end
  end
  problem:close()
  problem.graph:close()
  return found
end

local width = 118

local function string_text(value) return value:find "[\n\\']" and ('%q'):format(value) or ("'%s'"):format(value) end

--- Returns the Lua source of a value: numbers (with the fewest exact digits), strings, booleans, tables of these. Lines
--- after the first begin with `indent` (0) blanks; tables that do not fit one line have several entries per line.
function case.lua_text(value, indent)
  if type(value) == 'number' then return text.digits(value) end
  if type(value) == 'string' then return string_text(value) end
  if type(value) ~= 'table' then return tostring(value) end
  indent = indent or 0
  local entries = util.map(value, function(entry) return case.lua_text(entry, indent + 2) end)
  for key, entry in util.sorted_pairs(value) do
    if type(key) == 'string' then
      local name = key:match '^[%a_][%w_]*$' or ('[%s]'):format(string_text(key))
      entries[#entries + 1] = ('%s = %s'):format(name, case.lua_text(entry, indent + 2))
    end
  end
  local whole = #entries > 0 and ('{ %s }'):format(table.concat(entries, ', ')) or '{}'
  if #whole + indent <= width - 30 and not whole:find '\n' then return whole end
  local blanks, lines, alone = '\n' .. (' '):rep(indent), { '{' }, true -- alone: the last line takes no more entries
  for _, entry in ipairs(entries) do
    local several = entry:find '\n' ~= nil
    if alone or several or indent + #lines[#lines] + #entry + 4 > width then lines[#lines + 1] = '' end
    lines[#lines] = ('%s %s,'):format(lines[#lines], entry)
    alone = several
  end
  return ('%s%s}'):format(table.concat(lines, blanks .. ' '), blanks)
end

local form = [[
-- %s
local trinity = require 'trinity'

local graph = trinity.model('%s', %s)
local cluster = trinity.cluster(%s, %s)
local problem = trinity.problem { check_memory = false, graph = graph, cluster = cluster }
local metrics = problem:evaluate %s
print(('step_time_s %%.17g'):format(metrics.step_time_s))
print(('peak_memory_bytes %%.0f'):format(metrics.peak_memory_bytes))
]]

--- The case as a Lua script that prints what is predicted with all digits. found: of case.evaluate.
function case.script(one, found, comment)
  local strategy = util.merged(one.strategy, { recompute = found.recompute })
  local options = util.picked(one, { 'runtime', 'constants' })
  return form:format(comment, one.model, case.lua_text(one.model_options), case.lua_text(one.cluster),
    case.lua_text(options), case.lua_text(strategy))
end

--- Layers of every stage; nil where they divide. Embedding and head count as a layer each.
function case.stages(layers, stages)
  if layers % stages == 0 then return nil end
  local each, over = math.floor((layers + 2) / stages), (layers + 2) % stages
  return util.listed(stages, function(s)
    local turn = s == 1 and stages - 1 or s == stages and s or s - 1 -- those between have one more first
    return each - (s == 1 and 1 or 0) - (s == stages and 1 or 0) + (turn <= over and 1 or 0)
  end)
end

return case
