-- Golden texts, tests/golden/NAME.txt: what programs and methods print. A change of a cost, a rule or a layout shows as a
-- diff, and is accepted by `build/trinity tests/lua/golden.lua --accept NAME`, which writes the file again.

local core = require 'trinity.core'

local golden = {}
local accepted = os.getenv 'TRINITY_ACCEPT'
golden.accepting = accepted ~= nil -- tests of anything else rest then

--- Whether the test of a text is to run: while texts are accepted (a name, a folder, 'all') no others are.
function golden.wanted(name)
  return not accepted or accepted == 'all' or name == accepted or name:sub(1, #accepted + 1) == accepted .. '/'
end

--- Replaces what depends on machine and moment: { pattern, replacement } one after another.
function golden.masked(text, masks)
  for _, mask in ipairs(masks) do text = text:gsub(mask[1], mask[2]) end
  return text
end

--- The columns that a line of dashes below a heading shows: { first, last } each; nil where it is none.
local function columns_of(line)
  if not line:find '^%-%-[%- ]*$' then return nil end
  local columns, start = {}, 1
  for last in line:gmatch '%-+()' do
    columns[#columns + 1] = { start, last - 1 }
    start = last
  end
  return columns
end

--- The cells of a row; nil for a line that is none, since something stands between two columns.
local function cells_of(line, columns)
  local cells = {}
  for c = 2, #columns do
    if line:sub(columns[c][1], columns[c][1] + 1):find '%S' then return nil end
  end
  for c, column in ipairs(columns) do
    cells[c] = line:sub(column[1], c < #columns and column[2] or -1):match '^%s*(.-)%s*$'
  end
  return cells
end

--- The rows of cells as lines again, each column as wide as what is left in it.
local function rendered(rows)
  local widths, lines = {}, {}
  for _, cells in ipairs(rows) do
    for c, cell in ipairs(cells) do widths[c] = math.max(widths[c] or 0, #cell) end
  end
  for r, cells in ipairs(rows) do
    local padded = {}
    for c, cell in ipairs(cells) do padded[c] = (c == 1 and '%%-%ds' or '%%%ds'):format(widths[c]):format(cell) end
    lines[r] = table.concat(padded, '  '):gsub(' +$', '')
    if r == 1 then
      for c = 1, #cells do padded[c] = ('-'):rep(widths[c]) end
      lines[1] = lines[1] .. '\n' .. table.concat(padded, '  ')
    end
  end
  return lines
end

--- Masks cells of a text's tables by `~`, those for which masked(heading, cells of the row, column, number of the table)
--- is true; tables without one stay as they are.
function golden.tables(text, masked)
  local lines, out, count, i = {}, {}, 0, 1
  for line in (text .. '\n'):gmatch '(.-)\n' do lines[#lines + 1] = line end
  while i <= #lines do
    local columns = lines[i + 1] and columns_of(lines[i + 1])
    if columns then
      local heading, first, any = cells_of(lines[i], columns) or {}, i, false
      local rows = { heading }
      count, i = count + 1, i + 2
      while lines[i] and lines[i] ~= '' do
        local cells = cells_of(lines[i], columns)
        if not cells then break end
        local row = { unpack(cells) }
        for c = 1, #cells do
          if masked(heading[c], cells, c, count) then row[c], any = '~', true end
        end
        rows[#rows + 1] = row
        i = i + 1
      end
      local chosen = any and rendered(rows) or { unpack(lines, first, i - 1) }
      for _, line in ipairs(chosen) do out[#out + 1] = line end
    else
      out[#out + 1], i = lines[i], i + 1
    end
  end
  return table.concat(out, '\n')
end

local function diff(expected, path, text)
  local got = os.tmpname()
  core.write_file(got, text)
  local pipe = io.popen(("diff -u --label expected --label got '%s' '%s'"):format(expected and path or '/dev/null', got))
  local lines = pipe:read '*a'
  pipe:close()
  os.remove(got)
  return lines
end

--- Raises the diff where `text` is not the one of the file: tests/golden/NAME.txt, or `file` below the root.
function golden.check(name, text, file)
  file = file or ('tests/golden/%s.txt'):format(name)
  local path = ('%s/%s'):format(core.home, file)
  if accepted then
    core.write_file(path, text)
    print('accepted ' .. name)
  end
  local readable, expected = pcall(core.read_file, path)
  if readable and expected == text then return true end
  error(('%s is not what came:\n%s\nTo accept it: build/trinity tests/lua/golden.lua --accept %s'):format(file,
    diff(readable, path, text), name), 0)
end

return golden
