-- trinity.parallel_map: maps a function over a list in worker processes, which are copies of the running script.

local core = require 'trinity.core'
local check = require 'trinity.base.check'
local compare = require 'trinity.methods.compare'
local progress = require 'trinity.base.progress'
local run_state = require 'trinity.runs.state'
local strategy = require 'trinity.strategy.strategy'
local options_of = require 'trinity.base.options'
local serialise = require 'trinity.base.serialise'
local util = require 'trinity.base.util'

local name = 'trinity.parallel_map'
local declared = options_of.declare('trinity.ParallelOptions', { help = 'Options of trinity.parallel_map.',
  { 'workers', 'integer', least = 1, most = 1024, otherwise = 'trinity.system.threads()',
    help = 'number of processes; 1 runs the items in this process' },
  { 'seed', 'integer', 1, least = 0, help = 'random seed, from which the seeds of items are derived' },
  { 'quiet', 'boolean', false, help = 'print no progress line' },
  { 'on_error', options_of.words('trinity.OnError', { 'raise', 'collect' }), 'raise',
    help = 'raise the error of the first failed item, or collect all errors' },
})

local Map = {}
Map.__index = Map

--- Returns the seed of item i: an integer below 2^53, determined by the map's seed and i.
function Map:seed_of(i) return core.random(self.seed, 'parallel_map', i):integer(2 ^ 53) - 1 end

local function error_text(problem)
  if type(problem) == 'string' then return problem end
  local ok, text = pcall(tostring, problem)
  return ok and text or type(problem)
end

--- Runs item i and returns its result as text, or raises a text. Searches within show no progress.
function Map:work(i)
  local item = i
  if self.items then item = self.items[i] end
  local silent, leave = progress.silent, run_state.begin_item(self.run_map, i)
  progress.silent = true
  local ok, value = pcall(self.body, item, i, self:seed_of(i))
  progress.silent = silent
  leave()
  if not ok then error(error_text(value), 0) end
  local text, problem = serialise.encode(value, self.known)
  if not text then util.fail('%s: result of item %d:%s', name, i, problem) end
  return text
end

--- Records the failure of item i. With on_error = 'raise', later items are not needed any more.
function Map:fail(i, message)
  self.errors[i] = message
  if self.on_error == 'raise' then self.wanted = math.min(self.wanted, i) end
end

--- Prints the output of items in their order, as far as it is available.
function Map:print_outputs()
  while self.printed < self.wanted and self.outputs[self.printed + 1] do
    self.printed = self.printed + 1
    run_state.take_item(self.run_map, self.printed)
    if self.in_workers then core.print_output(self.printed, function() self.progress:finish() end) end
  end
end

--- Handles the end of item i, as reported by core.run_workers. Returns the number of needed items.
function Map:receive(i, text, failure, death)
  if text then
    self.results[i] = serialise.decode(text, self.known)
  elseif failure then
    self:fail(i, failure)
  else
    local how = death:find '^signal' and 'by' or 'with'
    self:fail(i, ('%s%s: worker for item %d ended %s %s'):format(self.position, name, i, how, death))
  end
  self.outputs[i] = true
  self:print_outputs()
  self.done = self.done + 1
  self.progress:update { items = self.count, done = self.done, share = self.done / self.count }
  -- The failed item has ended; only earlier items remain.
  return self.wanted < self.count and self.wanted - 1 or self.count
end

--- Runs the items in this process. Ctrl-C ends the map even if a search handled it.
function Map:run_here()
  local interrupted = core.was_interrupted()
  for i = 1, self.count do
    local ok, text = pcall(self.work, self, i)
    if core.stop_requested() or core.was_interrupted() ~= interrupted then util.fail 'interrupted' end
    self:receive(i, ok and text or nil, not ok and error_text(text) or nil)
    if i >= self.wanted then return end
  end
end

local function new(items, body, options)
  local count
  if type(items) == 'number' then
    count = check.integer(name, 1, 'items', items, 0, 2 ^ 31 - 1)
  elseif type(items) == 'table' then
    count = #items
  else
    check.wrong(name, 1, 'items', items, 'a list or a number of items')
  end
  check.argument(name, 2, 'body', body, 'function')
  options = declared:read(name, 3, 'options', options)
  return setmetatable({ items = type(items) == 'table' and items or nil, count = count, body = body,
    workers = options.workers or math.min(1024, core.threads()), seed = options.seed,
    on_error = options.on_error, results = {}, errors = {}, outputs = {}, printed = 0, done = 0,
    wanted = count, position = core.position(), progress = progress.new('parallel_map', options.quiet) }, Map)
end

--- Runs body(item, i, seed) for every item of a list, or body(i, i, seed) for i from 1 to a number, in worker
--- processes, which are copies of the running script. Returns the first result of each body in the order of the items,
--- and their count (#results is undefined if a body returns nil). A body may use all variables of the script, but its
--- changes stay in the worker process, where later items may or may not see them. Results should depend on item, i and
--- seed alone; they are then equal for any number of workers. lib/trinity/base/serialise.lua lists the values that can
--- be returned. Output of bodies appears in the order of the items. Raises the error of the first failed item, unless
--- on_error = 'collect'. Example: `trinity.parallel_map({ 1, 2 }, function(x) return 2 * x end)`
---@param items any[]|integer
---@param body fun(item: any, i: integer, seed: integer): any
---@param options? trinity.ParallelOptions
---@return any[] results
---@return table<integer, string>? errors messages by item, with on_error = 'collect'
---@return integer count of items
return function(items, body, options)
  local self = new(items, body, options)
  self.run_map = run_state.begin_map()
  self.known = serialise.reachable(body, items, getfenv(body), compare, strategy)
  if self.workers == 1 or core.in_worker() then
    self:run_here()
  else
    self.in_workers = true
    core.run_workers(self.count, self.workers, function(i) return self:work(i) end,
      function(...) return self:receive(...) end)
  end
  self.progress:finish()
  if self.on_error == 'collect' then return self.results, self.errors, self.count end
  local failure, item = self.errors[self.wanted], 'item ' .. self.wanted
  if failure and not failure:find(item, 1, true) then failure = ('%s (%s of %s)'):format(failure, item, name) end
  if failure then error(failure, 0) end
  return self.results, nil, self.count
end
