-- Tables of text.

local check = require 'trinity.base.check'

local text = {}

local function check_rows(head, rows)
  check.list('trinity.format_table', 1, 'head', head, 'string')
  check.list('trinity.format_table', 2, 'rows', rows, 'table')
  for r, row in ipairs(rows) do
    for c = 1, #head do
      if type(row[c]) ~= 'string' then
        check.refuse('trinity.format_table', 2, 'rows', 'row %d, column %d: expected a string, got %s', r, c,
          type(row[c]))
      end
    end
  end
end

--- Rows of text as a table under a head, the first column flush left, the others flush right.
---@param head string[]
---@param rows string[][]
---@return string
function text.format_table(head, rows)
  check_rows(head, rows)
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
      cells[c] = c == 1 and row[c] .. room or room .. row[c]
    end
    lines[#lines + 1] = table.concat(cells, '  '):match '^(.*%S)' or ''
  end
  add(head)
  add(rule)
  for _, row in ipairs(rows) do add(row) end
  return table.concat(lines, '\n')
end

return text
