-- The environment of untrusted scripts (trinity --safe). The host runs this file before any script and uses the
-- returned table as their globals. engine/lua/host/libraries.h lists what this does not restrict.
--
-- The script gets copies of harmless functions and of the library's tables, from which nothing else is reachable. The
-- kernel confines the whole process (engine/base/confine.h), also against what gets past this.

local globals = getfenv(0)
local home = require('trinity.core').home
require 'trinity.base.serialise' -- saves the functions of debug that it needs: workers send values back

local function keep(library, names)
  local kept = {}
  for name in names:gmatch '%w+' do kept[name] = library[name] end
  for name in pairs(library) do library[name] = kept[name] end -- sorted or not, the result is the same
end

local load_text = loadfile
keep(debug, 'getinfo traceback')
rawset(string, 'dump', nil)
globals.newproxy, globals.dofile, globals.loadfile, globals.module = nil, nil, nil, nil
getmetatable('').__metatable = 'string'

-- Loads only the library's own modules, with the globals of this file.
local function load_module(name)
  local path = ('%s/lib/%s'):format(home, (name:gsub('%.', '/')))
  for _, ending in ipairs { '.lua', '/init.lua' } do
    local chunk = load_text(path .. ending, 't')
    if chunk then return setfenv(chunk, globals) end
  end
  return ("\n\tno module '%s' in trinity"):format(name)
end
package.loaders = { package.loaders[1], load_module }
keep(package, 'loaded loaders preload')

-- Copies plain tables, so that a script only changes its copies. Classes and objects are not copied: functions that a
-- script stores there are only called with values that it can reach anyway.
local copies, set = {}, setmetatable
local function copy(value)
  if type(value) ~= 'table' or rawget(value, '__index') ~= nil then return value end
  local meta = getmetatable(value)
  local fill = type(meta) == 'table' and rawget(meta, '__fill') -- lib/trinity/base/late.lua
  local module = type(meta) == 'table' and rawget(meta, '__module') and not rawget(meta, '__call')
  if meta ~= nil and not fill and not module then return value end
  if copies[value] then return copies[value] end
  local made = {}
  copies[value] = made
  if fill then
    setmetatable(made, { __index = function(self, key)
      rawset(self, key, copy(value[key]))
      return rawget(self, key)
    end, __fill = function(self)
      fill(value)
      for key in next, value do local _ = self[key] end
    end })
  end
  for key, entry in next, value do made[key] = copy(entry) end
  return module and set(made, meta) or made
end

-- Objects of the library's classes show their methods but never the class itself, whose functions the library calls:
-- object.__index is nil.
local function methods_of(class)
  local methods, meta = {}, getmetatable(class)
  for name, value in next, class do
    if type(name) ~= 'string' or name:sub(1, 2) ~= '__' then methods[name] = value end
  end
  local base = type(meta) == 'table' and rawget(meta, '__index')
  if type(base) == 'table' then base = methods_of(base) end
  return base and set(methods, { __index = base }) or methods
end

-- Does the same for a class whose __index is a function.
local finders = set({}, { __mode = 'k' })
local function finder_of(index)
  local function find(object, key)
    if type(key) == 'string' and key:byte(1) == 95 and key:byte(2) == 95 then return nil end
    return index(object, key)
  end
  finders[find] = true
  return find
end

function globals.setmetatable(object, meta)
  local index = meta ~= nil and rawget(meta, '__index')
  if type(index) == 'table' and rawget(index, '__index') ~= nil then
    meta.__index = methods_of(index)
  elseif type(index) == 'function' and rawget(meta, '__name') and not finders[index] then
    meta.__index = finder_of(index)
  end
  return set(object, meta)
end

local env = { _VERSION = _VERSION }
env._G = env
for name in ([[assert error ipairs next pairs pcall print rawequal rawget rawset select tonumber tostring type
    unpack xpcall]]):gmatch '%w+' do
  env[name] = globals[name]
end
for _, name in ipairs { 'bit', 'coroutine', 'math', 'string', 'table' } do env[name] = copy(globals[name]) end
env.os = {}
for _, name in ipairs { 'clock', 'time', 'date', 'difftime', 'exit' } do env.os[name] = os[name] end

-- A script sees only metatables that it set itself; for others it gets the name.
local own = set({}, { __mode = 'k' })

function env.setmetatable(object, meta)
  set(object, meta)
  if meta ~= nil then own[meta] = true end
  return object
end

function env.getmetatable(object)
  local meta = getmetatable(object)
  if type(meta) ~= 'table' or own[meta] then return meta end
  return rawget(meta, '__name') or type(object)
end

function env.load(chunk, name, _, environment)
  return load(chunk, name, 't', environment == nil and env or environment)
end

function env.loadstring(text, name) return load(text, name, 't', env) end

function env.collectgarbage(what)
  what = what or 'collect'
  if what ~= 'collect' and what ~= 'count' and what ~= 'step' then
    error(("collectgarbage: safe scripts have 'collect', 'count' and 'step', got '%s'"):format(tostring(what)), 2)
  end
  return collectgarbage(what)
end

-- Limits apply to each worker process (engine/lua/host/process_limits.h), so the number of workers is limited, too.
local core = require 'trinity.core'
local run_workers = core.run_workers
function core.run_workers(items, workers, ...)
  return run_workers(items, type(workers) == 'number' and math.min(workers, core.threads()) or workers, ...)
end

-- Modules that safe scripts may use. All others are excluded: modules that access memory (all with the FFI), that read
-- data of workers or files, or that write runs.
local public = {}
for name in ([[base.json base.progress base.text base.util cluster.devices cluster.nodes cluster.topology
    command.cli command.serve
    command.options command.prompt command.reference dist dist.daso execute execute.profile
    graph graph.decoder.network graph.layers graph.model learn methods
    methods.compare nn nn.tensor pipeline report runs search search.warm_start select strategy.problem
    strategy.rewards strategy.simulator strategy.splits strategy.strategy strategy.timeline]]):gmatch '%S+' do
  public['trinity.' .. name] = true
end
local families = { 'graph%.layers', 'nn' }

local function is_public(name)
  if name == 'trinity' or public[name] then return true end
  for _, family in ipairs(families) do
    if name:find('^trinity%.' .. family .. '%.[%w_]+$') then return true end
  end
  return false
end

function env.require(name)
  if type(name) ~= 'string' then error('require: expected the name of a module', 2) end
  if not is_public(name) then
    error(("module '%s': safe scripts have trinity and its public modules only"):format(name), 2)
  end
  return copy(require(name))
end

require('trinity.base.util').sorted_keys(require 'trinity') -- loads all of it
return env
