-- Reads tables of measurements: CSV with a header (RFC 4180: fields in quotes may contain commas and line ends).

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local util = require 'trinity.base.util'

local csv = {}

--- Returns the next field from `at` on: its text, and its end (',' or '\n', '' at the end of the text).
local function field(text, at, path)
  if text:sub(at, at) ~= '"' then
    local value, stop = text:match('^([^,\r\n]*)\r?([,\n]?)', at)
    local after = at + #value + (text:sub(at + #value, at + #value) == '\r' and 1 or 0) + #stop
    return value, stop, after
  end
  local parts, from = {}, at + 1
  while true do
    local close = text:find('"', from, true)
    if not close then util.fail('%s: expected the closing quote of a field, got the end of the file',
      util.shortened(path)) end
    parts[#parts + 1] = text:sub(from, close - 1)
    from = close + 1
    if text:sub(from, from) ~= '"' then break end
    parts[#parts + 1] = '"'
    from = from + 1
  end
  local space, stop = text:match('^([ \t\r]*)([,\n]?)', from)
  return table.concat(parts), stop, from + #space + #stop
end

--- Returns the position of a row: the file and its line, or the row's number if it comes from no file.
function csv.place(path, row)
  return ('%s: %s %d'):format(util.shortened(path), row.line and 'line' or 'row', row.line or row.number)
end

--- Raises an error about a row with its position.
function csv.refuse(path, row, message, ...) util.fail('%s: %s', csv.place(path, row), message:format(...)) end

--- Returns the lines of a text as lists of fields, with their first line number `line`. Empty lines are skipped.
local function lines_of(text, path)
  local at, lines, fields, from, line = 1, {}, {}, 1, 1
  local function add()
    if #fields > 1 or fields[1] ~= '' then
      fields.line = line
      lines[#lines + 1] = fields
    end
    line = line + select(2, text:sub(from, at - 1):gsub('\n', ''))
    fields, from = {}, at
  end
  while at <= #text do
    local value, stop, after = field(text, at, path)
    fields[#fields + 1], at = value, after
    if stop == ',' and at > #text then
      fields[#fields + 1] = ''
      stop = '\n'
    end
    if stop ~= ',' then add() end
    if stop == '' then break end
  end
  return lines
end

--- Returns the rows of a file, which must have these columns, as tables by column; `row.line` is a row's first line.
function csv.read(path, ...)
  local lines = lines_of(json.text(path):gsub('^\239\187\191', ''), path)
  local head = lines[1] or {}
  local known = util.set(head)
  for _, name in ipairs { ... } do
    if not known[name] then
      util.fail("%s: column '%s' is missing%s", util.shortened(path), name, core.suggestion(name, head))
    end
  end
  local rows = {}
  for i = 2, #lines do
    if #lines[i] ~= #head then
      csv.refuse(path, lines[i], 'expected %d fields, got %d', #head, #lines[i])
    end
    local row = {}
    for c, name in ipairs(head) do row[name] = lines[i][c] end
    row.line = lines[i].line
    rows[i - 1] = row
  end
  return rows
end

--- Returns a number of a row; `otherwise` if the field is empty (required without `otherwise`).
function csv.number(path, row, column, otherwise)
  local text = row[column]
  if (text == nil or text == '') and otherwise ~= nil then return otherwise end
  local value = tonumber(text)
  if not value or value ~= value then
    csv.refuse(path, row, "column '%s': expected a number, got %s", column, util.describe(text))
  end
  return value
end

--- Returns an integer of a row from `least` (1) to 2^31; `otherwise` if the field is empty.
function csv.whole(path, row, column, otherwise, least)
  local value = csv.number(path, row, column, otherwise)
  if not (value >= (least or 1) and value % 1 == 0 and value <= 2 ^ 31) then
    csv.refuse(path, row, "column '%s': expected a whole number from %d, got %s", column, least or 1,
      util.describe(row[column]))
  end
  return value
end

--- Returns the word of a row's field, one of `known`; `otherwise` if the field is empty.
function csv.word(path, row, column, known, otherwise)
  local word = row[column]
  if (word == nil or word == '') and otherwise then return otherwise end
  for _, one in ipairs(known) do if word == one then return word end end
  csv.refuse(path, row, "column '%s': expected %s, got %s%s", column, table.concat(known, ', ', 1, #known - 1) .. ' or '
    .. known[#known], util.describe(word), word and core.suggestion(word, known) or '')
end

--- Returns the results of body(...), or nil and its error message without the position in a Lua file.
function csv.attempt(body, ...)
  local ok, found = pcall(body, ...)
  if ok then return found end
  if core.stop_requested() then error(found, 0) end -- a stop is no error of the row
  return nil, (tostring(found):gsub('^%S+%.lua:%d+: ', ''))
end

return csv
