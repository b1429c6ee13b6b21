-- A page of a paper: what it claims, what its settings give here, what ours give, and what that amounts to. For
-- `trinity study papers PAPER` (study.lua). A paper is a function of pages.lua that returns
--
--   { name = 'tapp', title = , source = , sections = { section, ... },
--     models = what --models may name (default: anything),
--     seeds = how many runs by default, quick = { updates =, seeds = } with --quick (defaults: study.lua) }
--
-- and a section is
--
--   { name = 'claims', title = , about = what is compared and how, in sentences,
--     learns = whether a policy is updated in it, so that fewer updates than the paper's are said in its heading,
--     quick = what --quick leaves of it, for its heading; nil: all,
--     heads = titles of columns of its own, { literal = , ours = }, where they mean something more special,
--     run = function(rows, settings) ... return notes end }
--
-- whose run() adds a row as soon as it is measured (rows:add) and returns what stands below them, if anything.
-- settings: quick, seeds, seed, updates, models (a set or nil), output (a folder), json, keep(kind, data, sentence)
-- (adds a result to the run; nil in tests), quiet, end_s (the clock after which nothing is measured; nil: never). A row
-- has
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
-- as agreement), 'unstated' (the paper does not say of what its number is: no agreement either), 'equal' (the same
-- thing or another), 'memory' (whether it fits), 'order' (who is ahead of whom).

require 'trinity' -- sets what problems and searches share
local check = require 'trinity.base.check'
local core = require 'trinity.core'
local statistics = require 'trinity.base.statistics'
local text = require 'trinity.base.text'
local progress = require 'trinity.base.progress'
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

--- The verdict of one of our numbers on a claimed one. about: claimed, got (numbers), fitted (a text),
--- unstated (whether the paper does not say what its number measures), by (how ours was obtained, a text).
function page.verdict(about)
  if type(about.claimed) ~= 'number' or type(about.got) ~= 'number' then
    return { text = about.by or 'cannot be compared' }
  end
  local ratio = about.got / about.claimed
  local said = ratio > 0 and ('%.2f of the claim'):format(ratio) or ('%.3g against %.3g'):format(about.got,
    about.claimed)
  if about.fitted then return { kind = 'fitted', text = ('%s; fitted: %s'):format(said, about.fitted) } end
  local whole = about.by and ('%s; %s'):format(said, about.by) or said
  if about.unstated then return { kind = 'unstated', text = whole } end
  local agrees = ratio > 0 and math.max(ratio, 1 / ratio) <= within
  return { kind = 'predicted', agrees = agrees, text = whole }
end

--- Whether something is the same as in the paper; `otherwise` says in what it differs.
function page.equal(same, otherwise)
  return { kind = 'equal', agrees = same, text = same and 'equal' or otherwise or 'differs' }
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

local left = { [#columns] = true } -- in addition to the first: texts

local known = { what = 'string', claimed = 'any', literal = 'any', ours = 'any', updates = 'any', seeds = 'any',
  verdict = 'table', unit = 'string' }

--- Adds a row (see above) and says so on standard error, but where the settings are `quiet`. Ends the section where its
--- time is up: what was measured for the row may have been cut short.
function Rows:add(row)
  check.fields('paper row', row, known)
  if core.clock_s() >= self.end_s then util.fail 'interrupted' end
  self[#self + 1] = row
  if not self.quiet then progress.note(('%s: %s'):format(self.section, row.what)) end
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
  order = 'in the order of the paper', equal = "the same as the paper's" }

local no_agreement = { { 'fitted', 'fitted, which is no agreement' },
  { 'unstated', 'of cases that the paper does not name, which is no agreement' } }

--- How many rows of each kind agree, as one sentence; those that cannot are named as what they are.
local function summary_of(rows)
  local parts = {}
  for _, kind in ipairs { 'predicted', 'equal', 'order', 'memory' } do
    local agree, all = 0, 0
    for _, row in ipairs(rows) do
      if row.verdict and row.verdict.kind == kind then
        all, agree = all + 1, agree + (row.verdict.agrees and 1 or 0)
      end
    end
    if all > 0 then parts[#parts + 1] = ('%s: %d of %d'):format(titles[kind], agree, all) end
  end
  for _, about in ipairs(no_agreement) do
    local count = util.sum(rows, function(row) return (row.verdict and row.verdict.kind == about[1] and 1 or 0) end)
    if count > 0 then parts[#parts + 1] = ('%s: %d'):format(about[2], count) end
  end
  return table.concat(parts, '; ')
end

local writers = { text = text.aligned, markdown = text.markdown }

local width = 120 -- of sentences

--- Sentences in lines of at most `width`; line ends in them count as spaces.
function page.wrapped(sentences)
  local lines, line = {}, ''
  for word in sentences:gmatch '%S+' do
    if line ~= '' and #line + 1 + #word > width then
      lines[#lines + 1], line = line, ''
    end
    line = line == '' and word or line .. ' ' .. word
  end
  lines[#lines + 1] = line
  return table.concat(lines, '\n')
end

--- A section as text: its title, what it compares, its rows, how many agree, its notes.
function page.text(section, rows, notes, settings)
  local lines = { ('## %s%s'):format(section.title, settings.reduced and (' (%s)'):format(settings.reduced) or ''), '',
    page.wrapped(section.about), '' }
  if #rows > 0 then
    local own = section.heads or {}
    local heads = util.map(columns, function(column) return own[column[1]] or column[2] end)
    lines[#lines + 1] = writers[settings.format](heads, util.map(rows, cells_of), left)
    lines[#lines + 1] = ''
  end
  local summary = summary_of(rows)
  if summary ~= '' then lines[#lines + 1] = summary .. '.' end
  for line in (notes or ''):gmatch '[^\n]+' do lines[#lines + 1] = #line > width and page.wrapped(line) or line end
  return (table.concat(lines, '\n'):gsub('%s+$', '')) .. '\n'
end

--- Ends a section where Ctrl-C was pressed: `found` is the result of a search, or nil.
function page.unless_stopped(found)
  if found and found.stopped or core.was_interrupted() or core.stop_requested() then util.fail 'interrupted' end
  return found
end

local out_of_time = 'The time is up: rows are missing.'

--- Runs a section: its rows, its notes, and whether Ctrl-C ended it, with the rows so far. The first Ctrl-C ends what
--- runs there; the second one ends the script. So does the end of its time, with a note.
function page.run(section, settings)
  local end_s = settings.end_s or math.huge
  local rows = setmetatable({ section = section.name, quiet = settings.quiet, end_s = end_s }, Rows)
  if core.clock_s() >= end_s then return rows, out_of_time, false end
  if not settings.quiet then progress.note(('%s: %s'):format(section.name, section.title)) end
  core.begin_search()
  if end_s < math.huge then core.begin_limit(end_s - core.clock_s()) end
  local ok, notes = xpcall(section.run, function(raised) return raised end, rows, settings)
  local late = end_s < math.huge and core.end_limit()
  local stopped = core.stop_requested() or core.was_interrupted()
  core.end_search()
  if ok then return rows, notes, stopped end
  if late and not stopped and tostring(notes):find('interrupted', 1, true) then return rows, out_of_time, false end
  if not stopped and not tostring(notes):match 'interrupted$' then error(notes, 0) end
  return rows, ('Stopped by %s: rows are missing.'):format(core.stop_name()), true
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
