-- The part of bash that launch scripts use: assignments of texts and arrays (also +=), export, ${NAME}, ${NAME:-other},
-- ${ARRAY[@]}, $((...)), quotes, comments, continued lines, if with comparisons. The last command that starts a
-- training program counts. Nothing is executed: loops and functions are read once, and conditions that need a command
-- count as true.

local util = require 'trinity.base.util'

local shell = {}

-- Splits a text into commands: lists of raw words, split outside of quotes and parentheses. `after` is '|' or '&' for a
-- command after || or &&.
local function commands_of(text)
  local all, words, word, at, deep, quote = {}, {}, nil, 1, 0, nil
  text = ('\n' .. text:gsub('\r', '') .. '\n'):gsub('\n[ \t]*#[^\n]*', '\n') -- a comment has no continuation line
  text = text:gsub('\\\n', ' ')
  local function end_word()
    if word then words[#words + 1] = word end
    word = nil
  end
  local function end_command(operator)
    end_word()
    if #words > 0 then all[#all + 1] = words end
    if #words > 0 or operator then words = { after = operator } end
  end
  while at <= #text do
    local c = text:sub(at, at)
    if quote then
      word = word .. c
      if c == '\\' and quote == '"' then
        at = at + 1
        word = word .. text:sub(at, at)
      elseif c == quote then
        quote = nil
      end
    elseif c == '#' and not (word and word ~= '' and not word:find '[%s(]$') then
      at = (text:find('\n', at, true) or #text) - 1
    elseif c == '"' or c == "'" then
      quote, word = c, (word or '') .. c
    elseif c == '\\' then
      word, at = (word or '') .. text:sub(at, at + 1), at + 1
    elseif c == '(' or c == '{' and (word or ''):find '%$$' then
      deep, word = deep + 1, (word or '') .. c
    elseif (c == ')' or c == '}') and deep > 0 then
      deep, word = deep - 1, (word or '') .. c
    elseif deep > 0 then
      word = word .. c
    elseif c:match '[ \t]' then
      end_word()
    elseif c:match '[\n;&|]' then
      local twice = c:match '[&|]' and text:sub(at + 1, at + 1) == c
      end_command(twice and c or nil)
      if twice then at = at + 1 end
    else
      word = (word or '') .. c
    end
    at = at + 1
  end
  return all
end

local expand

-- Evaluates $((a * b)) of numbers.
local function arithmetic(state, text)
  local flat = text:gsub('%$?{?([%a_][%w_]*)}?', function(name) return tostring(state.vars[name] or '0') end)
  if flat:find '[^%d%s+*/%%()-]' then return '$((' .. text .. '))' end
  local chunk = loadstring('return ' .. flat)
  local ok, value = pcall(chunk or error)
  return ok and type(value) == 'number' and ('%d'):format(math.floor(value)) or '$((' .. text .. '))'
end

-- Returns the value of ${inside}: a text, or a list for a whole array.
local function variable(state, inside)
  local name, index = inside:match '^([%a_][%w_]*)%[(.-)%]$'
  if name and (index == '@' or index == '*') then
    local value = state.vars[name]
    return type(value) == 'table' and value or { value }
  end
  local plain, how, other = inside:match '^([%w_]+)(:?[-=])(.*)$'
  local value = state.vars[plain or inside]
  if type(value) == 'table' then value = value[1] end
  if plain and (value == nil or how:sub(1, 1) == ':' and value == '') then return expand(state, other, true) end
  if value == nil then
    state.unset[plain or inside] = true
    return nil
  end
  return value
end

-- Expands a raw word to words; `one`: to a single text, without splitting.
function expand(state, raw, one)
  local words, word, at, quote = {}, nil, 1, nil
  local function add(text, split)
    if not split or one then
      word = (word or '') .. text
      return
    end
    if text:match '^%s' and word then words[#words + 1], word = word, nil end
    local parts = {}
    for part in text:gmatch '%S+' do parts[#parts + 1] = part end
    for i, part in ipairs(parts) do
      word = (word or '') .. part
      if i < #parts or text:match '%s$' then words[#words + 1], word = word, nil end
    end
  end
  while at <= #raw do
    local c = raw:sub(at, at)
    local sum = quote ~= "'" and raw:match('^%$%(%((.-)%)%)', at)
    local name = quote ~= "'" and (raw:match('^%${(.-)}', at) or raw:match('^%$([%a_][%w_]*)', at)
      or raw:match('^%$(%d)', at))
    if sum then
      add(arithmetic(state, sum))
      at = at + #sum + 5
    elseif name then
      at = at + #name + (raw:sub(at + 1, at + 1) == '{' and 3 or 1)
      local value = variable(state, name)
      if type(value) == 'table' then
        for i, entry in ipairs(value) do
          add(entry, not quote)
          if i < #value and not one and word then words[#words + 1], word = word, nil end
          if i < #value and one then word = (word or '') .. ' ' end
        end
      else
        add(value or '$' .. name, not quote and value ~= nil)
      end
    elseif c == quote then
      quote, at = nil, at + 1
    elseif not quote and (c == '"' or c == "'") then
      quote, at, word = c, at + 1, word or ''
    elseif c == '\\' and quote ~= "'" then
      add(raw:sub(at + 1, at + 1))
      at = at + 2
    else
      add(c)
      at = at + 1
    end
  end
  if one then return word or '' end
  if word then words[#words + 1] = word end
  return words
end

-- Reads 'NAME=value' and 'NAME=(words)', also with +=. Returns whether the word was an assignment.
local function assign(state, raw)
  local name, add, value = raw:match '^([%a_][%w_]*)(%+?)=(.*)$'
  if not name then return false end
  local found
  if value:match '^%(.*%)$' then
    found = {}
    for _, command in ipairs(commands_of(value:sub(2, -2):gsub('\n', ' '))) do
      for _, inner in ipairs(command) do
        for _, word in ipairs(expand(state, inner)) do found[#found + 1] = word end
      end
    end
    if add == '+' then
      local old = state.vars[name]
      local list = type(old) == 'table' and { unpack(old) } or { old }
      for _, word in ipairs(found) do list[#list + 1] = word end
      found = list
    end
  else
    found = expand(state, value, true)
    if add == '+' and type(state.vars[name]) == 'string' then found = state.vars[name] .. found end
  end
  state.vars[name] = found
  return true
end

local compare = {
  ['='] = function(a, b) return a == b end,
  ['=='] = function(a, b) return a == b end,
  ['!='] = function(a, b) return a ~= b end,
  ['-eq'] = function(a, b) return tonumber(a) == tonumber(b) end,
  ['-ne'] = function(a, b) return tonumber(a) ~= tonumber(b) end,
  ['-gt'] = function(a, b) return (tonumber(a) or 0) > (tonumber(b) or 0) end,
  ['-lt'] = function(a, b) return (tonumber(a) or 0) < (tonumber(b) or 0) end,
  ['-ge'] = function(a, b) return (tonumber(a) or 0) >= (tonumber(b) or 0) end,
  ['-le'] = function(a, b) return (tonumber(a) or 0) <= (tonumber(b) or 0) end,
}

-- Returns whether a condition [ ... ] or [[ ... ]] is true; true if it needs a command. Unset variables are empty.
local function holds(words)
  local list, negated = {}, false
  for _, word in ipairs(words) do
    if word == '!' then negated = not negated
    elseif not word:match '^%[%[?$' and not word:match '^%]%]?$' then
      list[#list + 1] = word:match '^%$' and '' or word
    end
  end
  local result = true
  if list[1] == '-z' then result = (list[2] or '') == ''
  elseif list[1] == '-n' then result = (list[2] or '') ~= ''
  elseif compare[list[2]] then result = compare[list[2]](list[1], list[3] or '')
  elseif #list == 1 and words[1]:match '^%[' then result = list[1] ~= '' end
  return result ~= negated
end

-- Follows if, elif, else and fi. Returns whether the rest of the command is reached, and where it begins.
local function follow(state, words, after)
  local branches, first = state.branches, words[1]
  local top = branches[#branches]
  if first == 'if' or first == 'elif' then
    if first == 'if' then
      top = { reached = not top or top.taken }
      branches[#branches + 1] = top
    end
    top.open, top.value = true, holds { unpack(words, 2) }
    return false
  end
  if top and top.open and after then
    local value = holds(words)
    top.value = after == '|' and (top.value or value) or after == '&' and top.value and value
    return false
  end
  if top and first == 'then' then
    top.open, top.taken = false, top.reached and top.value and not top.done
    top.done = top.done or top.taken
  elseif top and first == 'else' then
    top.taken = top.reached and not top.done
  elseif first == 'fi' then
    branches[#branches] = nil
  end
  top = branches[#branches]
  return not top or top.taken
end

local keywords = { ['then'] = true, ['else'] = true, ['fi'] = true, ['do'] = true, ['export'] = true, ['exec'] = true,
  ['local'] = true, ['readonly'] = true, ['eval'] = true, ['time'] = true, ['declare'] = true }

local programs = { 'pretrain[%w_]*%.py$', 'finetune[%w_]*%.py$', '^deepspeed$', 'torchtitan[%w_./]*train%.py$',
  '^torchtitan[%w_.]*train$', 'run_train%.sh$' }

-- Returns the index of the training program's name in a command, or nil.
local function program_at(words)
  for i, word in ipairs(words) do
    for _, pattern in ipairs(programs) do if word:match(pattern) then return i end end
  end
end

-- Reads the commands of a text into a state, including those of `bash -c TEXT`.
local function read_commands(state, text)
  for _, raw_words in ipairs(commands_of(text)) do
    local reached = follow(state, util.map(raw_words, function(raw)
      return raw:match '^[%a_][%w_]*%+?=' and raw or expand(state, raw, true)
    end), raw_words.after)
    local rest = {}
    for _, raw in ipairs(reached and raw_words or {}) do
      local leading = #rest == 0
      if not (leading and (assign(state, raw) or keywords[raw])) then
        for _, word in ipairs(expand(state, raw)) do rest[#rest + 1] = word end
      end
    end
    for i, word in ipairs(rest) do
      if word == '-c' and (rest[i - 1] or ''):match 'sh$' and rest[i + 1] then read_commands(state, rest[i + 1]) end
    end
    local at = program_at(rest)
    if at then state.launched, state.before = { unpack(rest, at) }, { unpack(rest, 1, at - 1) } end
  end
end

--- Returns what a script launches: { words (the program's name first; nil if none was found), launcher (words before),
--- environment, unset (variables that are not assigned) }.
---@param text string
---@return table
function shell.read(text)
  local state, environment = { vars = {}, unset = {}, branches = {}, before = {} }, {}
  local nodes = text:match '\n#SBATCH%s+%-%-nodes=(%d+)' or text:match '\n#SBATCH%s+%-N%s+(%d+)'
  for _, name in ipairs { 'SLURM_NNODES', 'SLURM_JOB_NUM_NODES' } do state.vars[name] = nodes end
  read_commands(state, text)
  for name, value in util.sorted_pairs(state.vars) do
    if type(value) == 'string' then environment[name] = value end
  end
  return { words = state.launched, launcher = state.before, environment = environment,
    unset = util.sorted_keys(state.unset) }
end

return shell
