-- A page of a paper: what it claims, what its settings give here, what ours give, and what that amounts to. For
-- `trinity reproduce PAPER` (scripts/reproduce.lua). A paper is a module of this folder that returns
--
--   { name = 'tapp', title = , source = , sections = { section, ... } }
--
-- and a section is
--
--   { name = 'claims', title = , about = what is compared and how, in sentences,
--     learns = whether a policy is updated in it, so that fewer updates than the paper's are said in its heading,
--     run = function(rows, settings) ... return notes end }
--
-- whose run() adds a row as soon as it is measured (rows:add) and returns what stands below them, if anything.
-- settings: quick, seeds, seed, updates, models (a set or nil), output (a folder), json, run (of this script, or nil:
-- it keeps results for reports). A row has
--
--   what      the cell of the paper or the question
--   claimed   what the paper says: a text, or a number with `unit`
--   literal   what the paper's own settings give here
--   ours      what the settings that work best here give
--   updates   of a policy, where one learned: a number, or a text for several
--   seeds     how many runs the numbers are medians of
--   verdict   what page.verdict returns, or { text = }
--
-- Verdicts are counted by kind: 'predicted' (nothing was fitted to this row), 'fitted' (a constant was: it never counts
-- as agreement), 'memory' (whether it fits), 'order' (who is ahead of whom).

local check = require 'trinity.base.check'
local statistics = require 'trinity.base.statistics'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local page = {}

local within = 1.25 -- what counts as the same size

local function number_text(value, unit)
  if type(value) ~= 'number' then return value or '-' end
  local shown = math.abs(value) >= 100 and ('%.0f'):format(value) or ('%.3g'):format(value)
  return unit and unit ~= '' and shown .. ' ' .. unit or shown
end

