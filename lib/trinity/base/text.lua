-- Tables of text.

local check = require 'trinity.base.check'
local util = require 'trinity.base.util'

local text = {}

local function check_rows(head, rows)
  check.list('system.format_table', 1, 'head', head, 'string')
  check.list('system.format_table', 2, 'rows', rows, 'table')
  for r, row in ipairs(rows) do
    for c = 1, #head do
      if type(row[c]) ~= 'string' then
        check.refuse('system.format_table', 2, 'rows', 'row %d, column %d: expected a string, got %s', r, c,
          type(row[c]))
      end
    end
  end
end

--- Converts an untrusted name to one line, because a line break would make a new row.
function text.one_line(words) return (words:gsub('[\r\n]', { ['\r'] = '\\x0D', ['\n'] = '\\x0A' })) end

local function is_left(left, column) return column == 1 or left ~= nil and left[column] == true end

--- Formats rows of text as a table with a head; the first column and those in the set `left` are left-aligned, the
--- others right-aligned.
function text.aligned(head, rows, left)
  check_rows(head, rows)
  rows = util.map(rows, function(row) return util.map(row, text.one_line) end)
  local width, rule, lines = {}, {}, {}
  for c = 1, #head do
    width[c] = #head[c]
    for _, row in ipairs(rows) do width[c] = math.max(width[c], #row[c]) end
    rule[c] = ('-'):rep(width[c])
  end
  local function add(row)
    local cells = {}
    for c = 1, #head do
      local room = (' '):rep(width[c] - #row[c])
      cells[c] = is_left(left, c) and row[c] .. room or room .. row[c]
    end
    lines[#lines + 1] = table.concat(cells, '  '):match '^(.*%S)' or ''
  end
  add(head)
  add(rule)
  for _, row in ipairs(rows) do add(row) end
  return table.concat(lines, '\n')
end

--- Formats rows of text as a table with a head; the first column is left-aligned, the others right-aligned. Example:
--- `trinity.system.format_table({ 'name', 'value' }, { { 'a', '1' } })`
---@param head string[]
---@param rows string[][]
---@return string
function text.format_table(head, rows) return text.aligned(head, rows) end

--- Same, as a Markdown table; `left` as in text.aligned().
function text.markdown(head, rows, left)
  check_rows(head, rows)
  local lines = {}
  local function add(row)
    local cells = util.listed(#head, function(c) return text.one_line(row[c]):gsub('|', '\\|') end)
    lines[#lines + 1] = '| ' .. table.concat(cells, ' | ') .. ' |'
  end
  add(head)
  local rule = util.listed(#head, function(c) return is_left(left, c) and '|---' or '|--:' end)
  lines[2] = table.concat(rule) .. '|'
  for _, row in ipairs(rows) do add(row) end
  return table.concat(lines, '\n')
end

local escapes = { ['\\'] = '\\textbackslash{}', ['~'] = '\\textasciitilde{}', ['^'] = '\\textasciicircum{}' }

--- Same, as a LaTeX tabular with the rules of package booktabs.
function text.latex(head, rows)
  check_rows(head, rows)
  local lines = { ('\\begin{tabular}{l%s} %% \\usepackage{booktabs}'):format(('r'):rep(#head - 1)), '\\toprule' }
  local function add(row)
    local cells = util.listed(#head, function(c) return row[c]:gsub('[\\~^]', escapes):gsub('[_%%&#$]', '\\%0') end)
    lines[#lines + 1] = table.concat(cells, ' & ') .. ' \\\\'
  end
  add(head)
  lines[#lines + 1] = '\\midrule'
  for _, row in ipairs(rows) do add(row) end
  lines[#lines + 1] = '\\bottomrule\n\\end{tabular}'
  return table.concat(lines, '\n')
end

--- Formats a number for a table: `digits` significant digits (default 4) with trailing zeros. No exponent from 0.0001
--- to 10^15; a large number has all digits before the point.
function text.significant(number, digits)
  digits = digits or 4
  if number == 0 then return '0' end
  local written = ('%%#.%dg'):format(digits):format(number)
  if written:find('e+', 1, true) and math.abs(number) < 1e15 then return ('%.0f'):format(number) end
  return (written:gsub('%.$', ''))
end

--- Formats a time in seconds for a table, with significant digits (default 4).
function text.seconds(seconds, digits) return text.significant(seconds, digits) .. ' s' end

--- Formats a number with the fewest exact digits.
function text.digits(number)
  for digits = 15, 16 do
    local written = ('%%.%dg'):format(digits):format(number)
    if tonumber(written) == number then return written end
  end
  return ('%.17g'):format(number)
end

local function csv_cell(value)
  return value:find '[",\r\n]' and '"' .. value:gsub('"', '""') .. '"' or value
end

--- Same, as CSV (RFC 4180, with line feeds).
function text.csv(head, rows)
  check_rows(head, rows)
  local lines = { table.concat(util.map(head, csv_cell), ',') }
  for r, row in ipairs(rows) do lines[r + 1] = table.concat(util.map(row, csv_cell), ',') end
  return table.concat(lines, '\n')
end

return text
