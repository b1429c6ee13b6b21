-- A replication as a strategy's file has it: its synchronisation, how many replicas, and its options by name:
--   daso replicas=8 held.global_skips=4 held.local_skips=1 max_global_skips=8

local util = require 'trinity.base.util'

local replication_text = {}

-- The options of a synchronisation as its constructor takes them.
local function options_of(way)
  if way.kind == 'daso' then return way.options end
  local options = {}
  for key, value in util.sorted_pairs(way) do
    if key ~= 'kind' and key ~= 'text' then options[key] = value end
  end
  return options
end

local function add_words(words, prefix, options)
  for key, value in util.sorted_pairs(options) do
    if type(value) == 'table' then
      add_words(words, prefix .. key .. '.', value)
    else
      local text = type(value) == 'number' and ('%.17g'):format(value) or tostring(value)
      words[#words + 1] = ('%s%s=%s'):format(prefix, key, text)
    end
  end
end

--- The text of what trinity.synchronisation.replicate gave.
function replication_text.write(run)
  local words = { run.synchronisation.kind, 'replicas=' .. run.replicas }
  add_words(words, '', options_of(run.synchronisation))
  return table.concat(words, ' ')
end

local kinds = { bsp = true, parameter_server = true, local_sgd = true, daso = true }

local function value_of(text)
  if text == 'true' or text == 'false' then return text == 'true' end
  return tonumber(text) or text
end

--- The synchronisation of such a text, by `ways` (trinity.synchronisation), and the number of replicas. Raises an error
--- when it is none.
function replication_text.read(text, ways)
  local kind, rest = text:match '^([%w_]+)(.*)$'
  if not kinds[kind] then util.fail('expected a replication, got %s', util.quoted(text)) end
  local options = {}
  for word in rest:gmatch '%S+' do
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
  return ways[kind](options), replicas
end

return replication_text
