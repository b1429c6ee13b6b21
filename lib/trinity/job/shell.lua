-- The part of bash that launch scripts use: assignments of texts and arrays (also +=), ${NAME}, ${NAME:-other},
-- ${ARRAY[@]}, $((...)), quotes, comments, continued lines, here documents, if, case and loops. Nothing is executed:
-- the body of a loop or a function is read once, and a condition that needs a command counts as true.

local util = require 'trinity.base.util'

local shell = {}

-- Returns where the text in a quote or bracket that begins at `at` ends.
local function closed(text, at)
  local c = text:sub(at, at)
  local last = select(2, text:find('^%$%b()', at)) or select(2, text:find('^%$%b{}', at))
  if c == "'" or c == '`' then last = text:find(c, at + 1, true) end
  if c == '"' then
    last = at + 1
    while last <= #text and text:sub(last, last) ~= '"' do
      local inner = text:sub(last, last)
      last = (inner == '\\' and last + 1 or inner == '$' and closed(text, last) or last) + 1
    end
  end
  return last or c == '$' and at or #text
end

local leads = { ['then'] = true, ['do'] = true, ['else'] = true } -- words before a command

-- Splits a text into commands: lists of raw words, split outside of quotes and brackets. Fields of a command: `after`,
-- the operator || or && before it, `pattern` of a case, and `here`, the text of a here document.
local function commands_of(text)
  local all, words, word, at, deep, tag = {}, {}, nil, 1, 0, nil
  text = ('\n' .. text:gsub('\r', '') .. '\n'):gsub('\n[ \t]*#[^\n]*', '\n') -- a comment has no continuation line
  text = text:gsub('\\\n', ' ')
  local function end_command(operator)
    if word then words[#words + 1] = word end
    if #words > 0 then all[#all + 1] = words end
    if #words > 0 or operator then words = { after = operator } end
    word = nil
  end
  while at <= #text do
    local c, last = text:sub(at, at), at
    if c == '#' and (not word or word:find '[%s(]$') then
      last = (text:find('\n', at, true) or #text) - 1
    elseif c == '\\' then
      last = at + 1
      word = (word or '') .. text:sub(at, last)
    elseif c == '"' or c == "'" or c == '`' or c == '$' then
      last = closed(text, at)
      word = (word or '') .. text:sub(at, last)
    elseif c == '(' and (deep > 0 or (word or ''):match '=$') or c == ')' and deep > 0 then
      deep, word = deep + (c == '(' and 1 or -1), (word or '') .. c
    elseif deep > 0 then
      word = (word or '') .. c
    elseif text:match('^<%a[^<>\n|&;$]*[^%s<>]>[%s"\']', at) then -- <path to data>, in published scripts
      last = text:find('>', at, true)
      word = (word or '') .. text:sub(at, last)
    elseif text:match('^<<%-?%s*["\']?([%a_]+)', at) then
      local whole
      whole, tag = text:match('^(<<%-?%s*["\']?([%a_]+)["\']?)', at)
      last = at + #whole - 1
    elseif c == '\n' and tag then
      local from, to = text:find('\n[ \t]*' .. tag .. '[ \t]*\n', at)
      words.here, last = text:sub(at, from or #text), (to or #text + 1) - 1
      end_command()
      tag = nil
    elseif c:match '[ \t]' then
      if word then words[#words + 1] = word end
      word = nil
      if #words == 1 and leads[words[1]] then end_command() end
    elseif c:match '[\n;&|()]' and not (c == '&' and (word or ''):match '[<>]$') then
      local twice = text:match('^[&|;]', at) and text:sub(at + 1, at + 1) == c
      if c == ')' and word and #words == 0 then words.pattern = true end -- of case
      end_command(twice and c ~= ';' and c or nil)
      last = twice and at + 1 or at
    else
      word = (word or '') .. c
    end
    at = last + 1
  end
  return all
end

local expand

-- Evaluates $((a * b)) of numbers; returns nil where a variable is unknown.
local function arithmetic(state, text)
  local flat = text:gsub('%$?{?([%a_][%w_]*)}?', function(name)
    local value = state.vars[name]
    return value == nil and '0' or type(value) == 'string' and value:match '^%s*-?%d+%s*$' or '?'
  end)
  local chunk = not flat:find '[^%d%s+*/%%().-]' and loadstring('return ' .. flat)
  local ok, value = pcall(chunk or error)
  return ok and type(value) == 'number' and ('%d'):format(math.floor(value)) or nil
end

-- Returns the value of ${inside}: a text, a list for a whole array, or nil.
local function variable(state, inside)
  local name, index, how, other = inside:match '^([%w_]+)(%[?[^%]:=+-]*%]?)(:?[-=+]?)(.*)$'
  if inside:match '^[@*#]$' then return inside == '#' and '0' or {} end -- a script's own arguments: none
  if not name or how == '' and other ~= '' then return nil end
  local value = state.vars[name]
  if index:match '^%[[@*]%]$' then value = type(value) == 'table' and value or { value }
  elseif type(value) == 'table' then value = value[(tonumber(index:match '%d+') or 0) + 1] end
  local missing = value == nil or how:sub(1, 1) == ':' and (value == '' or type(value) == 'table' and #value == 0)
  if how:sub(-1) == '+' then return missing and '' or expand(state, other, true) end
  if how ~= '' and missing then
    value = expand(state, other, true)
    if how:sub(-1) == '=' then state.vars[name] = value end
    return value
  end
  if value == nil and not index:find '[@*]' then state.unset[name] = true end
  return value
end

local function hidden(text) return (text:gsub('%s', '\1')) end

-- Expands a raw word to words; `one`: to a single text, without splitting. Commands and placeholders stay whole.
function expand(state, raw, one)
  local words, word, at, quoted, none = {}, nil, 1, false, false -- none: "${LIST[@]}" of an empty list
  local function add(text, split)
    if not split or one then
      word = (word or '') .. text
      return
    end
    if text:match '^%s' and word then words[#words + 1], word = word, nil end
    text = text:gsub('%$%b()', hidden):gsub('`[^`]*`', hidden):gsub('<%a[^<>]*>', hidden)
    for part, blank in text:gmatch '(%S+)(%s*)' do
      word = (word or '') .. part:gsub('\1', ' ')
      if blank ~= '' then words[#words + 1], word = word, nil end
    end
  end
  while at <= #raw do
    local c = raw:sub(at, at)
    local last = at
    local sum, name = raw:match('^%$%((%b())%)', at), nil
    if not sum then
      name = raw:match('^%$(%b{})', at) or raw:match('^%$([%a_][%w_]*)', at) or raw:match('^%$([%d@*#])', at)
    end
    if c == "'" and not quoted then
      last = closed(raw, at)
      add(raw:sub(at + 1, last - 1))
    elseif c == '"' then
      quoted, word = not quoted, word or ''
    elseif c == '\\' then
      last = at + 1
      add(raw:sub(last, last))
    elseif sum then
      last = at + #sum + 2
      add(arithmetic(state, sum) or raw:sub(at, last))
    elseif name then
      last = at + #name
      local value = variable(state, name:match '^{(.*)}$' or name)
      if type(value) == 'table' then
        none = none or #value == 0
        for i, entry in ipairs(value) do
          add(entry, not quoted)
          if i < #value and not one and word then words[#words + 1], word = word, nil end
          if i < #value and one then word = (word or '') .. ' ' end
        end
      else
        add(value or raw:sub(at, last), not quoted and value ~= nil)
      end
    elseif c == '`' or raw:match('^%$%(', at) then
      last = closed(raw, at)
      local command = raw:sub(at, last)
      local _, here = command:match '^%$%(%s*cat%s*<<%-?%s*["\']?([%w_]+)["\']?%s*\n(.*)\n%s*%1%s*%)$'
      if here then add(expand(state, here, true), not quoted)
      else add(command:match '[`(]%s*pwd' and '.' or command) end
    else
      add(c)
    end
    at = last + 1
  end
  if one then return word or '' end
  if word and not (none and word == '') then words[#words + 1] = word end
  return words
end

-- Reads 'NAME=value' and 'NAME=(words)', also with +=. Returns whether the word was an assignment.
local function assign(state, raw)
  local name, add, value = raw:match '^([%a_][%w_]*)(%+?)=(.*)$'
  if not name then return false end
  local old = state.vars[name]
  if value:match '^%(.*%)$' then
    local found = add == '+' and (type(old) == 'table' and { unpack(old) } or { old }) or {}
    for _, command in ipairs(commands_of(value:sub(2, -2):gsub('\n%s*#[^\n]*', '\n'):gsub('\n', ' '))) do
      for _, inner in ipairs(command) do
        for _, word in ipairs(expand(state, inner)) do found[#found + 1] = word end
      end
    end
    state.vars[name] = found
  else
    state.vars[name] = (add == '+' and type(old) == 'string' and old or '') .. expand(state, value, true)
  end
  return true
end

local compare = {
  ['='] = function(a, b) return a == b end, ['!='] = function(a, b) return a ~= b end,
  ['-eq'] = function(a, b) return a == b end, ['-ne'] = function(a, b) return a ~= b end,
  ['-gt'] = function(a, b) return a > b end, ['-lt'] = function(a, b) return a < b end,
  ['-ge'] = function(a, b) return a >= b end, ['-le'] = function(a, b) return a <= b end,
}
compare['=='] = compare['=']

-- Returns whether a condition [ ... ], [[ ... ]] or (( ... )) is true; true if it needs a command. Unset variables are
-- empty.
local function holds(words)
  local list, negated, plain = {}, false, (words[1] or ''):match '^%[' ~= nil
  for _, word in ipairs(words) do
    if word == '!' then negated = not negated
    elseif word:match '^%[%[?$' then plain = true
    elseif not word:match '^%]%]?$' then list[#list + 1] = word:match '^%$[%w_{]' and '' or word end
  end
  local result, by = true, compare[list[2]]
  if list[1] == '-z' then result = (list[2] or '') == ''
  elseif list[1] == '-n' then result = (list[2] or '') ~= ''
  elseif by then
    local a, b = list[1], list[3] or ''
    if list[2]:match '^%-' then a, b = tonumber(a) or 0, tonumber(b) or 0 end
    result = by(a, b)
  elseif #list <= 1 and plain then result = (list[1] or '') ~= '' end
  return result ~= negated
end

local opens = { ['if'] = true, ['elif'] = true, ['while'] = true, ['until'] = true }

-- Follows if, loops and case. Returns whether the rest of the command is reached.
local function follow(state, words, raw)
  local branches, first = state.branches, words[1]
  local top = branches[#branches]
  if opens[first] or first == 'for' or first == 'case' then
    if first ~= 'elif' then
      top = { reached = not top or top.taken, of = first == 'case' and words[2] }
      branches[#branches + 1] = top
    end
    if first == 'for' and words[4] then state.vars[words[2]] = words[4] end
    top.open, top.value = first ~= 'case', first == 'for' or opens[first] and holds { unpack(words, 2) }
    return false
  end
  if top and top.open and raw.after then
    top.value = raw.after == '|' and (top.value or holds(words)) or raw.after == '&' and top.value and holds(words)
    return false
  end
  if top and (first == 'then' or first == 'do') then
    top.open, top.taken = false, top.reached and top.value and not top.done
    top.done = top.done or top.taken
  elseif top and first == 'else' then
    top.taken = top.reached and not top.done
  elseif top and top.of and raw.pattern then
    local pattern = first:gsub('[%-.+%%]', '%%%0'):gsub('%*', '.*')
    top.taken = top.reached and not top.done and not top.of:find '%$' and top.of:match('^' .. pattern .. '$') ~= nil
    top.done = top.done or top.taken
  elseif first == 'fi' or first == 'done' or first == 'esac' then
    branches[#branches] = nil
  end
  top = branches[#branches]
  return not top or top.taken
end

-- Returns whether a command succeeds: a test or an assignment; nil if this is unknown.
local function status_of(words)
  if words[1] == '[' or words[1] == '[[' or words[#words] == ']]' then return holds(words) end
  if words[1] == 'test' then return holds { unpack(words, 2) } end
  return words[1]:match '^[%a_][%w_]*%+?=' ~= nil or nil
end

local keywords = util.set 'then else fi do done { } export exec local readonly eval time declare nohup'

-- Reads the commands of a text into a state, including the commands of `bash -c TEXT` and of a shell's here documents.
local function read_commands(state, text, depth)
  for _, raw_words in ipairs(depth < 8 and commands_of(text) or {}) do
    local plain = util.map(raw_words, function(raw)
      return raw:match '^[%a_][%w_]*%+?=' and raw or expand(state, raw, true)
    end)
    local reached, after = follow(state, plain, raw_words), raw_words.after
    if reached and after and state.status ~= nil then reached = (after == '&') == state.status end
    if reached then state.status = status_of(plain) end
    local words, skipped = {}, false
    for _, raw in ipairs(reached and raw_words or {}) do
      local redirected = not raw:match '^<%a.*>$' and raw:match '^[%d&]*[<>]+&?(.*)$' -- > file, 2>&1
      if redirected or skipped then
        skipped = redirected == ''
      elseif not (#words == 0 and (assign(state, raw) or keywords[raw])) then
        for _, word in ipairs(expand(state, raw)) do words[#words + 1] = word end
      end
    end
    local first, inner = words[1] or '', words.here
    if first == 'read' and raw_words.here then state.vars[words[#words]] = expand(state, raw_words.here, true) end
    if first == 'source' or first == '.' then
      inner = words[2] and state.load(words[2])
      if not inner then state.missing[#state.missing + 1] = table.concat(words, ' ') end
    end
    if first == 'unset' then for i = 2, #words do state.vars[words[i]] = nil end end
    for i, word in ipairs(words) do
      if word == '-c' and table.concat(words, ' ', 1, i):match 'sh%s' or word:match '%.py%s' then
        inner = word == '-c' and words[i + 1] or word
      end
    end
    if raw_words.here and (first:match 'sh$' or first:match '^sbatch' or first:match '^srun') then
      inner = raw_words.here:gsub('\\%$', '$')
    end
    if first ~= 'echo' and first ~= 'printf' then
      if inner then read_commands(state, inner, depth + 1)
      elseif #words > 0 then state.commands[#state.commands + 1] = words end
    end
  end
end

--- Returns what a script runs: { commands (lists of words), environment, unset (variables without an assignment),
--- missing (source commands without a file) }. load: returns the text of a sourced file, or nil.
function shell.read(text, load)
  local state, environment = { vars = {}, unset = {}, branches = {}, commands = {}, missing = {}, load = load }, {}
  for _, option in ipairs { { '%-%-nodes[= ](%d+)', 'SLURM_NNODES' }, { '%-N%s*(%d+)', 'SLURM_NNODES' },
    { '%-%-ntasks%-per%-node[= ](%d+)', 'SLURM_NTASKS_PER_NODE' }, { '%-%-gpus%-per%-node[= ](%d+)',
    'SLURM_GPUS_PER_NODE' }, { '%-%-gres[= ]gpu:[%a%d_]-:?(%d+)', 'SLURM_GPUS_PER_NODE' } } do
    state.vars[option[2]] = ('\n' .. text):match('\n#SBATCH%s+' .. option[1]) or state.vars[option[2]]
  end
  state.vars.SLURM_JOB_NUM_NODES = state.vars.SLURM_NNODES
  state.vars.SLURM_GPUS_ON_NODE = state.vars.SLURM_GPUS_PER_NODE
  read_commands(state, text, 0)
  for name, value in util.sorted_pairs(state.vars) do
    if type(value) == 'string' then environment[name] = value end
  end
  return { commands = state.commands, environment = environment, unset = util.sorted_keys(state.unset),
    missing = state.missing }
end

return shell
