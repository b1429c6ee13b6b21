-- Rules of clients and their violations. A rule is a record { code, when, sentence, source, effect, set }:
--   when      a Lua expression over the client's values (dotted paths for nested values) that is true if the rule
--             applies; nil: always
--   sentence  what the client requires or does
--   source    position in the client, PART:LINE of the family's `parts`
--   effect    nil: refused; 'ignored' or 'changed': the client continues without an error
--   set       statements that the client then executes (also for refused values, so that one fault hides no other)
-- A record with only `set` derives values. Families are in the order in which the client checks values.

local util = require 'trinity.base.util'

local rules = {}

local helpers = { floor = math.floor, ceil = math.ceil, min = math.min, max = math.max,
  tonumber = tonumber, tostring = tostring, type = type, huge = math.huge }

--- Returns whether a is a multiple of b; true if one is missing or no number, which other rules check.
function helpers.multiple(a, b)
  if type(a) ~= 'number' or type(b) ~= 'number' or b == 0 then return true end
  return a % b == 0
end

--- Returns whether a value is missing or above zero.
function helpers.positive(value) return type(value) ~= 'number' or value > 0 end

--- Returns whether a is a number above b; false if one is missing.
function helpers.above(a, b) return type(a) == 'number' and type(b) == 'number' and a > b end

--- Returns whether a value is one of the words in a text.
function helpers.among(value, words)
  for word in words:gmatch '%S+' do if tostring(value) == word then return true end end
  return false
end

--- Returns whether a list (or a text, as a list of one) has one of the words.
function helpers.has(list, words)
  for _, entry in ipairs(type(list) == 'table' and list or { list }) do
    if helpers.among(entry, words) then return true end
  end
  return false
end

--- Returns the first entry of a list that is not among the words, or nil.
function helpers.outside(list, words)
  for _, entry in ipairs(type(list) == 'table' and list or { list }) do
    if not helpers.among(entry, words) then return entry end
  end
end

--- Returns how many of n values are given and not false.
function helpers.count(n, ...)
  local found = 0
  for i = 1, n do if select(i, ...) then found = found + 1 end end
  return found
end

function helpers.length(list) return type(list) == 'table' and #list or 0 end

local words_of_lua = {}
for word in ('and or not nil true false if then else end local for do return in'):gmatch '%S+' do
  words_of_lua[word] = true
end

-- Returns the paths that an expression reads, in order.
local function paths_of(expression)
  local list, seen = {}, {}
  local bare = expression:gsub("'[^']*'", ''):gsub('"[^"]*"', ''):gsub(':%a+', '')
  for path in bare:gmatch '[%a_][%w_.]*' do
    if not seen[path] and not words_of_lua[path] and not helpers[path] then
      seen[path] = true
      list[#list + 1] = path
    end
  end
  return list
end

local function compiled(rule, family)
  local when, set, message
  if rule[2] then when, message = loadstring('return ' .. rule[2], '=' .. family.name .. ': ' .. (rule[1] or '')) end
  if rule.set and not message then set, message = loadstring(rule.set, '=' .. family.name .. ': set') end
  if message then error(message, 0) end
  local part, line = (rule[4] or ''):match '^([%w_]+):(%d+)$'
  return { code = rule[1], when = when, text = rule[3], effect = rule[5], set = set, paths = paths_of(rule[2] or ''),
    source = part and ('%s %s:%s'):format(family.repository, family.parts[part], line) or nil,
    release = family.release }
end

local ready = setmetatable({}, { __mode = 'k' })

local function list_of(family)
  if not ready[family] then ready[family] = util.map(family.rules, function(rule) return compiled(rule, family) end) end
  return ready[family]
end

--- Applies rules to values. Returns findings { code, effect, text, source, release, paths } in the order of the rules,
--- and changes the values as the client does. `known(name)`: whether the client has this name.
---@param families table[]
---@param values table
---@param known fun(name: string): boolean
---@return table[]
function rules.check(families, values, known)
  local findings = {}
  local space = setmetatable({}, {
    __index = function(_, name)
      if helpers[name] then return helpers[name] end
      local value = values[name]
      if value == nil and not known(name) then error(("internal error: a rule reads '%s', which is no "
        .. "argument"):format(name), 0) end
      return value
    end,
    __newindex = values,
  })
  for _, family in ipairs(families) do
    for _, rule in ipairs(list_of(family)) do
      local ok, broken = true, not rule.when
      if rule.when then ok, broken = pcall(setfenv(rule.when, space)) end
      if not ok and not tostring(broken):find 'attempt to' then error(broken, 0) end
      if not ok then -- a value of the wrong type
        findings[#findings + 1] = { code = 'value-kind', effect = 'refused', source = rule.source,
          release = rule.release, paths = rule.paths,
          text = ('A value has the wrong type for this rule: %s'):format(rule.text) }
      elseif broken then
        if rule.code then
          findings[#findings + 1] = { code = rule.code, effect = rule.effect or 'refused', text = rule.text,
            source = rule.source, release = rule.release, paths = rule.paths }
        end
        if rule.set then pcall(setfenv(rule.set, space)) end
      end
    end
  end
  return findings
end

--- Returns all rules of families, for pages and tests.
function rules.list(families)
  local all = {}
  for _, family in ipairs(families) do
    for _, rule in ipairs(list_of(family)) do if rule.code then all[#all + 1] = rule end end
  end
  return all
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
---@param finding table
---@param before table<string, boolean> codes that are currently refused
---@param argument fun(path: string): { value: any, choices: any[]? }? an argument that may change
---@param try fun(path: string, value: any): table<string, boolean>? returns the codes that are refused with a value
---@return { path: string, value: any }[]
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
