-- trinity.parallel_map: the items of a list over worker processes, each a copy of the running script.

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
local declared = options_of.declare('trinity.ParallelOptions', { help = 'What trinity.parallel_map takes.',
  { 'workers', 'integer', least = 1, most = 1024, otherwise = 'trinity.threads()',
    help = 'processes; 1 runs the items in this one' },
  { 'seed', 'integer', 1, least = 0, help = 'the seeds of items follow from it' },
  { 'quiet', 'boolean', false, help = 'no progress line' },
  { 'on_error', options_of.words('trinity.OnError', { 'raise', 'collect' }), 'raise',
    help = 'raise the error of the first item that fails, or collect all' },
})

local Map = {}
Map.__index = Map

--- The seed of item i: an integer below 2^53 that the map's seed and i determine.
function Map:seed_of(i) return core.random(self.seed, 'parallel_map', i):integer(2 ^ 53) - 1 end

local function error_text(problem)
  if type(problem) == 'string' then return problem end
  local ok, text = pcall(tostring, problem)
  return ok and text or type(problem)
end

--- Runs item i: its result as text. Raises a text. Searches inside show no progress.
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

--- Notes the failure of item i. With on_error = 'raise' nothing after it is wanted any more.
function Map:fail(i, message)
  self.errors[i] = message
  if self.on_error == 'raise' then self.wanted = math.min(self.wanted, i) end
end

--- Prints what items printed, in their order, as far as it is known.
function Map:print_outputs()
  while self.printed < self.wanted and self.outputs[self.printed + 1] do
    self.printed = self.printed + 1
    run_state.take_item(self.run_map, self.printed)
    if self.in_workers then core.print_output(self.printed, function() self.progress:finish() end) end
  end
end

--- Takes the end of item i, as core.run_workers reports it. Returns how many items are wanted.
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
  -- The one that failed has ended: what remains are those before it.
  return self.wanted < self.count and self.wanted - 1 or self.count
end

--- Runs the items in this process. Ctrl-C ends the map even where a search took it for itself.
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
--- processes, which are copies of the whole running script, and returns the results (the first value that each body
--- returned) in the order of the items, with their count: where a body returns nil is a hole, and #results undefined.
--- The body may use everything that is there, and what it changes stays in its copy, where a later item may or may not
--- reach it. Results should depend on item, i and seed alone; they are then the same for any number of workers. Values
--- that may be returned: lib/trinity/base/serialise.lua. What bodies print appears in the order of the items.
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
