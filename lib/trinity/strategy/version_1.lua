-- What strategy files of version 1 have as text among their notes: splits, and how copies are kept together.

local util = require 'trinity.base.util'

local version_1 = {}

--- Splits: a line an operator, its name, factors and devices between tabs.
function version_1.splits(text)
  local given = {}
  for line in text:gmatch '[^\n]+' do
    local name, split = line:match '^[^\t]*', {}
    for key, value in line:gmatch '\t([^=\t]+)=([%d,]+)' do
      split[key] = tonumber(value)
      if key == 'devices' then
        split[key] = {}
        for number in value:gmatch '%d+' do table.insert(split[key], tonumber(number)) end
      end
    end
    given[name] = split
  end
  return given
end

local function value_of(text)
  if text == 'true' or text == 'false' then return text == 'true' end
  return tonumber(text) or text
end

--- Replication: daso replicas=8 held.global_skips=4 max_global_skips=8
function version_1.replication(text)
  local kind, rest = text:match '^([%w_]+)(.*)$'
  local options = {}
  for word in (rest or ''):gmatch '%S+' do
    local name, value = word:match '^([%w_.]+)=(%S+)$'
    if not name then util.fail('expected name=value in a replication, got %s', util.quoted(word)) end
    local outer, key = name:match '^([%w_]+)%.([%w_]+)$'
    if outer then
      options[outer] = type(options[outer]) == 'table' and options[outer] or {}
      options[outer][key] = value_of(value)
    else
      options[name] = value_of(value)
    end
  end
  local replicas = options.replicas
  options.replicas = nil
  return { kind = kind, replicas = replicas, options = options }
end

return version_1
