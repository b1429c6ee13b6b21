-- Rules of clients and their violations. The rules of a client are records in files (records/NAME_rules.txt), in the
-- order in which the client checks values:
--
--   CODE [EFFECT] PART:LINE EXPRESSION | SENTENCE [=> STATEMENTS]
--
--   EFFECT      ignored or changed: the client continues without an error; without it the client refuses the value
--   PART:LINE   position in the client: a file by a record '@part PART PATH' (or REPOSITORY@COMMIT:PATH), and a line
--   EXPRESSION  Lua over the client's values (dotted paths for nested values), true if the rule is broken
--   SENTENCE    what the client requires or does
--   STATEMENTS  what the client then executes (also for refused values, so that one fault hides no other)
--
-- A line that begins with a blank continues the previous one. A record => STATEMENTS derives values.

local arguments = require 'trinity.job.arguments'
local util = require 'trinity.base.util'

local rules = {}

-- Names that every client has: of the job, not of its file.
local base = { gpus = 'gpus', given = '', capability = '' }

local helpers = { floor = math.floor, ceil = math.ceil, min = math.min, max = math.max,
  tonumber = tonumber, tostring = tostring, type = type }

--- Returns whether a is a multiple of b; true if one is missing or no number, which other rules check.
function helpers.multiple(a, b)
  if type(a) ~= 'number' or type(b) ~= 'number' or b == 0 then return true end
  return a % b == 0
end

--- Returns whether a value is missing or above zero.
function helpers.positive(value) return type(value) ~= 'number' or value > 0 end

--- Returns whether a is a number above b; false if one is missing.
function helpers.above(a, b) return type(a) == 'number' and type(b) == 'number' and a > b end

function helpers.among(value, words)
  for word in words:gmatch '%S+' do if tostring(value) == word then return true end end
  return false
end

--- Returns whether a list (or a text, as a list of one) has one of the words.
function helpers.has(list, words)
  return util.find(type(list) == 'table' and list or { list }, function(entry)
    return helpers.among(entry, words)
  end) ~= nil
end

--- Returns the first entry of a list that is not among the words, or nil.
function helpers.outside(list, words)
  return util.find(type(list) == 'table' and list or { list }, function(entry)
    return not helpers.among(entry, words)
  end)
end

--- Returns how many of n values are given and not false.
function helpers.count(n, ...)
  local found = 0
  for i = 1, n do if select(i, ...) then found = found + 1 end end
  return found
end

--- Returns the kind of every entry of a list: 'positive' for a number above zero, or its type.
function helpers.kinds(list)
  return util.map(type(list) == 'table' and list or {}, function(entry)
    return type(entry) == 'number' and entry > 0 and 'positive' or type(entry)
  end)
end

function helpers.length(list) return type(list) == 'table' and #list or 0 end

local words_of_lua = util.set 'and or not nil true false if then else elseif end local for do return in'

