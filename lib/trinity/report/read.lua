-- Reads run folders as tables. lib/trinity/runs/DESIGN.md describes the format; missing parts of a folder are missing
-- here, too.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local run_list = require 'trinity.runs.list'
local util = require 'trinity.base.util'

local read = {}

--- Returns a part of a folder by id: { [id] = content of the file }, and ids in order. Unreadable files are reported in
--- `notes`.
local function read_parts(folder, part, file, notes)
  local parts, ids = {}, {}
  for _, id in ipairs(core.list_folder(('%s/%s'):format(folder, part))) do
    local path = ('%s/%s/%s/%s'):format(folder, part, id, file)
    if util.exists(path) then
      local ok, value = pcall(json.read, path)
      if ok and type(value) == 'table' then
        parts[id], ids[#ids + 1] = value, id
      else
        notes[#notes + 1] = util.shortened(('%s/%s: %s'):format(part, id, tostring(value)))
      end
    end
  end
  table.sort(ids, run_list.before)
  return parts, ids
end

local function read_results(folder, notes)
  local list = {}
  local names = core.list_folder(folder .. '/results')
  table.sort(names, run_list.before)
  for _, name in ipairs(names) do
    local label = name:match '^(.*)%.json$'
    if label then
      local ok, value = pcall(json.read, ('%s/results/%s'):format(folder, name))
      if ok and type(value) == 'table' and type(value.data) == 'table' then
        list[#list + 1] = { kind = tostring(value.kind), label = label, data = value.data,
          summary = type(value.summary) == 'string' and value.summary or nil }
      else
        notes[#notes + 1] = util.shortened(('results/%s: %s'):format(name, ok and 'has no data' or tostring(value)))
      end
    end
  end
  return list
end

--- { folder, about (run.json), problems, problem_ids, searches, search_ids, results, notes (unreadable files) }.
function read.run(folder)
  local notes = {}
  local about = json.read(folder .. '/run.json')
  if type(about) ~= 'table' or about.kind ~= 'trinity run 1' then
    util.fail("%s/run.json: expected a 'trinity run 1', got %s", folder,
      util.describe(type(about) == 'table' and about.kind or about))
  end
  local run = { folder = folder, about = about, notes = notes, results = read_results(folder, notes) }
  run.problems, run.problem_ids = read_parts(folder, 'problems', 'problem.json', notes)
  run.searches, run.search_ids = read_parts(folder, 'searches', 'search.json', notes)
  return run
end

function read.text(run, path)
  local full = ('%s/%s'):format(run.folder, path)
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

--- Returns rows of numbers below a head line, as a list by row of { name = number }.
function read.csv(run, path)
  local rows, head = {}, nil
  for line in (read.text(run, path) or ''):gmatch '[^\r\n]+' do
    local cells = {}
    for cell in (line .. ','):gmatch '([^,]*),' do cells[#cells + 1] = cell end
    if head then
      local row = {}
      for c, name in ipairs(head) do row[name] = tonumber(cells[c]) end
      rows[#rows + 1] = row
    else
      head = cells
    end
  end
  return rows
end

return read
