-- trinity.job: reads a job file of training software (the client) as model, mesh, batches, precision, recomputation and
-- overlaps, and reports what the client refuses, ignores or changes. Each client has a module (megatron, torchtitan,
-- deepspeed, nanotron, bridge) and families of rules in rules/.

local check = require 'trinity.base.check'
local json = require 'trinity.base.json'
local options_of = require 'trinity.base.options'
local rules = require 'trinity.job.rules'
local shell = require 'trinity.job.shell'
local toml = require 'trinity.job.toml'
local util = require 'trinity.base.util'
local yaml = require 'trinity.job.yaml'

local job = {}

local takes = options_of.declare('trinity.JobFileOptions', { help = 'Options of trinity.job.',
  { 'gpus', 'integer', least = 1, most = 2 ^ 30, otherwise = 'from the file', help = 'number of GPUs of the job' },
  { 'launch', 'string', otherwise = 'none', help = "command line that launches the job, with the degrees of "
    .. "DeepSpeed" },
  { 'capability', 'number', 9, help = 'compute capability of the GPUs (Hopper: 9, Blackwell: 10)' },
})

local function client(name) return require('trinity.job.' .. name) end

-- Returns the file that the arguments of a launched program name.
local function config_of(words)
  for i, word in ipairs(words) do
    local name, value = word:match '^%-%-([%w_.]+)=?(.*)$'
    if name == 'deepspeed_config' or name == 'deepspeed' or name == 'job.config_file' then
      local file = value ~= '' and value or words[i + 1]
      if file and file:match '%.%w+$' then return file end
    end
  end
end

-- Returns the client of a file, by its extension and content, and the function that reads it.
local function reader_of(path, text)
  local extension = path:match '%.(%w+)$'
  if extension == 'toml' then
    return client 'torchtitan', function(found) client('torchtitan').read(found, toml.read(text, path), text) end
  end
  if extension == 'json' then
    -- Hjson, as DeepSpeed reads it: comments, and commas before a closing bracket.
    local plain = ('\n' .. text):gsub('\n%s*//[^\n]*', '\n'):gsub('\n%s*#[^\n]*', '\n'):gsub(',(%s*[%]}])', '%1'):sub(2)
    return client 'deepspeed', function(found)
      local tree, deepspeed = json.decode(plain, path), client 'deepspeed'
      local known, any = false, nil
      for key in util.sorted_pairs(type(tree) == 'table' and tree or {}) do
        known, any = known or deepspeed.known(key), any or key
      end
      if any and not known then
        util.fail("%s: expected arguments of DeepSpeed, such as train_batch_size, got none of them ('%s' and others)",
          path,
          tostring(any))
      end
      deepspeed.read(found, tree)
    end
  end
  if extension == 'yaml' or extension == 'yml' then
    local map, repeated = yaml.read(text, path)
    if map.MODEL_ARGS then
      return client 'megatron', function(found) client('megatron').read_yaml(found, map, repeated) end
    end
    if map.parallelism then
      return client 'nanotron', function(found) client('nanotron').read(found, yaml.value(map)) end
    end
    if map.model or map.train then
      return client 'bridge', function(found) client('bridge').read(found, yaml.value(map)) end
    end
    util.fail('%s: expected MODEL_ARGS (Megatron-LM), parallelism (nanotron), or model and train (Megatron-Bridge)',
      path)
  end
  local script = shell.read(text)
  if not script.words then util.fail('%s: expected a command that starts pretrain_*.py', path) end
  local config = config_of(script.words)
  if config and not script.words[1]:match 'pretrain' then
    local folder = config:match '^/' and '' or path:match '^(.*/)' or ''
    local reader, read = reader_of(folder .. config, util.read_file(folder .. config))
    return reader, function(found)
      found.launch = table.concat(script.launcher, ' ') .. ' ' .. table.concat(script.words, ' ')
      read(found)
    end
  end
  return client 'megatron', function(found) client('megatron').read_shell(found, script) end
end

