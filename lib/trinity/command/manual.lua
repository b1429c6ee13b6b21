-- The manual: pages in lib/trinity/manual, by part, which `trinity help PAGE` shows in the terminal.

local core = require 'trinity.core'

local manual = {}

local folder = core.home .. '/lib/trinity/manual/'
local width = 96 -- of what is shown

-- In the order in which a newcomer reads them.
local parts = {
  { name = 'start', pages = { 'overview', 'install', 'glossary' } },
  { name = 'tutorials', pages = { 'tutorial', 'planning', 'scripting' } },
  { name = 'how-to guides', pages = { 'models', 'own_models', 'clusters', 'strategies', 'searching', 'learning',
    'heterogeneous', 'exporting', 'checking', 'stragglers', 'uneven_work', 'calibrating', 'executing', 'processes',
    'serving', 'reporting', 'limits', 'moves', 'embedding', 'extending' } },
  { name = 'reference', pages = { 'command', 'strategy_fields', 'schedules', 'catalog', 'simulator', 'metrics',
    'messages' } },
  { name = 'explanation', pages = { 'simulation', 'symmetry', 'pruning', 'waiting', 'ranker', 'accuracy' } },
  { name = 'results', pages = { 'studies' } },
}

-- Names of earlier versions, and the page that has their content.
local aliases = { export_formats = 'exporting', gpus = 'executing', networks = 'models', papers = 'studies',
  ranking = 'ranker', reproducing = 'studies', trust = 'accuracy' }

--- The parts of the manual in order: { name =, pages = }.
function manual.parts() return parts end

