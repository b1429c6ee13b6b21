-- The table of a comparison: its columns, medians and ranges or medians alone, as text, Markdown, LaTeX or CSV.

local core = require 'trinity.core'
local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local significance = require 'trinity.methods.significance'
local statistics = require 'trinity.base.statistics'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local comparison_table = {}

local function metric(name)
  return function(s) return s.metrics[name] end
end

local function reward(s) return s.reward end

--- How many runs of a row fit.
function comparison_table.fitting(row)
  return #util.filtered(row.runs, function(found) return found.metrics.feasible end)
end

--- Values of all runs of a row, ascending.
function comparison_table.values(row, value)
  local list = util.map(row.runs, value)
  table.sort(list)
  return list
end

-- Whether a row's method learns a policy.
local function learns(row) return row.runs[1] and row.runs[1].updates ~= nil end

--- The name of a row in a table: its label or method, with a note where no run ever updated its policy.
function comparison_table.name_of(row)
  local name = row.label or row.method
  for _, found in ipairs(row.runs) do
    if found.updates ~= 0 then return name end
  end
  return row.runs[1] and row.runs[1]:found_by() or name
end

local function over_bound(s) return s.metrics.step_time_s / s:bounds().step_time_s end

-- Columns by name. `value` of a run with `show`: medians and ranges; `of`: a number of the row; `cell`: a text of it.
-- `data` is what CSV calls the number, `applies` says whether the row has one.
local columns = {
  method = { head = 'method', data = 'method',
    cell = function(row, best) return comparison_table.name_of(row) .. (row == best and ' *' or '') end },
  step_time = { head = 'step time', data = 'step_time_s', value = metric 'step_time_s', show = text.seconds },
  step_time_mean = { head = 'mean', data = 'mean_step_time_s', show = text.seconds,
    of = function(row) return statistics.mean(util.map(row.runs, metric 'step_time_s')) end },
  step_time_deviation = { head = 'deviation', data = 'deviation_step_time_s', show = text.seconds,
    of = function(row) return statistics.deviation(util.map(row.runs, metric 'step_time_s')) end },
  over_bound = { head = 'over bound', data = 'over_bound', value = over_bound,
    applies = function(row) return not row.runs[1].splits end, -- the bound holds for whole operators only
    show = function(v) return ('%.2fx'):format(v) end },
  peak_memory = { head = 'peak memory', data = 'peak_memory_bytes', value = metric 'peak_memory_bytes',
    show = core.format_bytes },
  peak_communication = { head = 'peak communication', data = 'peak_communication_bytes',
    value = metric 'peak_communication_bytes', show = core.format_bytes },
  total_communication = { head = 'communication', data = 'total_communication_bytes',
    value = metric 'total_communication_bytes', show = core.format_bytes },
  feasible = { head = 'feasible', data = 'feasible_runs', of = comparison_table.fitting, cell = function(row)
    local fit = comparison_table.fitting(row)
    if fit == #row.runs then return 'yes' end
    return fit == 0 and 'no' or ('%d of %d'):format(fit, #row.runs)
  end },
  reward = { head = 'reward', data = 'reward', value = reward, show = text.significant },
  reward_mean = { head = 'mean reward', data = 'mean_reward', show = text.significant,
    of = function(row) return statistics.mean(util.map(row.runs, reward)) end },
  reward_deviation = { head = 'deviation of reward', data = 'deviation_reward', show = text.significant,
    of = function(row) return statistics.deviation(util.map(row.runs, reward)) end },
  p = { head = 'p', data = 'p', show = function(v) return ('%.3g'):format(v) end,
    of = function(row, best, self)
      local test = best and row ~= best and significance.of(self, row, best)
      return test and test.p
    end },
  runs = { head = 'runs', data = 'runs', of = function(row) return #row.runs end, show = tostring },
  evaluations = { head = 'evaluations', data = 'evaluations', value = function(s) return s.evaluations or 0 end,
    show = function(v) return v > 0 and tostring(v) or '-' end },
  updates = { head = 'updates', data = 'updates', value = function(s) return s.updates end, applies = learns,
    show = function(v) return ('%g'):format(v) end },
  seconds = { head = 'seconds', data = 'seconds', value = function(s) return s.seconds or -1 end,
    show = function(v) return v >= 0 and ('%.1f'):format(v) or '-' end },
}

-- The columns by default, whatever the numbers are: of one seed, and of several.
local of_one = { 'method', 'step_time', 'over_bound', 'peak_memory', 'peak_communication', 'feasible', 'reward',
  'evaluations', 'updates', 'seconds' }
local of_seeds = { 'method', 'step_time', 'step_time_mean', 'step_time_deviation', 'peak_memory', 'peak_communication',
  'feasible', 'reward', 'p', 'updates', 'seconds' }

function comparison_table.names() return util.sorted_keys(columns) end

-- The number of a row in a column, and the values of its runs where that is their median; nil where it has none.
local function number_of(self, column, row, best)
  if #row.runs == 0 or column.applies and not column.applies(row) then return nil end
  if column.of then return column.of(row, best, self) end
  local list = comparison_table.values(row, column.value)
  return util.median(list), list
end

-- The text of a row in a column; `ranges`: median [least - most] where a column has a value of every run.
local function cell_of(self, column, row, best, ranges)
  if column.cell and (#row.runs > 0 or column == columns.method) then return column.cell(row, best) end
  local number, list = number_of(self, column, row, best)
  if not number then return '-' end
  local middle, least, most = column.show(number), list and column.show(list[1]), list and column.show(list[#list])
  return ranges and least ~= most and ('%s [%s - %s]'):format(middle, least, most) or middle
end

-- The number of a row in a column with all its digits, for CSV; the method without the mark of the best.
local function digits_of(self, column, row, best)
  if column == columns.method then return row.method end
  local number = number_of(self, column, row, best)
  return number and text.digits(number) or ''
end

--- The columns of a table by default: updates of policies where a method has one.
local function columns_of(self, names)
  for _, row in ipairs(self.rows) do if learns(row) then return names end end
  return util.filtered(names, function(name) return name ~= 'updates' end)
end

local formats = options_of.words('trinity.TableFormat', { 'text', 'markdown', 'latex', 'csv' })
local declared = options_of.declare('trinity.ComparisonTableOptions', { help = 'What comparison:table takes.',
  { 'columns', 'table', as = 'string[]', otherwise = 'the usual ones, of several seeds with mean, '
    .. 'deviation and p', help = 'which, in order' },
  { 'format', formats, 'text', help = "how it is written; 'csv' with all digits and units in its names" },
  { 'ranges', 'boolean', false, help = 'whether cells have the range next to the median' },
})

--- The table alone, of chosen columns in a chosen format.
function comparison_table.write(self, options)
  options = declared:read('comparison:table', 1, 'options', options)
  local names = options.columns or columns_of(self, self.seeds > 1 and of_seeds or of_one)
  local format = options.format
  for i, name in ipairs(check.list('comparison:table', 'option', 'columns', names, 'string')) do
    if not columns[name] then
      check.refuse('comparison:table', 'option', 'columns', 'entry %d: unknown column %s', i,
        util.unknown(name, comparison_table.names()))
    end
  end
  if #names == 0 then
    check.refuse('comparison:table', 'option', 'columns', 'expected at least one column, got none')
  end
  local is_csv, best = format == 'csv', self:best()
  local heads = util.map(names, function(name) return columns[name][is_csv and 'data' or 'head'] end)
  return text[format == 'text' and 'format_table' or format](heads, util.map(self.rows, function(row)
    return util.map(names, function(name)
      return (is_csv and digits_of or cell_of)(self, columns[name], row, best, options.ranges)
    end)
  end))
end

--- Refuses columns and a format that are none, before anything is computed.
function comparison_table.check_words(names, format)
  for _, name in ipairs(names or {}) do
    if not columns[name] then
      util.fail_usage("option '--columns': unknown column %s", util.unknown(name, comparison_table.names()))
    end
  end
  if not formats.set[format] then
    util.fail_usage("option '--format': unknown format %s", util.unknown(format, util.sorted_keys(formats.set)))
  end
end

return comparison_table