-- Returns the paths that an expression reads, in order.
local function paths_of(expression)
  local list, seen = {}, {}
  local bare = expression:gsub("given%('([^']*)'%)", '%1'):gsub("'[^']*'", ''):gsub('"[^"]*"', ''):gsub(':%a+', '')
  for path in bare:gmatch '[%a_][%w_.]*' do
    if not seen[path] and not words_of_lua[path] and not helpers[path] then
      seen[path] = true
      list[#list + 1] = path
    end
  end
  return list
end

local function chunk(text, what)
  local compiled, message = loadstring(text, '=' .. what)
  return compiled or error(message, 0)
end

-- Returns the rules of a client, and the paths that each derived name depends on.
local function read(client)
  local list, derived, short, parts = {}, {}, {}, {}
  local texts = table.concat(util.map(client.rules, function(name) return arguments.records(name .. '_rules') end))
  local function resolved(path)
    local name, rest = path:match '^([%w_]+)(.*)$'
    return short[name] and short[name] .. rest or path
  end
  local repository = texts:match '@repository (%S+)'
  for part, path in texts:gmatch '@part (%S+) (%S+)' do parts[part] = path end
  for line in texts:gsub('\n%s+', ' '):gsub('\n@[^\n]*', ''):gsub('^@[^\n]*\n', ''):gmatch '[^\n]+' do
    local what, set = client.client .. ': ' .. line, line:match '=> (.*)$'
    local rest = set and line:match '^(.-)%s*=> ' or line
    local rule = { release = client.release, paths = {}, set = set and chunk(set, what) }
    local code, effect, part, at, expression, sentence = rest:match '^(%S+) ?(%a*) ([%w_]+):(%d+) (.-) | (.*)$'
    if code then
      rule.code, rule.effect, rule.text = code, effect ~= '' and effect or 'refused', sentence
      rule.paths = util.map(paths_of(expression), resolved)
      rule.when = chunk('return ' .. expression, what)
      local other, commit, path = parts[part]:match '^(%S+)@(%x+):(.*)$'
      rule.source, rule.release = ('%s %s:%s'):format(other or repository, path or parts[part], at),
        commit or client.release
    elseif rest ~= '' then
      error(('%s: expected CODE PART:LINE EXPRESSION | SENTENCE, got %s'):format(client.client, rest), 0)
    end
    list[#list + 1] = rule
    for statement in (set or ''):gmatch '[^;]+' do
      local name, path = statement:match '^%s*([%w_]+) = ([%a_][%w_.]*)%s*$'
      if name and client.declared.sections[path] or name and client.declared.keys[path] then
        short[name] = not derived[name] and path or nil
      end
      for names in statement:gmatch '([%a_][%w_, ]-)%s*=[^=]' do
        for other in (names:match '[%w_]+, [%w_]+$' or names:match '[%w_]+$'):gmatch '[%w_]+' do
          derived[other], short[other] = derived[other] or {}, short[other] == path and path or nil
          for _, from in ipairs(util.map(paths_of(statement), resolved)) do table.insert(derived[other], from) end
          for _, from in ipairs(rule.paths) do table.insert(derived[other], from) end
        end
      end
    end
  end
  return list, derived
end

local ready = setmetatable({}, { __mode = 'k' })

--- Returns the rules of a client { code, effect, text, when, set, paths, source, release }, and the paths that each
--- derived name depends on.
function rules.of(client)
  if not ready[client] then ready[client] = { read(client) } end
  return unpack(ready[client])
end

-- Returns the values as the space of expressions.
local function space_of(client, values)
  local declared, derived = client.declared, select(2, rules.of(client))
  return setmetatable({}, {
    __index = function(_, name)
      local value = values[name]
      if value == nil then value = helpers[name] or client.functions and client.functions[name] end
      if value == nil and not (declared.keys[name] or declared.sections[name] or derived[name] or base[name]
        or client.base[name]) then
        error(("internal error: a rule reads '%s', which is no argument"):format(name), 0)
      end
      return value
    end,
    __newindex = values,
  })
end

--- Returns the value of an expression over values, or nil if it cannot be computed.
function rules.value(client, values, expression)
  local ok, value = pcall(setfenv(chunk('return ' .. expression, expression), space_of(client, values)))
  if ok then return value end
end

--- Applies the rules of a client to values. Returns findings { code, effect, text, source, release, paths } in the
--- order of the rules, and changes the values as the client does.
function rules.check(client, values)
  local findings, space = {}, space_of(client, values)
  for _, rule in ipairs(rules.of(client)) do
    local ok, broken = true, not rule.when
    if rule.when then ok, broken = pcall(setfenv(rule.when, space)) end
    if not ok and not tostring(broken):find 'attempt to' then error(broken, 0) end
    if rule.code and (not ok or broken) then
      local finding = util.picked(rule, { 'code', 'effect', 'text', 'source', 'release', 'paths' })
      findings[#findings + 1] = util.merged(finding, not ok and { code = 'value-kind', effect = 'refused',
        text = ('A value has the wrong type for this rule: %s'):format(rule.text) })
    end
    if ok and broken and rule.set then pcall(setfenv(rule.set, space)) end
  end
  return findings
end

--- Returns the arguments that a rule reads, directly or through derived values.
function rules.arguments(client, paths)
  local _, derived = rules.of(client)
  local list, seen = {}, {}
  local function add(path)
    if seen[path] or (client.functions or {})[path] then return end
    seen[path] = true
    local name = path:match '^[^.]+'
    local declared = client.declared.keys[path] or client.declared.sections[name]
    local from = not declared and (derived[name] or { base[name] or client.base[name] }) or {}
    if declared or path == 'gpus' or #from == 0 then list[#list + 1] = path end
    for _, other in ipairs(from) do if other ~= '' then add(other) end end
  end
  for _, path in ipairs(paths) do add(path) end
  return list
end

-- Returns values near a given one, nearest first.
local function candidates(value, choices, spread)
  local list = {}
  if choices then
    for _, choice in ipairs(choices) do if choice ~= value then list[#list + 1] = choice end end
    return list
  end
  if type(value) == 'boolean' or value == nil then return { not value } end
  if type(value) ~= 'number' or value % 1 ~= 0 then return list end
  local seen = { [value] = true }
  local function add(n)
    if n >= 1 and not seen[n] then
      seen[n] = true
      list[#list + 1] = n
    end
  end
  for step = 1, spread do
    add(value - step)
    add(value + step)
  end
  for shift = 0, 20 do add(2 ^ shift) end
  for factor = 2, 9 do
    add(math.floor(value / factor))
    add(value * factor)
  end
  table.sort(list, function(a, b)
    local da, db = math.abs(a - value), math.abs(b - value)
    if da ~= db then return da < db end
    return a < b
  end)
  return list
end

--- Returns the nearest values of arguments that fix a finding and break no other rule: a list of { path, value }, at
--- most two per argument.
function rules.nearest(finding, before, argument, try)
  local found = {}
  for _, path in ipairs(finding.paths) do
    local known, kept = argument(path), 0
    for _, candidate in ipairs(known and candidates(known.value, known.choices, 24) or {}) do
      local after = try(path, candidate)
      local worse = not after or after[finding.code]
      for code in util.sorted_pairs(after or {}) do worse = worse or not before[code] end
      if not worse then
        found[#found + 1] = { path = path, value = candidate }
        kept = kept + 1
      end
      if kept == 2 then break end
    end
  end
  return found
end

return rules