--- The text of runs: their median and, where they differ, the least and the largest.
function page.runs(values, unit)
  if #values == 0 then return '-' end
  local sorted = util.map(values, function(value) return value end)
  table.sort(sorted)
  local middle = number_text(util.median(sorted), unit)
  local least, most = number_text(sorted[1], nil), number_text(sorted[#sorted], nil)
  if least == most then return middle end
  return ('%s [%s - %s]'):format(middle, least, most)
end

--- What a number of ours says of a claimed one. about: claimed, got (numbers), fitted (what was fitted to it, a text),
--- by (by which means it was got, a text).
function page.verdict(about)
  if type(about.claimed) ~= 'number' or type(about.got) ~= 'number' then
    return { text = about.by or 'cannot be compared' }
  end
  local ratio = about.got / about.claimed
  local said = ratio > 0 and ('%.2f of the claim'):format(ratio) or ('%.3g against %.3g'):format(about.got,
    about.claimed)
  if about.fitted then return { kind = 'fitted', text = ('%s; fitted: %s'):format(said, about.fitted) } end
  local agrees = ratio > 0 and math.max(ratio, 1 / ratio) <= within
  return { kind = 'predicted', agrees = agrees, text = about.by and ('%s; %s'):format(said, about.by) or said }
end

--- Whether something fits in memory here as in the paper. fitted: what was fitted to that, a text.
function page.memory(claimed_fits, fits, fitted)
  local said = fits == claimed_fits and (fits and 'fits, as claimed' or 'out of memory, as claimed')
    or fits and 'fits here' or 'out of memory here'
  if fitted then return { kind = 'fitted', text = ('%s; fitted: %s'):format(said, fitted) } end
  return { kind = 'memory', agrees = fits == claimed_fits, text = said }
end

local function order_of(a, b)
  if math.abs(a - b) <= 0.01 * math.max(math.abs(a), math.abs(b)) then return '=' end
  return a < b and '<' or '>'
end

--- Whether two numbers are in the order of the paper's two (within 1 % they are equal).
function page.order(claimed_a, claimed_b, a, b)
  local there, here = order_of(claimed_a, claimed_b), order_of(a, b)
  return { kind = 'order', agrees = there == here, text = ('paper %s, here %s'):format(there, here) }
end

local p_text = 'p %.3g (Wilcoxon, pairs by seed)'

--- Whether ours is less than theirs over paired runs: a text with the medians' ratio and the test.
function page.against(ours, theirs)
  local ratio = util.median(util.map(ours, function(v) return v end))
    / util.median(util.map(theirs, function(v) return v end))
  local differences = util.map(ours, function(value, i) return value - theirs[i] end)
  local test = #ours > 1 and statistics.signed_rank(differences)
  local said = ('%+.1f %%'):format(100 * (ratio - 1))
  return { text = test and ('%s, %s'):format(said, p_text:format(test.p)) or said }
end

local Rows = {}
Rows.__index = Rows

local columns = { { 'what', '' }, { 'claimed', 'claimed' }, { 'literal', 'paper settings' }, { 'ours', 'ours' },
  { 'updates', 'updates' }, { 'seeds', 'seeds' }, { 'verdict', 'verdict' } }

local known = { what = 'string', claimed = 'any', literal = 'any', ours = 'any', updates = 'any', seeds = 'any',
  verdict = 'table', unit = 'string' }

--- Adds a row (see above) and says so on standard error.
function Rows:add(row)
  check.fields('paper row', row, known)
  self[#self + 1] = row
  io.stderr:write(('%s: %s\n'):format(self.section, row.what))
end

local function cells_of(row)
  return util.map(columns, function(column)
    local value = row[column[1]]
    if column[1] == 'verdict' then return value and value.text or '-' end
    if column[1] == 'updates' or column[1] == 'seeds' or column[1] == 'what' then
      return value ~= nil and tostring(value) or '-'
    end
    return number_text(value, row.unit)
  end)
end

local titles = { predicted = 'predicted, within a factor of 1.25', memory = 'in memory or not, as the paper',
  order = 'in the order of the paper' }

--- How many rows of each kind agree, as one sentence; fitted ones are named as what they are.
local function summary_of(rows)
  local parts, fitted = {}, 0
  for _, kind in ipairs { 'predicted', 'order', 'memory' } do
    local agree, all = 0, 0
    for _, row in ipairs(rows) do
      if row.verdict and row.verdict.kind == kind then
        all, agree = all + 1, agree + (row.verdict.agrees and 1 or 0)
      end
    end
    if all > 0 then parts[#parts + 1] = ('%s: %d of %d'):format(titles[kind], agree, all) end
  end
  for _, row in ipairs(rows) do fitted = fitted + (row.verdict and row.verdict.kind == 'fitted' and 1 or 0) end
  if fitted > 0 then parts[#parts + 1] = ('fitted, which is no agreement: %d'):format(fitted) end
  return table.concat(parts, '; ')
end

local writers = { text = text.format_table, markdown = text.markdown }

--- A section as text: its title, what it compares, its rows, how many agree, its notes.
function page.text(section, rows, notes, settings)
  local lines = { ('## %s%s'):format(section.title, settings.reduced and (' (%s)'):format(settings.reduced) or ''), '',
    section.about, '' }
  if #rows > 0 then
    local heads = util.map(columns, function(column) return column[2] end)
    lines[#lines + 1] = writers[settings.format](heads, util.map(rows, cells_of))
    lines[#lines + 1] = ''
  end
  local summary = summary_of(rows)
  if summary ~= '' then lines[#lines + 1] = summary .. '.' end
  if notes and notes ~= '' then lines[#lines + 1] = notes end
  return (table.concat(lines, '\n'):gsub('%s+$', '')) .. '\n'
end

--- Runs a section: its rows, and its notes.
function page.run(section, settings)
  local rows = setmetatable({ section = section.name }, Rows)
  local notes = section.run(rows, settings)
  return rows, notes
end

--- Rows as plain data, for --json and for the run.
function page.data(rows)
  return util.map(rows, function(row)
    return { what = row.what, claimed = row.claimed, paper_settings = row.literal, ours = row.ours,
      updates = row.updates, seeds = row.seeds, unit = row.unit, verdict = row.verdict and row.verdict.text,
      kind = row.verdict and row.verdict.kind, agrees = row.verdict and row.verdict.agrees }
  end)
end

return page
