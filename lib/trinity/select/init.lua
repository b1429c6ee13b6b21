-- Chooses strategies for the nodes of a graph, with costs of nodes and edges and a limit on usage over
-- time (engine/selection/selection.h defines the problem, selection_solver.h describes the solver).

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local json = require 'trinity.base.json'
local options_of = require 'trinity.base.options'
local progress = require 'trinity.base.progress'
local util = require 'trinity.base.util'

local declared = options_of.declare('trinity.SelectOptions', { help = 'Options of the solver of choices.',
  { 'seconds', 'number', 60, least = 0, help = 'time limit in seconds, including reading the file' },
  { 'seed', 'integer', 1, least = 0, help = 'random seed' },
  { 'rounds', 'integer', least = 0, otherwise = 'until the time limit',
    help = 'maximum rounds of search; a search that ends by rounds has the same result on every machine' },
  { 'table_bytes', 'integer', 2 ^ 31, least = 0, help = 'maximum memory for tables of the exact solver' },
  { 'quiet', 'boolean', false, help = 'print no progress line' },
})

-- Returns the fields of an object in a file that problems have. Others are skipped, unless one may be the misspelt
-- name of a missing one.
local function picked(object, names, place)
  if type(object) ~= 'table' then util.fail('%s: expected an object, got %s', place, util.describe(object)) end
  local missing = util.filtered(names, function(name) return object[name] == nil and name ~= 'name' end)
  for key in util.sorted_pairs(object) do
    local meant = object[key] ~= nil and not util.set(names)[key] and core.suggestion(tostring(key), missing) or ''
    if meant ~= '' then util.fail('%s: unknown field %s%s', place, util.quoted(tostring(key)), meant) end
  end
  return util.picked(object, names)
end

-- Returns the problem in a file of the IOPDDL contest (ASPLOS 2025), plain JSON or gzip, which counts from 0.
local function read_file(path)
  local problem = picked(picked(json.read(path), { 'problem' }, path).problem or {}, { 'name', 'usage_limit', 'nodes',
    'edges' }, path .. ': problem')
  for part, names in util.sorted_pairs { nodes = { 'costs', 'intervals', 'usages' }, edges = { 'costs', 'nodes' } } do
    if problem[part] ~= nil then
      problem[part] = picked(problem[part], names, ('%s: problem.%s'):format(path, part))
    end
  end
  local ok, made = pcall(core.selection_problem, problem, 0)
  if ok then return made end
  util.fail('%s: problem: %s', path, (util.plain(made):gsub("^argument 1 %('problem'%): ", ''):gsub('^problem: ', '')))
end

-- Returns the problem of argument 1.
local function load_problem(what, line)
  if type(what) == 'string' then
    line:update { text = 'reading ' .. what }
    return read_file(what)
  end
  if type(what) == 'table' then return core.selection_problem(what) end
  if util.class_of(what) == 'selection problem' then return what end
  check.wrong('select', 1, 'problem', what, 'a file name, a table or a selection problem')
end

-- Raises an error of the engine in the name of this function.
local function renamed(f, ...)
  local ok, result = pcall(f, ...)
  if ok then return result end
  util.fail('select: %s', (util.plain(result):gsub('^select: ', '')))
end

local function text_of(state)
  local cost = state.cost < math.huge and ('cost %.10g'):format(state.cost) or 'no feasible selection yet'
  local bound = state.bound > -math.huge and ('  bound %.10g'):format(state.bound) or ''
  return ('%s  %s%s'):format(state.phase, cost, bound)
end

--- Returns why the selection of a result is infeasible, or nil.
local function infeasibility_of(result)
  if result.feasible then return nil end
  local words, over = {}, result.usage_limit and result.peak_usage - result.usage_limit or 0
  if over > 0 then
    words[1] = ('usages come to %.0f at a time, %.0f more than the limit %.0f'):format(result.peak_usage, over,
      result.usage_limit)
  end
  if not (result.cost < 1e17) then words[#words + 1] = 'a strategy or a pair is forbidden' end
  return table.concat(words, ', and ')
end

--- Chooses a strategy for every node of a graph to minimize the costs of nodes and edges within a limit on usage over
--- time. The problem is a file in the IOPDDL contest's format (.json or .json.gz), a table with the contest's fields
--- (nodes { costs, usages, intervals }, edges { nodes, costs }, usage_limit; strategies are numbered from 1, math.huge
--- forbids), or a problem object of the engine. The result is exact if dynamic programming is possible, otherwise the
--- best found in the time, with a bound. Ctrl-C ends it with the best so far, or ends the script while a file is read.
return function(problem, options)
  options = declared:read('select', 2, 'options', options)
  local line, start = progress.new('select', options.quiet), core.clock_s()
  local object = renamed(load_problem, problem, line)
  local settings = { seconds = math.max(0, options.seconds - (core.clock_s() - start)), seed = options.seed,
    table_bytes = options.table_bytes, rounds = options.rounds }
  local function tell(state) line:update { text = text_of(state) } end
  local result = renamed(core.solve_selection, object, settings, tell)
  line:finish()
  result.seconds = core.clock_s() - start
  for key, value in util.sorted_pairs(object:describe()) do result[key] = value end
  result.infeasibility = infeasibility_of(result)
  return result
end
