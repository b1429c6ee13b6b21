-- Do the specs bite? Changes one token of the library at random, runs the specs of its room, and lists what none
-- notices. Every mutant of equivalent.txt (beside this) changes nothing that a spec could see. Use:
--   scripts/bootstrap test mutants [COUNT [SEED [ROOM]]]    60, 1, all
-- The library is changed in a copy. A spec that takes too long has noticed. Not a part of the whole run.

local core = require 'trinity.core'
local trinity = require 'trinity'
local util = require 'trinity.base.util'

local home, list = core.home, dofile(core.home .. '/tests/mutants/rooms.lua')
local count, seed, only = tonumber(arg[1]) or 60, tonumber(arg[2]) or 1, arg[3]
local stream = trinity.random(seed, 'mutants')

local swaps = { ['=='] = '~=', ['~='] = '==', ['<='] = '<', ['>='] = '>', ['<'] = '<=', ['>'] = '>=',
  ['+'] = '-', ['-'] = '+', ['*'] = '/', ['/'] = '*', ['and'] = 'or', ['or'] = 'and',
  ['true'] = 'false', ['false'] = 'true', ['not'] = '' }
local tokens = { '^%-%-.*', "^'.-'", '^%[%[.-%]%]', '^[%a_][%w_]*', '^%d[%w.]*', '^[=~<>]=', '^%.%.%.?', '^[-+*/<>]',
  '^.' }

--- The token of a line at a place.
local function token_at(line, at)
  for _, pattern in ipairs(tokens) do
    local token = line:sub(at):match(pattern)
    if token then return token end
  end
end

--- Adds the mutants of a line: { from, to } texts of the whole line.
local function add_mutants(line, add)
  local at, before = 1, nil
  while at <= #line do
    local token = token_at(line, at)
    local function put(text) add(line:sub(1, at - 1) .. text .. line:sub(at + #token)) end
    local sign = token == '-' and (not before or before:find '^[=,({<>]' or before == 'return')
    if swaps[token] and not sign then put(swaps[token]) end
    if token:find '^%d+$' then put(tostring(tonumber(token) + 1)) end
    if not token:find '^%s' then before = token end
    at = at + #token
  end
  local head, condition, tail = line:match '^(%s*e?l?s?e?if )(.*)( then.*)$'
  if head then add(head .. 'not (' .. condition .. ')' .. tail) end
  if line:find '^%s+[%a_][%w_.:%[%]]* = [^{]*[^,{(]$' or line:find '^%s+[%a_][%w_.:]*%(.*%)$' then
    add((line:gsub('^(%s*).*$', '%1-- dropped')))
  end
end

local function lines_of(text)
  local lines = {}
  for line in text:gmatch '([^\n]*)\n' do lines[#lines + 1] = line end
  return lines
end

--- All mutants of a file; its long texts stay.
local function mutants_of(path, room)
  local all, lines, in_text = {}, lines_of(core.read_file(home .. '/' .. path)), false
  for number, line in ipairs(lines) do
    if line:find '%[%[[^%]]*$' then in_text = true end
    if not in_text and not line:find '^%s*%-%-' and not line:find 'require' then
      add_mutants(line, function(changed)
        all[#all + 1] = { path = path, room = room, number = number, from = line, to = changed }
      end)
    end
    if line:find '%]%]' then in_text = false end
  end
  return all
end

--- A file's text with a mutant in it; nil where that is no Lua.
local function text_with(mutant)
  local lines = lines_of(core.read_file(home .. '/' .. mutant.path))
  lines[mutant.number] = mutant.to
  local text = table.concat(lines, '\n') .. '\n'
  return loadstring(text) and text
end

local function command(text) return os.execute(text) == 0 end

--- A copy of the library, and links to all else.
local function make_copy()
  local folder = os.tmpname()
  os.remove(folder)
  command(("mkdir '%s' && cp -r '%s/lib' '%s/lib'"):format(folder, home, folder))
  for _, name in ipairs(core.list_folder(home)) do
    if name ~= 'lib' then command(("ln -s '%s/%s' '%s/%s'"):format(home, name, folder, name)) end
  end
  return folder
end

local program = io.popen('readlink -f /proc/$PPID/exe'):read '*l'

--- Whether a spec fails on the library of a copy.
local function fails(copy, spec)
  return not command(("cd '%s' && TRINITY_HOME='%s' TRINITY_FIRST=1 timeout -k 5 %d '%s' tests/lua/run.lua %s "
    .. ">'%s/log' 2>&1 </dev/null"):format(copy, copy, list.most_seconds, program, spec, copy))
end

local sound = {} -- specs that pass on the library as it is

--- The first spec of its room that fails on a mutant; nil where none does.
local function noticed(copy, mutant)
  for _, spec in ipairs(list.rooms[mutant.room]) do
    if not sound[spec] and fails(copy, spec) then error(("spec '%s' fails without any mutant"):format(spec), 0) end
    sound[spec] = true
    core.write_file(copy .. '/' .. mutant.path, mutant.text)
    local failed = fails(copy, spec)
    core.write_file(copy .. '/' .. mutant.path, core.read_file(home .. '/' .. mutant.path))
    if failed then return spec end
  end
end

local function told(mutant)
  return ('%s: %s -> %s'):format(mutant.path, mutant.from:match '^%s*(.-)$', mutant.to:match '^%s*(.-)$')
end

local all = {}
for _, room in ipairs(util.sorted_keys(list.rooms)) do
  for _, file in ipairs(core.list_folder(home .. '/lib/trinity/' .. room)) do
    if file:find '%.lua$' and (not only or only == room) then
      for _, mutant in ipairs(mutants_of(('lib/trinity/%s/%s'):format(room, file), room)) do all[#all + 1] = mutant end
    end
  end
end
local known = core.read_file(home .. '/tests/mutants/equivalent.txt')
local copy, killed, survived, equivalent = make_copy(), 0, 0, 0
while killed + survived + equivalent < count and #all > 0 do
  local mutant = table.remove(all, stream:integer(#all))
  mutant.text = text_with(mutant)
  if mutant.text then
    local start, same = core.clock_s(), known:find(told(mutant) .. '\n', 1, true)
    local spec = not same and noticed(copy, mutant)
    if spec then killed = killed + 1 elseif same then equivalent = equivalent + 1 else survived = survived + 1 end
    local fate = spec and 'killed    ' or same and 'equivalent' or 'SURVIVED  '
    print(('%s  line %d of %s  (%s%.0f s)'):format(fate, mutant.number, told(mutant), spec and spec .. ', ' or '',
      core.clock_s() - start))
    io.stdout:flush()
  end
end
command(("rm -rf '%s'"):format(copy)) -- links are removed, not followed
print(('%d passed, %d failed, %d skipped'):format(killed, survived, equivalent))
os.exit(survived == 0 and 0 or 1)
