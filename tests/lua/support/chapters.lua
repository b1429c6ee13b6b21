-- Chapters of the manual as tests: the blocks of a Markdown file, and a folder where they run in order.
--
-- What the info string of a block says:
--   lua                     a part of the chapter's script: all of them run in one state, after all other blocks
--   LANGUAGE file=PATH      the file PATH; with `append`, at its end; with `after LINE`, after that line
--   sh                      a command; with `status=N`, it ends with N; with `needs=A,B`, only where the commands A and
--                           B (or files, with a / in their names) are there
--   output                  what the block before shows: ... stands for anything; with `last-word-free`, the last word
--                           of a line that ends with a number is (seconds)
--   text                    no code; any other language is refused
--   LANGUAGE not-run        shown only; a spec lists these with reasons

local core = require 'trinity.core'

local chapters = {}

local languages = { lua = true, sh = true, output = true, text = true, cpp = true, json = true, make = true }

--- The blocks of a Markdown text: { language =, info =, line =, indent =, lines = }.
function chapters.blocks(source)
  local blocks, open, number = {}, nil, 0
  for line in (source:gsub('\n$', '') .. '\n'):gmatch '([^\n]*)\n' do
    number = number + 1
    local indent, info = line:match '^(%s*)```(.*)$'
    if open and indent and info == '' then
      blocks[#blocks + 1], open = open, nil
    elseif open then
      if line:sub(1, open.indent):match '%S' then error(('line %d: less indented than its block'):format(number), 0) end
      table.insert(open.lines, line:sub(open.indent + 1))
    elseif indent then
      open = { info = info, language = info:match '^%S*', line = number, indent = #indent, lines = {} }
      if not languages[open.language] then error(('line %d: a block of %q'):format(number, open.language), 0) end
    end
  end
  if open then error(('line %d: the block does not end'):format(open.line), 0) end
  return blocks
end

--- Whether a block is shown only.
function chapters.is_shown_only(block)
  return (block.info .. ' '):find(' not-run ', 1, true) ~= nil or block.info == 'text'
end

--- `text` with a block's lines appended, or inserted after the one line that its `after` names.
local function inserted(block, text, path)
  local added, place = table.concat(block.lines, '\n') .. '\n', block.info:match 'file=%S+%s+(.*)$'
  if place == 'append' then return text .. added end
  local wanted, found, out = place:match '^after (.*)$', 0, {}
  for line in text:gmatch '([^\n]*)\n' do
    out[#out + 1] = line .. '\n'
    if line:match '^%s*(.-)%s*$' == wanted then
      found = found + 1
      out[#out + 1] = added
    end
  end
  if found ~= 1 then error(('line %d: %s has %d lines %q, expected one'):format(block.line, path, found, wanted), 0) end
  return table.concat(out)
end

local function write(folder, block)
  local path = block.info:match 'file=(%S+)'
  local full = ('%s/%s'):format(folder, path)
  if block.info:match 'file=%S+%s+%S' then
    core.write_file(full, inserted(block, core.read_file(full), path))
  else
    os.execute(("mkdir -p '%s'"):format(full:match '^(.*)/'))
    core.write_file(full, table.concat(block.lines, '\n') .. '\n')
  end
end

--- A line as a pattern: ... stands for anything.
local function pattern_of(line)
  return '^' .. line:gsub('%p', '%%%0'):gsub('%%%.%%%.%%%.', '.-') .. '$'
end

local function trimmed(line, last_word_free)
  line = line:gsub('%s+$', '')
  return last_word_free and line:gsub('%s+[%d.]+$', '') or line
end

--- Why `text` does not show what an output block has: its lines in a row, somewhere; nil where it does.
function chapters.difference(block, text)
  local free, lines = block.info:match 'last%-word%-free' ~= nil, {}
  for line in (text .. '\n'):gmatch '([^\n]*)\n' do lines[#lines + 1] = trimmed(line, free) end
  local best, where = -1, nil
  for start = 0, #lines - 1 do
    local i = 0
    while i < #block.lines do
      local line = lines[start + i + 1]
      if not line or not line:match(pattern_of(trimmed(block.lines[i + 1], free))) then break end
      i = i + 1
    end
    if i == #block.lines then return nil end
    if i > best then best, where = i, start + i + 1 end
  end
  return ('line %d: expected\n  %s\ngot\n  %s\nof\n%s'):format(block.line + best + 1, block.lines[best + 1],
    lines[where] or '(the end)', text)
end

--- A folder in which commands of the manual run: build/trinity is `program`, the files next to it and the tree are
--- the files of `root`, but for its runs.
function chapters.folder(path, root, program)
  os.execute(([[mkdir -p '%s/build' && cd '%s' && ln -s '%s' build/trinity
    for f in '%s'/*; do [ "${f##*/}" = runs ] || [ -e "${f##*/}" ] || ln -s "$f" .; done]]):format(path, path, program, root))
  for _, name in ipairs { 'lua', 'libtrinity.so', 'package' } do
    local beside = ('%s/%s'):format(program:match '^(.*)/', name)
    os.execute(("[ ! -e '%s' ] || ln -s '%s' '%s/build/'"):format(beside, beside, path))
  end
  return path
end

-- A block as the shell gets it, in a folder, with variables set. mpirun starts ranks for root, and more than cores.
local command_of = [[cd '%s' && unset TRINITY_RUNS && export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 \
OMPI_MCA_rmaps_base_oversubscribe=1 %s && { timeout -k 5 300 sh -e <<'END OF THE BLOCK'
%s
END OF THE BLOCK
} 2>&1; echo "status=$?"]]

--- Runs a command in a folder, with variables as the shell sets them: its status and all that it shows.
local function run(folder, set, command)
  local pipe = io.popen(command_of:format(folder, set, command))
  local output = pipe:read '*a'
  pipe:close()
  local text, status = output:match '^(.*)status=(%d+)\n$'
  return tonumber(status), text
end

--- A name that a block needs and that is missing; nil where all are there.
local function missing(folder, set, block)
  for name in (block.info:match 'needs=(%S+)' or ''):gmatch '[^,]+' do
    if run(folder, set, (name:find('/', 1, true) and '[ -e %s ]' or 'command -v %s'):format(name)) ~= 0 then return name end
  end
end

--- Runs a block of `sh`; what it shows.
local function run_sh(folder, set, block)
  local status, text = run(folder, set, table.concat(block.lines, '\n'))
  local wanted = tonumber(block.info:match 'status=(%d+)') or 0
  if status ~= wanted then
    error(('line %d: status %s, expected %d\n%s'):format(block.line, tostring(status), wanted, text), 0)
  end
  return text
end

-- The chapter's Lua in one script, in which everything stands at the line that it has in the chapter.
local function run_lua(folder, set, blocks)
  local lines, mark = {}, '\1'
  for number, block in ipairs(blocks) do
    for _ = #lines + 1, block.line - 1 do lines[#lines + 1] = '' end
    lines[#lines + 1] = ('io.write "%s%d%s"'):format(mark, number, mark)
    for _, line in ipairs(block.lines) do lines[#lines + 1] = line end
  end
  core.write_file(folder .. '/chapter.lua', table.concat(lines, '\n') .. '\n')
  local status, text = run(folder, set, 'build/trinity chapter.lua')
  if status ~= 0 then error(text, 0) end
  for number, shown in text:gmatch '\1(%d+)\1([^\1]*)' do blocks[tonumber(number)].shown = shown end
end

--- Runs a chapter's blocks in a folder. Raises an error that names the line of the chapter where one fails or shows
--- something else than the chapter says; the number of blocks that ran, and what blocks that did not lacked.
--- `set`: variables for its commands, as the shell sets them.
function chapters.run(source, folder, set)
  set = set or ''
  local blocks, script, ran, lacked = chapters.blocks(source), {}, 0, {}
  for _, block in ipairs(blocks) do
    if not chapters.is_shown_only(block) and block.language ~= 'output' then
      ran = ran + 1
      block.lacks = missing(folder, set, block)
      if block.lacks then
        ran, lacked[#lacked + 1] = ran - 1, block.lacks
      elseif block.info:match 'file=' then
        write(folder, block)
      elseif block.language == 'sh' then
        block.shown = run_sh(folder, set, block)
      elseif block.language == 'lua' then
        script[#script + 1] = block
      else
        error(('line %d: a block of %s needs file='):format(block.line, block.language), 0)
      end
    end
  end
  if #script > 0 then run_lua(folder, set, script) end
  for i, block in ipairs(blocks) do
    if block.language == 'output' and not chapters.is_shown_only(block) then
      local before = i > 1 and blocks[i - 1]
      if not before or not (before.shown or before.lacks) then
        error(('line %d: no block ran before'):format(block.line), 0)
      end
      local difference = before.shown and chapters.difference(block, before.shown)
      if difference then error(difference, 0) end
    end
  end
  return ran, lacked
end

return chapters
