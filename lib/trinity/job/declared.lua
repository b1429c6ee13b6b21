-- Clients that records alone define: nanotron, bridge (Megatron-Bridge), foundry (LLM Foundry), mlperf (environment
-- variables of NVIDIA's submissions to MLPerf). Further records in their rules:
--
--   @client, @runtime, @release, @parser   fields of the client
--   @undeclared PLACE EFFECT               effect of an undeclared key of the outermost keys or of sections
--   @gpus EXPRESSION                       number of GPUs, over the file's values
--   @means PATH EXPRESSION                 field of the job, over the values after the rules

local arguments = require 'trinity.job.arguments'
local rules = require 'trinity.job.rules'
local util = require 'trinity.base.util'

-- Returns a value with ${path} as the value at that path of the tree (OmegaConf).
local function resolved(value, tree)
  if type(value) == 'table' then
    local copy = {}
    for key, entry in util.sorted_pairs(value) do copy[key] = resolved(entry, tree) end
    return copy
  end
  local path, found = type(value) == 'string' and value:match '^%${([%w_.]+)}$', tree
  if not path then return value end
  for part in path:gmatch '[^.]+' do found = type(found) == 'table' and found[part] or nil end
  return found
end

local ready = {}

--- Returns the client of records/NAME_arguments.txt and records/NAME_rules.txt.
return function(name)
  if ready[name] then return ready[name] end
  local text = arguments.records(name .. '_rules'):gsub('\n%s+', ' ')
  local function said(word) return text:match('@' .. word .. ' ([^\n]+)') end
  local reader = { client = said 'client', runtime = said 'runtime', release = said 'release', parser = said 'parser',
    rules = { name }, declared = arguments.declare(name), base = {} }
  function reader.undeclared(_, section) return said('undeclared ' .. (section == '' and 'outermost' or 'sections')) end
  function reader.read(job, tree)
    arguments.read(job, resolved(tree, tree))
    job.gpus_said = said 'gpus' and rules.value(reader, arguments.space(job), said 'gpus')
  end
  function reader.meaning(job, values)
    for path, expression in text:gmatch '@means (%S+) ([^\n]+)' do
      arguments.put(job, path, rules.value(reader, values, expression))
    end
  end
  ready[name] = reader
  return reader
end
