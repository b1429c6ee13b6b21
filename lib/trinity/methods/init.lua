-- The registry of methods, all called in the same way: function(problem, options) -> strategy.

local core = require 'trinity.core'
local fields = require 'trinity.base.fields'
local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local progress = require 'trinity.base.progress'
local run_search = require 'trinity.runs.search'
local strategy = require 'trinity.strategy.strategy'
local util = require 'trinity.base.util'

---@class trinity.MethodsModule
local methods = {}
local registered, builtin = {}, {}

local register_options = options_of.declare('trinity.MethodOptions', {
  help = 'What methods.register takes about a method.',
  { 'help', 'string', '', help = 'a line about it' },
  { 'source', 'string', '', help = 'who published it' },
  { 'needs', 'string', '', help = 'what it asks of a problem' },
  { 'budget', 'boolean', false, help = 'whether it spends evaluations' },
  { 'deterministic', 'boolean', false, help = 'whether the seed changes nothing' },
  { 'options', 'table', help = 'what it takes, of the library\'s own methods (lib/trinity/base/options.lua)' },
})

--- Adds a method, in place of the script's own of that name. It returns a strategy, or a placement or plan to be
--- simulated, or nil and why there is none.
--- Example: `trinity.methods.register('all_on_one', function(p) return p:placement() end)`
---@param name string
---@param method trinity.Method
---@param options? trinity.MethodOptions
---@return trinity.Method
function methods.register(name, method, options)
  check.own_name('methods.register', 'name', name, builtin)
  check.argument('methods.register', 2, 'method', method, 'function')
  registered[name] = register_options:read('methods.register', 3, 'options', options)
  registered[name].run = method
  return methods.get(name)
end

--- Names of all methods, sorted. Example: `#trinity.methods.names()`
---@return string[]
function methods.names() return util.sorted_keys(registered) end

-- Methods of earlier versions by what is said in their place.
local renamed = { gpipe = "use 'contiguous'", max_load = "use 'max_load_dp'", m_sct = "use 'm_etf'" }

local function unknown(name)
  if renamed[name] then return ('%s; %s'):format(util.quoted(name), renamed[name]) end
  return util.unknown(name, methods.names(), "'trinity help methods'")
end

local function find(owner, name)
  check.argument(owner, 1, 'name', name, 'string')
  return registered[name] or check.refuse(owner, 1, 'name', 'no method %s', unknown(name))
end

--- The description of a method. Example: `trinity.methods.info('heft').help`
---@param name string
---@return trinity.MethodInfo
function methods.info(name) return find('methods.info', name) end

--- Converts a method's result to a strategy, or nil and the reason.
local function finish(name, run, problem, seconds, found, reason)
  if strategy.is(found) then return found end
  if found == nil and type(reason) == 'string' then return nil, reason end
  if not array.is_int32(found) and type(found) ~= 'table' then
    util.fail("method '%s': the function at %s returned %s, expected a strategy, a placement or { placement = ... }",
      name, util.function_place(run), util.describe(found))
  end
  return strategy.new('methods.' .. name, problem, found, { method = name, evaluations = 1, seconds = seconds })
end

--- Runs a method that builds a placement, within the seconds of its options, where it is given any.
local function build(entry, problem, options)
  local seconds = options.seconds
  if entry.budget or type(seconds) ~= 'number' or not (seconds < math.huge) or seconds < 0 then
    return entry.run(problem, options)
  end
  core.begin_limit(seconds + math.max(0.7, 0.07 * seconds))
  local ok, found, reason = pcall(entry.run, problem, options)
  local late = core.end_limit()
  if ok then return found, reason end
  if late and not core.stop_requested() and tostring(found):match 'interrupted$' then
    return nil, ('it did not end within %g s'):format(seconds)
  end
  error(found, 0)
end

--- A strategy alone, or nil and why there is none.
local function one_value(found, reason)
  if found ~= nil then return found end
  return nil, reason
end

--- The method called `name`; methods.NAME is the same. Example: `trinity.methods.get 'heft'`
---@param name string
---@return trinity.Method
function methods.get(name)
  local entry = find('methods.get', name)
  return fields.limited('methods.' .. name, function(problem, options)
    check.object('methods.' .. name, 1, 'problem', problem, 'problem')
    if options ~= nil then check.argument('methods.' .. name, 2, 'options', options, 'table') end
    return one_value(run_search.record(name, problem, options or {}, function()
      local start = core.clock_s()
      local found, reason = build(entry, problem, options or {})
      found, reason = finish(name, entry.run, problem, core.clock_s() - start, found, reason)
      if found and not found.metrics.feasible and not (options and options.quiet) then
        progress.note(('%s found no strategy that fits; the least infeasible one: %s'):format(name,
          found:infeasibility().text))
      end
      return found, reason
    end))
  end)
end

setmetatable(methods, { __index = function(_, name)
  if registered[name] then return methods.get(name) end
  util.fail('trinity.methods: no method %s', unknown(name))
end })

require 'trinity.methods.simple'(methods)
require 'trinity.methods.expert'(methods)
require 'trinity.methods.random'(methods)
require 'trinity.methods.trinity'(methods)
require 'trinity.methods.constructive'(methods)
require 'trinity.methods.searchers'(methods)
for _, name in ipairs { 'post', 'colocrl', 'hierarchical', 'placeto', 'doppler', 'tapp', 'pase' } do
  require('trinity.methods.' .. name)(methods)
end
for name in util.sorted_pairs(registered) do builtin[name] = true end

return methods
