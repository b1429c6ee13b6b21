-- Everything that comments, pages and the manual cite exists: files of the tree, chapters of the manual and their sections. What is
-- not in the tree is cited as a publication, with its year.

local core = require 'trinity.core'
local declarations = require 'trinity.command.declarations'
local manual = require 'trinity.command.manual'
local reference = require 'trinity.command.reference'
local trinity = require 'trinity'

-- Files of others, and one that a reader writes.
local elsewhere = { ['benchmarks.md'] = true, ['site/en/r1/guide/performance/benchmarks.md'] = true, -- tensorflow/docs
  ['tensorflow/core/lib/io/record_writer.h'] = true, ['lib/hash/crc32c.h'] = true, ['reference.md'] = true, ['report.md'] = true }

local rooms = { engine = true, lib = true, models = true, scripts = true, tests = true }
local marks = { lua = '%-%-+', h = '///?<?', cpp = '///?<?', js = '//', sh = '#', txt = '#' }

--- All files of the tree by path, and by each ending of it that begins at a folder or a name.
local function read_tree()
  local tree = { paths = {}, files = {}, endings = {}, folders = {} }
  local function walk(folder, prefix)
    for _, name in ipairs(core.list_folder(folder)) do
      local path = prefix .. name
      if os.execute(("[ -d '%s/%s' ]"):format(root, path)) == 0 then
        tree.folders[path] = true
        walk(folder .. '/' .. name, path .. '/')
      else
        tree.paths[#tree.paths + 1], tree.files[path], tree.endings[path] = path, true, true
        for at in path:gmatch '/()' do tree.endings[path:sub(at)] = true end
      end
    end
  end
  for _, room in ipairs { 'engine', 'lib', 'models', 'scripts', 'tests' } do
    tree.folders[room] = true
    walk(root .. '/' .. room, room .. '/')
  end
  for _, name in ipairs { 'README.md', 'CMakeLists.txt' } do
    tree.paths[#tree.paths + 1], tree.files[name] = name, true
  end
  return tree
end

--- The text of a file for people, with the line where each piece begins: comments, or all of a page but its blocks.
local function prose(path, text)
  local pieces, open, number, in_block = {}, nil, 0, false
  local mark = marks[path:match '%.(%w+)$']
  for line in (text .. '\n'):gmatch '([^\n]*)\n' do
    number = number + 1
    if line:match '^%s*```' then in_block = not in_block end
    local words
    if mark then words = line:match('^%s*' .. mark .. '%s?(.*)$') or line:match('%s' .. mark .. '%s(.*)$')
    elseif not in_block and line:match '%S' then words = line end
    if words and open then open.text = open.text .. ' ' .. words:match '^%s*(.*)$'
    elseif words then
      open = { line = number, text = words }
      pieces[#pieces + 1] = open
    end
    if not words then open = nil end
  end
  return pieces
end

local headings = {}

-- Pages outside the manual whose sections are cited: how the papers are read.
local others = { notes = 'scripts/studies/papers/notes.md' }

--- The sections of a page as a set; nil for no page.
local function sections(name)
  if headings[name] == nil then
    local page = manual.page(name)
    local source = page and manual.source(page) or others[name] and core.read_file(('%s/%s'):format(root, others[name]))
    headings[name] = source and {} or false
    for title in (source or ''):gmatch '\n##+ ([^\n]+)' do headings[name][title] = true end
  end
  return headings[name] or nil
end

local function check_section(report, chapter, title)
  if not sections(chapter)[title] then report(('chapter %s has no section "%s"'):format(chapter, title)) end
end

--- manual/PAGE.md "SECTION", "SECTION", papers/notes.md "SECTION", and section "SECTION" of `trinity help PAGE`.
local function check_chapters(text, report)
  for _, pattern in ipairs { 'manual/([%l_]+)%.md()', 'papers/(notes)%.md()' } do
    for chapter, at in text:gmatch(pattern) do
      if not sections(chapter) then report('no chapter ' .. chapter) end
      local title, after = text:match('^ "([^"]+)"()', at)
      while title and sections(chapter) do
        check_section(report, chapter, title)
        title, after = text:match('^, "([^"]+)"()', after)
      end
    end
  end
  for title, chapter in text:gmatch 'section "([^"]+)" of `trinity help ([%l_]+)`' do
    if not sections(chapter) then report('no chapter ' .. chapter) else check_section(report, chapter, title) end
  end
  for chapter in text:gmatch '[Cc]hapters? `([%l_]+)`' do
    if not sections(chapter) then report('no chapter ' .. chapter) end
  end
end

--- [text](CHAPTER.md#section), as GitHub names sections.
local function check_anchor(report, chapter, anchor)
  for title in pairs(sections(chapter) or {}) do -- in any order
    if title:lower():gsub('[^%w%s_-]', ''):gsub('%s', '-') == anchor then return end
  end
  report(('no section %s.md#%s'):format(chapter, anchor))
end

local entries

--- `trinity help NAME`: a chapter, a script, a model, an entry of the reference.
local function check_help(text, report, tree)
  for name in text:gmatch 'trinity help ([%l_][%w_.:]*)' do
    name = name:gsub('[.:]+$', '')
    entries = entries or reference.names(declarations.read())
    local is_file = tree.endings['scripts/' .. name .. '.lua'] or tree.endings['models/' .. name .. '.lua']
    if not (manual.page(name) or is_file or name == 'methods' or entries[name]) then
      report('trinity help knows no ' .. name)
    end
  end
end

--- Whether a path of a comment is there: from the root, from a folder of a part or next to its file; without an ending for a pair
--- of header and source, or a module. Words in capitals stand for what a reader puts in.
local function is_there(word, beside, tree)
  if word:match '%f[%a]%u[%u/]' and not word:match 'README' or word:match '^path/' or elsewhere[word] then return true end
  for _, path in ipairs { word, beside .. word } do
    path = path:gsub('/$', '')
    while path:match '[^/]+/%.%./' do path = path:gsub('[^/]+/%.%./', '', 1) end
    if tree.folders[path] or tree.files[path] then return true end
    for _, ending in ipairs { '', '.h', '.lua', '.cpp' } do
      if tree.endings[path .. ending] and not path:match '%.md$' then return true end
    end
  end
  return false
end

local function check_files(text, report, tree, beside)
  for before, word in (' ' .. text):gmatch '([^%w_/.%-])([%w_.%-][%w_/.%-]*)' do
    word = word:gsub('[.%-]+$', '')
    local ending, room = word:match '%.(%l+)$', word:match '^([%l]+)/'
    local is_ours = rooms[room] and not (before == '<') or ending == 'md'
      or word:find('/', 1, true) and (ending == 'h' or ending == 'cpp' or ending == 'lua') and room ~= 'src'
    if word:match '^manual/[%l_]+%.md$' or word == 'papers/notes.md' then is_ours = false end -- a page: see above
    if is_ours and not is_there(word, beside, tree) then report('no file ' .. word) end
  end
  for target in text:gmatch '%]%(([^)]+)%)' do
    local chapter, anchor = target:match '^([%l_]+)%.md#(.+)$'
    if not chapter then chapter, anchor = target:match '/manual/([%l_]+)%.md#(.+)$' end
    if chapter then check_anchor(report, chapter, anchor)
    elseif not target:match '^https?:' and not target:match '%.md$' and not is_there(target, beside, tree) then report('no file ' .. target) end
  end
  for target in text:gmatch '<img [^>]-src="([^"]+)"' do
    if not target:match '^%a+:' and not is_there(target, beside, tree) then report('no picture ' .. target) end
  end
end

--- A section by number is one of a publication: a year stands shortly before, or "its".
local function check_publications(text, report)
  for at, word in text:gmatch '()[Ss]ection (%d[%d.]*)' do
    local before = text:sub(math.max(1, at - 120), at - 1)
    if not before:match '%f[%d][12][90]%d%d%f[%D]' and not before:match 'its $' then
      report(('section %s of what? No year of a publication stands before'):format(word))
    end
  end
end

--- Citations of a file that do not exist: a list of texts.
local function missing(path, text, tree)
  local found, beside = {}, path:match '^(.*/)' or ''
  for _, piece in ipairs(prose(path, text)) do
    local function report(what) found[#found + 1] = ('%s:%d: %s'):format(path, piece.line, what) end
    check_chapters(piece.text, report)
    check_help(piece.text, report, tree)
    check_files(piece.text, report, tree, beside)
    check_publications(piece.text, report)
  end
  return found
end

describe('citations', function()
  local tree = read_tree()
  it('lead to files, chapters and sections that are there', function()
    local all, read = {}, 0
    for _, path in ipairs(tree.paths) do
      local ending = path:match '%.(%w+)$'
      local is_read = (marks[ending] or ending == 'md') and not path:match '^tests/data/' and not path:match '^tests/golden/'
        and path ~= 'tests/lua/tree/citations_spec.lua'
      if is_read then
        read = read + 1
        for _, what in ipairs(missing(path, core.read_file(root .. '/' .. path), tree)) do all[#all + 1] = what end
      end
    end
    expect(600):below(read)
    expect(table.concat(all, '\n')):equals ''
  end)
  it('are refused where they lead nowhere', function()
    local function refused(path, text) return table.concat(missing(path, text, tree), '; ') end
    expect(refused('engine/base/x.h', 'int a;  // manual/simulator.md "Lows"\n')):equals 'engine/base/x.h:1: chapter simulator has no section "Lows"'
    expect(refused('lib/x.lua', '\n-- papers.md 1.4, tests/lua/nowhere_spec.lua, manual/simulater.md\n')):equals(
      'lib/x.lua:2: no chapter simulater; lib/x.lua:2: no file papers.md; lib/x.lua:2: no file tests/lua/nowhere_spec.lua')
    expect(refused('lib/x.lua', '-- as section 3.2 says\n')):matches 'section 3.2 of what'
    expect(refused('lib/x.lua', '-- (Narayanan et al., SOSP 2019, section 3.1), manual/simulator.md "Invariants"\n')):equals ''
    expect(refused('lib/trinity/manual/x.md', 'See [two](twoo.md) and `trinity help netwroks`.\n'))
      :equals 'lib/trinity/manual/x.md:1: trinity help knows no netwroks; lib/trinity/manual/x.md:1: no file twoo.md'
    expect(refused('lib/trinity/manual/x.md', 'section "Lows" of `trinity help simulator`; ![x](simulator.md)\n'))
      :equals 'lib/trinity/manual/x.md:1: chapter simulator has no section "Lows"'
    expect(refused('scripts/studies/papers/x.md', '[a](notes.md#pase-formulation) [b](notes.md#pase)\n'))
      :equals 'scripts/studies/papers/x.md:1: no section notes.md#pase'
  end)
end)

describe('folders', function()
  -- scripts: `trinity NAME` looks for NAME.lua right there and in no folder below.
  local most, excepted = 40, { scripts = true }
  local function crowded(paths)
    local counts, found = {}, {}
    for _, path in ipairs(paths) do
      local folder = path:match '^(.*)/' or '.'
      counts[folder] = (counts[folder] or 0) + 1
    end
    for folder, count in trinity.system.sorted_pairs(counts) do
      if count > most and not excepted[folder] then found[#found + 1] = ('%s holds %d files'):format(folder, count) end
    end
    return table.concat(found, '; ')
  end
  it('hold no more files than one looks through', function()
    expect(crowded(read_tree().paths)):equals ''
    local many = {}
    for i = 1, most + 1 do many[i] = ('lib/room/%d.lua'):format(i) end
    expect(crowded(many)):equals(('lib/room holds %d files'):format(most + 1))
  end)
end)

describe('lists of specs', function()
  it('name specs that are there', function()
    local known, specs = {}, dofile(root .. '/tests/lua/support/specs.lua')
    for _, name in ipairs(specs.all()) do known[name] = true end
    local quick = core.read_file(root .. '/tests/quick.txt'):gsub('#[^\n]*', ''):gsub('cpp/%S+', '')
    local count = 0
    for name in quick:gmatch '%S+' do
      count = count + 1
      expect(known[name] and name):equals(name)
    end
    expect(10):below(count)
  end)
end)

describe('maps', function()
  local function rooms_of(folder)
    local list = {}
    for _, name in ipairs(core.list_folder(root .. '/' .. folder)) do
      if os.execute(("[ -d '%s/%s/%s' ]"):format(root, folder, name)) == 0 then list[#list + 1] = name end
    end
    return list
  end
  it('name every folder of the engine, which has a page, and of the library', function()
    for folder, pages in pairs { engine = true, ['lib/trinity'] = false } do -- in any order
      local map = core.read_file(('%s/%s/README.md'):format(root, folder))
      for _, room in ipairs(rooms_of(folder)) do
        if not map:find(('`%s`'):format(room), 1, true) then error(('%s/README.md does not name %s'):format(folder, room), 0) end
        if pages then expect(core.read_file(('%s/%s/%s/README.md'):format(root, folder, room))):matches '^# ' end
      end
    end
  end)
end)
