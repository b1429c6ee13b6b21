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
-- Its name is SCRIPT-MODEL-CLUSTER-COUNT, or the name in --run. With --safe the folder is made before the script is
-- read, is called SCRIPT-COUNT, and is removed if the script does not use it. An existing folder is only written to
-- with --resume. Files are replaced atomically (hidden .NAME.part files are left by killed writers, and --resume
-- removes them). run.json, script.lua and .seal exist from the beginning. metrics.* grow by whole lines; a crash may
-- truncate the last one. The format, "trinity run 1" (paths are relative to the run's folder; times in seconds, ISO
-- 8601 in UTC; a field that does not apply is missing):
--
--   run.json       { kind = 'trinity run 1', name, status = 'running' | 'done' | 'interrupted' | 'failed', error,
--                    script, command = [words], folder (where it was started), options = { resolved }, seed,
--                    started_at, ended_at, seconds, resumed_at = [times], pid, process_start, system (whose process it
--                    is), ranks,
--                    versions { trinity, libtorch, luajit }, blas, machine { 'processor', cores, memory_bytes },
--                    model, cluster (of the first problem), now = { label, search, method, seed, step, evaluations,
--                    share, seconds, best_step_time_s, best_reward, fits, lower_bound_s, evaluations_per_s, left_s,
--                    done, items } (the progress line, every two seconds) }
--   .lock          held and touched by the process at work (engine/base/hold.h): other containers and machines see it
--   .seal          a symbolic link whose target is JSON: { options = [words of the program's own], script,
--                  arguments = [words], folder, safe (whether with --safe) }, which `trinity runs resume` starts
--                  again. A safe script can change all other files, but makes no links (engine/base/confine.h)
--   script.lua     the script's text
--   metrics.jsonl, events.out.tfevents.*
--                  a row now and then of every search, the same in both; see lib/trinity/runs/metrics.lua. Fields:
--                  search (its id, a text), problem (its id), method, seed, model, cluster, step, evaluations, seconds
--                  (since the search began), mean_reward, best_reward, best_step_time_s, best_peak_memory_bytes,
--                  best_peak_communication_bytes, fits (0 or 1), lower_bound_s, and what learners say of themselves:
--                  loss, entropy (of methods.trinity: entropy_groups, entropy_devices). TensorBoard: step is
--                  evaluations, the tag 'MODEL/CLUSTER/METHOD/seedSEED/FIELD'.
--   problems/P/problem.json
--                  { kind = 'trinity problem 1', id = P, model, cluster, operators, units, devices, graph =
--                    'graphs/...json', cluster_file = 'clusters/...json', reward = 'problems/P/reward.lua', rules,
--                    schedule, micro_batches (defaults of its plans), own_cost (true: a cost function of the script,
--                    which no file holds), bounds { step_time_s, critical_path_s, work_s, interval_s,
--                    peak_memory_bytes }, device_names = [texts], capacity_bytes = [numbers] }
--   problems/P/reward.lua
--                  the source of the reward, with the values that it refers to as comments
--   graphs/NAME-FINGERPRINT.json, clusters/NAME-FINGERPRINT.json
--                  what trinity.model and trinity.cluster read back; each once, whoever searches on it
--   searches/S/search.json
--                  { kind = 'trinity search 1', id = S, problem = P, method, seed, options = { texts }, status =
--                    'running' | 'done' | 'stopped' | 'failed', error, started_at, seconds, evaluations, steps,
--                    points (of its curve), best_step_time_s, best_reward, fits, lower_bound_s, resumed_from
--                    (evaluations), taken_s (as the strategy says), started_s (of the clock), nothing (why there is
--                    no strategy), began_anew (why a resumed run did not go on), outside (true: of a script's own
--                    search.run) }
--   searches/S/strategy.json    the best so far, as problem:load reads it
--   searches/S/curve.csv        its steps (which ones: lib/trinity/search/curve.lua): evaluations, mean_reward,
--                               best_reward, best_step_time_s; written at its end
--   searches/S/timeline.json    Chrome trace of its strategy, where it is the best of its problem: at the script's end
--                               (of an item of parallel_map: at the item's)
--   searches/S/checkpoint.json, checkpoint.json.policy0, .policy1, .scores
--                               state to resume the search from, until it is done (lib/trinity/runs/checkpoints.lua)
--   results/LABEL.json
--                  { kind, label, summary (a sentence), data } by trinity.run:result. Kinds: comparison, search, pase,
--                  pipeline, daso, measured, selection, training, table, or another word. LABEL is the kind, then
--                  kind-2, ... unless given.
--                  comparison: data is comparison:totable() with problem = P and rows[i].runs[k].search = S;
--                  search: the fields of scripts/simulate.lua without placement, method, seed, problem = P, search = S;
--                  table: { head = [texts], rows = [[values]] }
--
-- Ids of searches and problems are '1', '2', ... in the order of the script; for item I in the M-th map of
-- trinity.parallel_map they are 'mMiI-1', ..., equal for any number of workers. Of the ranks of a job, rank 0 writes.

local check = require 'trinity.base.check'
local run_state = require 'trinity.runs.state'
local util = require 'trinity.base.util'

--- The folder of the running script. It is made automatically; without a run folder, the methods do nothing.
---@class trinity.Run
---@since 0.1.0
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