function manual.names()
  local names = {}
  for _, part in ipairs(parts) do
    for _, name in ipairs(part.pages) do names[#names + 1] = name end
  end
  return names
end

--- The page that a name stands for: a page's own, or one of an earlier version; nil for no page.
function manual.page(name)
  name = aliases[name] or name
  for _, page in ipairs(manual.names()) do
    if page == name then return page end
  end
end

--- A page as it is written, Markdown.
function manual.source(name) return core.read_file(folder .. name .. '.md') end

--- The title of a page: its first heading.
function manual.title(name) return manual.source(name):match '^# ([^\n]+)' end

--- Converts inline Markdown to plain text.
local function inline(line)
  line = line:gsub('<img [^>]-alt="([^"]*)"[^>]*>', '[picture: %1]')
  line = line:gsub('!?%[([^%]]*)%]%((https?://[^)]*)%)', '%1 (%2)')
  line = line:gsub('!?%[([^%]]*)%]%([^)]*%)', '%1')
  local plain = {}
  for outside, code in (line .. '``'):gmatch '([^`]*)`([^`]*)`' do -- stars and bars in code are unchanged
    plain[#plain + 1] = outside:gsub('%*%*', '') .. code
  end
  return table.concat(plain)
end

--- Wraps words to lines of at most `width`. The first line starts with `first`, the others with the same number of
--- spaces.
local function wrap(lines, first, words)
  local line, indent = first, (' '):rep(#first)
  for word in words:gmatch '%S+' do
    if #line > #indent and #line + 1 + #word > width then
      lines[#lines + 1] = line
      line = indent
    end
    line = line .. (#line > #indent and ' ' or '') .. word
  end
  lines[#lines + 1] = line
end

local function cells_of(line)
  local cells = {}
  local hidden = line:gsub('\\|', '\1')
  for cell in hidden:match('^|(.*)|%s*$'):gmatch '([^|]*)|?' do
    cells[#cells + 1] = inline((cell:gsub('\1', '|'):match '^%s*(.-)%s*$'))
  end
  if cells[#cells] == '' then cells[#cells] = nil end
  return cells
end

--- Shows a table with aligned columns or, if it is too wide, one paragraph per row.
local function show_table(lines, rows)
  local head, widths, whole = rows[1], {}, 0
  for _, row in ipairs(rows) do
    for c = 1, #head do widths[c] = math.max(widths[c] or 0, #(row[c] or '')) end
  end
  for _, cell_width in ipairs(widths) do whole = whole + cell_width + 2 end
  for r, row in ipairs(rows) do
    if whole <= width then
      local line = ''
      for c = 1, #head do line = line .. ('%-' .. math.min(99, widths[c]) .. 's  '):format(row[c] or '') end
      lines[#lines + 1] = line:match '^(.-)%s*$'
      if r == 1 then lines[#lines + 1] = ('-'):rep(whole - 2) end
    elseif r > 1 then
      lines[#lines + 1] = row[1]
      for c = 2, #head do
        if (row[c] or '') ~= '' then wrap(lines, '    ', (head[c] ~= '' and head[c] .. ': ' or '') .. row[c]) end
      end
    end
  end
end

--- The lines of a text with a cursor: next() takes one, peek() looks at it.
local function reader(source)
  local all, at = {}, 0
  for line in (source:gsub('\n$', '') .. '\n'):gmatch '([^\n]*)\n' do all[#all + 1] = line end
  return { peek = function() return all[at + 1] end, next = function() at = at + 1 return all[at] end }
end

--- Returns the line above a code block that its info string asks for, or nil.
local function about_block(info)
  local path, place = info:match 'file=(%S+)%s*(.*)$'
  if info:match '^output' then return 'shows:' end
  if not path then return info:match 'not%-run' and '(not run by the tests)' or nil end
  if place == '' then return ('file %s:'):format(path) end
  return ('file %s, %s:'):format(path, place)
end

local function show_block(lines, from, indent, info)
  lines[#lines + 1] = about_block(info) and indent .. '  ' .. about_block(info)
  for line in from.next do
    if line:match '^%s*```%s*$' then return end
    lines[#lines + 1] = line == '' and '' or indent .. '    ' .. line:sub(#indent + 1)
  end
end

local function show_heading(lines, level, title)
  lines[#lines + 1] = title
  lines[#lines + 1] = (level == 1 and '=' or '-'):rep(#title)
end

--- Returns whether a line continues the paragraph above it: it is no heading, row, block or item.
local function continues(line)
  if not line or line:match '^%s*%d+%. ' then return false end
  return line:match '^%s*[^%s#|`*-]' or line:match '^%s*`[^`]' or line:match '^%s*%*%*%S'
end

--- Converts Markdown to plain text for a terminal: aligned tables, wrapped paragraphs, indented blocks of code.
function manual.plain(source)
  local lines, from = {}, reader(source)
  for line in from.next do
    local marks, title = line:match '^(#+) (.*)$'
    local indent, info = line:match '^(%s*)```(.+)$'
    local mark, rest = line:match '^(%s*[-*%d]+%.? )(.*)$'
    if marks then
      show_heading(lines, #marks, inline(title))
    elseif indent then
      show_block(lines, from, indent, info)
    elseif line:match '^|' then
      local rows = { cells_of(line) }
      while from.peek() and from.peek():match '^|' do
        local row = from.next()
        if not row:match '^|[-:| ]+$' then rows[#rows + 1] = cells_of(row) end
      end
      show_table(lines, rows)
    elseif line:match '^%s*$' then
      lines[#lines + 1] = ''
    else
      if not mark or not (mark:match '^%s*[-*] $' or mark:match '^%s*%d+%. $') then
        mark, rest = line:match '^(%s*)(.*)$'
      end
      while continues(from.peek()) do rest = rest .. ' ' .. from.next() end
      wrap(lines, mark, inline(rest))
    end
  end
  return table.concat(lines, '\n') .. '\n'
end

--- Formats rows of names and descriptions for a terminal.
function manual.listing(rows)
  local longest, lines = 0, {}
  for _, row in ipairs(rows) do longest = math.max(longest, #row[1]) end
  for i, row in ipairs(rows) do lines[i] = ('  %-' .. longest .. 's  %s'):format(row[1], row[2]) end
  return table.concat(lines, '\n') .. '\n'
end

return manual