-- Returns the arguments of a finding: those that its rule reads, directly or through derived values.
local function paths_of(reader, paths)
  local list, seen = {}, {}
  local function add(path)
    if not seen[path] then list[#list + 1] = path end
    seen[path] = true
  end
  for _, path in ipairs(paths) do
    local from = reader.derived[path]
    if not from then add(path) end
    for name in (from or ''):gmatch '%S+' do add(name) end
  end
  return list
end

-- Returns the names of those that were given, or the first one if none was.
local function arguments_of(found, paths)
  local given, all = {}, {}
  for _, path in ipairs(paths) do
    local argument = found.reader.argument(found, path)
    if argument then all[#all + 1] = argument end
    if argument and argument.given then given[#given + 1] = argument end
  end
  if #given == 0 then given = { all[1] or { name = paths[1] } } end
  return util.map(given, function(argument)
    local plain = type(argument.value) ~= 'table' and argument.value
    return { name = argument.name, value = plain or nil }
  end)
end

--- Runs the rules on the values and stores findings and meaning in the job.
---@param found table
---@return trinity.JobFile
function job.settle(found)
  local reader = found.reader
  local values = reader.space(found)
  local findings = rules.check(reader.families(), values, reader.known)
  found.findings, found.legal = {}, true
  for _, list in ipairs { found.faults, findings } do
    for _, finding in ipairs(list) do
      local paths = paths_of(reader, finding.paths)
      found.findings[#found.findings + 1] = util.merged(finding, { paths = paths,
        arguments = arguments_of(found, paths) })
      found.legal = found.legal and finding.effect ~= 'refused'
    end
  end
  found.unknown = { unpack(found.unread) }
  found.settled = values
  found.model, found.mesh = {}, {}
  local ok, why = pcall(reader.meaning, found, values)
  if not ok and found.legal then error(why, 0) end -- values of a refused file may be meaningless
  for _, name in ipairs(util.sorted_keys(found.mesh)) do
    if type(found.mesh[name]) == 'string' then found.mesh[name] = nil end
  end
  return found
end

---@class trinity.JobFile
---@field client string
---@field runtime string a runtime of trinity.cluster
---@field release string commit of the client whose rules are applied
---@field gpus? integer
---@field model table layers, hidden, heads, ...; nil if the file does not give them
---@field mesh table tensor, pipeline, virtual_stages, context, expert, expert_tensor, data, sequence_parallel
---@field micro_batch? integer
---@field global_batch? integer
---@field micro_batches? integer
---@field rank_order? string[] axes of the mesh from the innermost, of Megatron-LM
---@field precision? string
---@field recompute? string|table
---@field zero_stage? integer
---@field distributed_optimizer? boolean
---@field overlaps? table
---@field offload? table
---@field unknown string[] settings that were not understood
---@field findings table[] refused, ignored or changed settings: code, effect, arguments, text, source, release
---@field legal boolean true: the client accepts the file
---@field path string
---@field stages? integer[] layers of every virtual stage
---@field reader table the module of its client
---@field words? string[] arguments of the launched program
---@field values table given values, by the client's names
---@field given table<string, string> the argument by which a value was given
---@field settled table values after the client's defaults and changes
---@field environment? table<string, string>
---@field environment_known? boolean true: the file sets the environment
---@field unset? string[] variables of a script without an assignment
---@field gpus_said? integer number of GPUs in the file
---@field capability number compute capability of the GPUs
---@field faults table[] findings of the parser, before the rules
---@field unread string[] settings that the parser did not understand

--- Reads a job file: Megatron-LM's YAML or launch script, torchtitan's TOML, DeepSpeed's JSON, or YAML of nanotron or
--- Megatron-Bridge; or a list of Megatron-LM's arguments. Raises an error if the file is of no known client. Example:
--- `trinity.job('pretrain.sh', { gpus = 64 }).legal`
---@param source string|string[]
---@param options? table gpus, launch, capability
---@return trinity.JobFile
function job.read(source, options)
  local given = takes:read('trinity.job', 2, 'options', options or {})
  local found = { faults = {}, unread = {}, capability = given.capability, launch = given.launch }
  if type(source) == 'table' then
    for _, word in ipairs(source) do
      if type(word) ~= 'string' then check.wrong('trinity.job', 1, 'source', source,
        'a path or a list of arguments') end
    end
    found.path, found.reader, found.environment = 'arguments', client 'megatron', {}
    found.words = source
    found.gpus = given.gpus
    found.reader.read_words(found, source)
  else
    check.path('trinity.job', 1, 'source', source)
    found.path = source
    local read
    found.reader, read = reader_of(source, util.read_file(source))
    found.gpus = given.gpus
    read(found)
  end
  found.gpus = given.gpus or found.gpus_said
  found.client, found.runtime, found.release = found.reader.client, found.reader.runtime, found.reader.release
  return job.settle(found)
end

local function refused_codes(found)
  local codes = {}
  for _, finding in ipairs(found.findings) do if finding.effect == 'refused' then codes[finding.code] = true end end
  return codes
end

--- Returns the nearest legal values of the arguments of a finding: a list of { name, value }.
---@param found trinity.JobFile
---@param finding table
---@return { name: string, value: any }[]
function job.nearest(found, finding)
  local reader, before = found.reader, refused_codes(found)
  local function argument(path)
    if path == 'gpus' then return found.gpus and { name = '--gpus', value = found.gpus } end
    local known = reader.argument(found, path)
    return known and not known.several and known or nil
  end
  local function try(path, value)
    local changed = path == 'gpus' and util.merged(found, { gpus = value }) or reader.with(found, path, value)
    local ok, other = pcall(job.settle, util.merged(changed))
    return ok and refused_codes(other) or nil
  end
  return util.map(rules.nearest(finding, before, argument, try), function(near)
    return { name = argument(near.path).name, value = near.value }
  end)
end

return job
