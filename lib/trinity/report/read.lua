-- Reads run folders as tables. lib/trinity/runs/DESIGN.md describes the format; missing parts of a folder are missing
-- here, too.

local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local json = require 'trinity.base.json'
local run_list = require 'trinity.runs.list'
local util = require 'trinity.base.util'

local read = {}

--- { path, about (run.json), problems, problem_ids, searches, search_ids, results, notes (unreadable files) }.
function read.run(path)
  local about = json.read(path .. '/run.json')
  if type(about) ~= 'table' or about.kind ~= 'trinity run 1' then
    util.fail("%s/run.json: expected a 'trinity run 1', got %s", path,
      util.describe(type(about) == 'table' and about.kind or about))
  end
  local run = { path = path, about = about, notes = {} }
  run.results = run_list.results(run, run.notes)
  run.problems, run.problem_ids = run_list.parts(run, 'problems', 'problem.json', run.notes)
  run.searches, run.search_ids = run_list.parts(run, 'searches', 'search.json', run.notes)
  return run
end

function read.text(run, path)
  local full = ('%s/%s'):format(run.path, path)
  if util.exists(full) then return core.read_file(full) end
end

--- Returns a file of a run as a table, or nil; errors are added to the notes.
function read.json(run, path)
  local text = read.text(run, path)
  if not text then return nil end
  local ok, value = pcall(json.decode, text, path)
  if ok and type(value) == 'table' then return value end
  run.notes[#run.notes + 1] = util.shortened(tostring(value))
end

--- Returns the rows of a CSV file of numbers, as tables by column; none if it cannot be read.
function read.csv(run, path)
  local ok, rows = pcall(csv.read, ('%s/%s'):format(run.path, path))
  return ok and util.map(rows, function(row)
    local numbers = {}
    for name, cell in util.sorted_pairs(row) do numbers[name] = tonumber(cell) end
    return numbers
  end) or {}
end

return read
