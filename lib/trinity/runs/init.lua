-- trinity.run: the folder of the running script, runs/NAME, with everything that it searched and found. It is made at
-- the first search, comparison or result of a script that was started as a program. There is none at the prompt, with
-- -e, in other host programs, and with `--run none` (or `--runs none`, TRINITY_RUNS=none); all methods then do nothing,
-- and trinity.run.path is nil.
--
--   trinity.run.path, trinity.run.name     of the folder, once it is made
--   trinity.run:result(kind, data, summary, label)
--                                          writes results/LABEL.json { kind, label, summary, data }
--   trinity.run:log { step =, loss = ... } adds a row to metrics.jsonl and TensorBoard
--
-- lib/trinity/runs/DESIGN.md has the format of the folder.

local check = require 'trinity.base.check'
local run_state = require 'trinity.runs.state'
local util = require 'trinity.base.util'

--- The folder of the running script. It is made automatically; without a run folder, the methods do nothing.
---@class trinity.Run
---@field path? string the folder, once it is made
---@field name? string
local Run = { __name = 'run' }

function Run.__index(_, key)
  if key ~= 'path' and key ~= 'name' then return Run[key] end
  local open = run_state.run
  return open and open[key] or nil
end

function Run.__tostring(self) return self.path and 'run ' .. self.path or 'no run' end

local function check_word(owner, index, name, word)
  check.argument(owner, index, name, word, 'string')
  if not word:match '^[%w_][%w_.-]*$' or #word > 64 then
    check.wrong(owner, index, name, word, 'up to 64 letters, digits and . _ -')
  end
  if word == 'run' then check.wrong(owner, index, name, word, "a name other than 'run', which run.json has") end
end

--- Saves a result as results/LABEL.json. LABEL is the kind by default; if it exists, a number is appended. Raises an
--- error for data that is not plain. Example: `trinity.run:result('table', { head = { 'a' }, rows = { { 1 } } })`
---@param kind string 'comparison', 'search', 'pase', 'pipeline', 'daso', 'measured', 'table', or another word
---@param data table<string|integer, any> plain values
---@param summary? string a sentence about it
---@param label? string
---@return string? path path in the run folder; nil without one
function Run:result(kind, data, summary, label)
  check_word('run:result', 1, 'kind', kind)
  check.argument('run:result', 2, 'data', data, 'table')
  if summary ~= nil then check.argument('run:result', 3, 'summary', summary, 'string') end
  if label ~= nil then check_word('run:result', 4, 'label', label) end
  local ok, path = pcall(run_state.keep_result, kind, data, label, summary)
  if ok then return path end
  local message, own = util.unplaced(tostring(path)):gsub('^trinity%.to_json: to_json: ', '')
  if own == 0 then error(path, 0) end
  check.refuse('run:result', 2, 'data', '%s', message)
end

--- Adds a row to metrics.jsonl and TensorBoard. Raises an error for values other than numbers, strings and booleans.
--- Example: `trinity.run:log { step = 1, loss = 0.5 }`
---@param fields table<string, number|string|boolean> `step` is the step in TensorBoard
function Run:log(fields)
  check.argument('run:log', 1, 'fields', fields, 'table')
  for name, value in util.sorted_pairs(fields) do
    if type(name) ~= 'string' or type(value) ~= 'number' and type(value) ~= 'string' and type(value) ~= 'boolean' then
      check.refuse('run:log', 1, 'fields', 'field %s: expected a number, a string or a boolean, got %s',
        util.quoted(tostring(name)), util.describe(value))
    end
  end
  run_state.log(fields)
end

check.methods(Run, 'trinity.Run')

return setmetatable({}, Run)
