-- Parts of the scripts' output that depend on machine, moment or the version of a library: `~` in the golden texts.

local golden = dofile(root .. '/tests/lua/support/golden.lua')

local varies = dofile(root .. '/tests/lua/support/varying_methods.lua')

-- Columns that are masked wherever they stand, and those that a row of such a method keeps.
local seconds = { seconds = true, ['search seconds'] = true }
local kept = { evaluations = true, cards = true, seed = true }

--- Cells of seconds, rows and columns of methods that vary.
local function usual(heading, cells, column)
  if seconds[heading] then return true end
  for _, cell in ipairs(cells) do
    local name = cell:gsub(' %*$', '')
    if varies[name] then return cells[column] ~= cell and not kept[heading] and cells[column]:find '%w' ~= nil end
  end
  return varies[heading] and cells[column]:find '%d' ~= nil
end

--- The cells of these columns (numbers) of each table, and the usual ones.
local function columns(of_table)
  local sets = {}
  for t, list in ipairs(of_table) do
    sets[t] = {}
    for _, c in ipairs(list) do sets[t][c] = true end
  end
  return function(heading, cells, column, count)
    return sets[count] and sets[count][column] or usual(heading, cells, column)
  end
end

local numbers = { '%-?%d[%d.]*', '~' }
local measured = { '(%d+%.%d%d)%d%d%f[^%d.]', '%1~~' } -- the last digits of what is learned

local tables = {
  compare = function(heading, cells, column) -- p belongs to the best, which may vary
    return heading == 'p' or usual(heading, cells, column)
  end,
  execute = columns { { 2, 3, 4, 5 } },
  placement = function(heading, cells, column, count)
    return cells[1] == 'mean rank' and column > 1 or usual(heading, cells, column, count)
  end,
  profile = columns { { 2, 3, 4, 5, 6, 7, 8 }, { 2, 3, 4, 5 } },
  papers_tapp = function(_, cells, column, count) -- rows of methods that sample schemes
    local drawn = count > 1
    for _, name in ipairs { 'default', 'trained', 'frozen', 'moves' } do drawn = drawn or cells[1]:find(name) end
    return drawn and (column == 4 or column == 7 or count == 1 and column == 3)
  end,
  train_distributed = columns { { 4, 5 } },
  whole_loop = columns { { 3, 4, 5, 6 } },
}

-- Before tables are found: which operator types take longest, and thus how wide their column is, is measured.
local measured_tables = {
  execute = { { 'operator type +operators +measured +simulated\n.-\nand %d+ more types', 'operator type, operators, measured, simulated: ~' } },
}

local texts = {
  execute = { { 'measured: step time[^\n]*', 'measured: step time ~' } },
  help = { { 'pages of the manual.*', 'pages ~\n' } },
  pipeline = { { 'planned in [%d.]+ s', 'planned in ~ s' } },
  profile = { { 'batch size 1 on [^\n]*', 'batch size 1 on ~' }, { '\n[^\n]* cores, [^\n]*', '\n~' } },
  quickstart = { { '^[^\n]*', 'trinity ~' }, { 'to the same [%d.]+ s', 'to the same ~ s' } },
  report = { { '%d+ kB', '~ kB' } },
  select = { { '"seconds": [%d.e-]+', '"seconds": ~' } },
  papers_tapp = { { 'TAPP by default.-\n\n', function(part) return (part:gsub(unpack(numbers))) end } },
  timeline = { { 'simulated in [%d.]+ ms', 'simulated in ~ ms' } },
  train_distributed = { measured },
  watch = { { 'started [^\n]*', 'started ~' } },
  whole_loop = { { 'vocabulary=40: [^\n]*', 'vocabulary=40: ~' }, { '%b(), medians', '(~), medians' } },
}

--- The output of a script as its golden text has it.
return function(name, text)
  text = golden.masked(text, { { root:gsub('%p', '%%%0'), '<root>' }, { '/tmp/lua_%w+/lua_%d+[%w_.]*', '<file>' } })
  text = golden.masked(text, measured_tables[name] or {})
  local found = golden.tables(text, tables[name] or usual)
  if found ~= text and text:find '\n%* best: ' then -- who is the best may vary
    found = golden.masked(found, { { '\n%* best: [^\n]*', '\n* best: ~' },
      { '\np against [^\n]*%(', '\np against ~ (' }, { '(\n[%w_]+) %*', '%1  ' } })
  end
  return golden.masked(found, texts[name] or {})
end
