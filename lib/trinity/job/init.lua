-- trinity.job: reads a job file of training software (the client) as model, mesh, batches, precision, recomputation and
-- overlaps, and reports what the client refuses, ignores or changes. Each client has a module (megatron, torchtitan,
-- deepspeed; declared has others), and its arguments and rules as records (records/).

local arguments = require 'trinity.job.arguments'
local check = require 'trinity.base.check'
local declared = require 'trinity.job.declared'
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

local function client(name)
  return ('nanotron bridge foundry mlperf'):find(name, 1, true) and declared(name) or require('trinity.job.' .. name)
end

-- Readers by extension: return the client of a text, and the tree or map that it reads.
local formats = {}

function formats.toml(text, path) return client 'torchtitan', toml.read(text, path) end

function formats.json(text, path)
  -- Hjson, as DeepSpeed reads it: comments, and commas before a closing bracket.
  local plain = ('\n' .. text):gsub('\n%s*//[^\n]*', '\n'):gsub('\n%s*#[^\n]*', '\n'):gsub(',(%s*[%]}])', '%1'):sub(2)
  local tree, deepspeed, any = json.decode(plain, path), client 'deepspeed', nil
  for key in util.sorted_pairs(type(tree) == 'table' and tree or {}) do
    if deepspeed.declared.keys[key] or deepspeed.declared.sections[key] then return deepspeed, tree end
    any = any or tostring(key)
  end
  if not any then return deepspeed, {} end
  util.fail("%s: expected arguments of DeepSpeed, such as train_batch_size, got none of them ('%s' and others)", path,
    any)
end

function formats.yaml(text, path)
  local map, repeated = yaml.read(text, path)
  if map.MODEL_ARGS then return client 'megatron', map, repeated end
  local name = map.parallelism and 'nanotron' or map.train_loader and 'foundry' or (map.model or map.train) and 'bridge'
    or util.fail('%s: expected MODEL_ARGS (Megatron-LM), parallelism (nanotron), train_loader (LLM Foundry), or model '
      .. 'and train (Megatron-Bridge)', path)
  return client(name), yaml.value(map)
end

formats.yml = formats.yaml

-- Returns the program that a command starts: { launcher, words (its arguments), name, config (a file that its arguments
-- name), architecture (true: it has arguments of Megatron-LM) }, or nil.
local function program_of(command, variables)
  local at
  for i, word in ipairs(command) do
    local module = command[i - 1] == '-m' and not word:match '^torch%.distributed'
    if not at and (word:match '%.py$' or module or word:match 'run_train%.sh$') then at = i end
  end
  if not at then return nil end
  local program = { name = command[at], launcher = { unpack(command, 1, at - 1) }, words = { unpack(command, at + 1) },
    architecture = command[at]:match 'pretrain[%w_]*%.py$' ~= nil }
  for i, word in ipairs(program.words) do
    local name, value = word:match '^%-%-([%w_.-]+)=?(.*)$'
    if name == 'deepspeed_config' or name == 'deepspeed' or name == 'job.config_file' then
      local file = value ~= '' and value or program.words[i + 1]
      program.config = file and file:match '%.%w+$' and file or program.config
    end
    program.architecture = program.architecture or name == 'num-layers' or name == 'micro-batch-size'
  end
  if program.name:match 'run_train%.sh$' then program.config = variables.CONFIG_FILE end
  return (program.config or program.architecture) and program
end

-- Returns the number of GPUs that launchers start: torchrun, deepspeed, srun, or what #SBATCH says.
local function launched_gpus(launcher, variables)
  local said = {}
  for i, word in ipairs(launcher) do
    local name, value = word:match '^%-%-?([%w_-]+)=?(.*)$'
    if name then said[name:gsub('-', '_')] = tonumber(value ~= '' and value or launcher[i + 1]) or false end
  end
  local nodes = said.nnodes == nil and said.num_nodes or said.nnodes
  local each = said.nproc_per_node or said.num_gpus or nodes == nil and tonumber(variables.NGPU)
  if each then return nodes ~= false and each * (nodes or 1) or nil end
  nodes = tonumber(variables.SLURM_NNODES)
  each = tonumber(variables.SLURM_GPUS_PER_NODE or variables.SLURM_NTASKS_PER_NODE)
  return said.ntasks or said.num_processes or nodes and each and nodes * each or nil
end

-- Returns the path of a file that a script names, in the script's folder or above it, or nil.
local function near(path, name)
  name = name:gsub('^%$%b()', '.'):gsub('^`[^`]*`', '.')
  local folder = name:match '^/' and '' or path:match '^(.*/)' or ''
  while folder ~= '' and folder ~= '/' and not util.exists(folder .. name) do
    folder = folder:match '^(.*/)[^/]+/$' or ''
  end
  return util.exists(folder .. name) and folder .. name or nil
end

local function read_text(found, path, text)
  local format = formats[path:match '%.(%w+)$']
  if format then
    local reader, tree, repeated = format(text, path)
    found.reader = reader
    return reader.read(found, tree, repeated or text)
  end
  local script, program = shell.read(text, function(name)
    local file = near(path, name)
    return file and util.read_file(file)
  end), nil
  for _, command in ipairs(script.commands) do program = program_of(command, script.environment) or program end
  for _, command in ipairs(script.missing) do found.unread[#found.unread + 1] = command end
  if not program and script.environment.MINIBS then
    local tree = {}
    found.reader = client 'mlperf'
    for name in util.sorted_pairs(found.reader.declared.keys) do
      local value = script.environment[name]
      if value and value ~= 'null' then tree[name] = arguments.readers.any(value:lower()) end
    end
    return found.reader.read(found, tree)
  end
  if not program then util.fail('%s: expected a command that starts pretrain_*.py', path) end
  local launch = table.concat(program.launcher, ' ') .. ' ' .. table.concat(program.words, ' ')
  found.source.launch = found.source.launch and launch .. ' ' .. found.source.launch or launch
  if program.config and not program.architecture then
    local file = near(path, program.config)
      or util.fail("%s: expected the file '%s' that the command names, got none", path, program.config)
    read_text(found, file, util.read_file(file))
  else
    found.reader = client(program.config and 'megatron_deepspeed' or 'megatron')
    -- open: the program may have arguments of its own
    found.source.open = program.config ~= nil or not program.name:match 'pretrain_[ghmbt][%w_]*%.py$'
    found.environment, found.environment_known, found.unset = script.environment, true, script.unset
    found.reader.read_words(found, program.words)
  end
  found.gpus_said = launched_gpus(program.launcher, script.environment) or found.gpus_said
end

-- Returns the names of those that were given, or the first one if none was, and whether any was.
local function arguments_of(found, paths)
  local given, first = {}, nil
  for _, path in ipairs(paths) do
    local argument = arguments.of(found, path)
    first = first or argument
    if argument and argument.given then given[#given + 1] = argument end
  end
  local some = #given > 0
  if not some then given[1] = first or { name = paths[1] } end
  return util.map(given, function(argument)
    local plain = type(argument.value) ~= 'table' and argument.value
    return { name = argument.name, value = plain or nil }
  end), some
end

--- Runs the rules on the values and stores findings and meaning in the job.
function job.settle(found)
  local reader = found.reader
  local values = (reader.space or arguments.space)(found)
  found.findings, found.legal = {}, true
  for l, list in ipairs { found.faults, rules.check(reader, values) } do
    for _, finding in ipairs(list) do
      local paths = rules.arguments(reader, finding.paths)
      local named, given = arguments_of(found, paths)
      local clear = given or not found.source.partial -- what is missing may be among words that are not known
      for _, path in ipairs(paths) do clear = clear and not found.unclear[path] end
      if clear or l == 1 then
        found.findings[#found.findings + 1] = util.merged(finding, { paths = paths, arguments = named })
        found.legal = found.legal and finding.effect ~= 'refused'
      end
    end
  end
  found.unknown = { unpack(found.unread) }
  found.settled = values
  found.model, found.mesh = {}, {}
  local ok, why = pcall(reader.meaning, found, values)
  if not ok and found.legal and not next(found.unclear) then error(why, 0) end -- other files may be meaningless
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
---@field context_exchange? string exchange of keys and values in context parallelism: ring, all_gather, all_to_all
---@field dense_layers? integer layers without experts of a network with experts
---@field rank_order? string[] axes of the mesh from the innermost, of Megatron-LM
---@field precision? string
---@field recompute? string|table
---@field zero_stage? integer
---@field distributed_optimizer? boolean
---@field state_bytes? number bytes per parameter of the optimizer with its weights in fp32
---@field overlaps? table
---@field offload? table
---@field unknown string[] settings that were not understood
---@field findings table[] refused, ignored or changed settings: code, effect, arguments, text, source, release
---@field legal boolean true: the client accepts the file
---@field path string
---@field stages? integer[] layers of every virtual stage
---@field graph_options? table options of model 'decoder'; nil if the file does not give the network
---@field strategy? table mesh, schedule, micro_batches, recompute, ...: a strategy of trinity.problem
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
---@field source table how the file is read: options, launch, open, partial, custom
---@field faults table[] findings of the parser, before the rules
---@field unread string[] settings that the parser did not understand
---@field unclear table<string, boolean> arguments whose value only the run gives

-- Returns a job before its file is read.
local function unread(path, options)
  return { path = path, faults = {}, unread = {}, unclear = {}, capability = options.capability,
    source = { options = options, launch = options.launch } }
end

--- Reads a job file of one of the clients, or a list of arguments of Megatron-LM or (--section.key) torchtitan. Raises
--- an error if the client is unknown. Example: `trinity.job('pretrain.sh', { gpus = 64 }).legal`
---@param source string|string[]
---@param options? table gpus, launch, capability
---@return trinity.JobFile
function job.read(source, options)
  local given = takes:read('trinity.job', 2, 'options', options or {})
  local found = unread(type(source) == 'table' and 'arguments' or source, given)
  if type(source) == 'table' then
    for _, word in ipairs(source) do
      if type(word) ~= 'string' then check.wrong('trinity.job', 1, 'source', source,
        'a path or a list of arguments') end
    end
    local titan = client 'torchtitan'
    local name = (source[1] or ''):match '^%-%-([%w_]+)%.' -- --section.key of torchtitan
    found.environment = {}
    found.reader = titan.declared.sections[name] and titan or client 'megatron'
    if found.reader == titan then
      found.source.launch = table.concat(source, ' ')
      titan.read(found, {}, '')
    else
      found.reader.read_words(found, source)
    end
  else
    check.path('trinity.job', 1, 'source', source)
    read_text(found, source, util.read_file(source))
  end
  if given.launch then
    found.gpus_said = launched_gpus(util.words((given.launch:gsub('=', ' '))), {}) or found.gpus_said
  end
  found.gpus = given.gpus or found.gpus_said
  found.client, found.runtime, found.release = found.reader.client, found.reader.runtime, found.reader.release
  job.settle(found)
  local ok, one = pcall(require 'trinity.job.memory'.case, found, 'dgx_h100', true)
  if ok then found.graph_options, found.strategy = one.options, one.strategy end
  return found
end

--- Returns the job of a changed text of a job's file, before the rules (job.settle).
function job.reread(found, text)
  local again = unread(found.path, found.source.options)
  read_text(again, found.path, text)
  again.gpus = found.source.options.gpus or again.gpus_said
  return again
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
  local before = refused_codes(found)
  local function argument(path)
    if path == 'gpus' then return found.gpus and { name = '--gpus', value = found.gpus } end
    local known = arguments.of(found, path)
    return known and not known.several and known or nil
  end
  local function try(path, value)
    local changed = path == 'gpus' and util.merged(found, { gpus = value }) or arguments.with(found, path, value)
    local ok, other = pcall(job.settle, util.merged(changed))
    return ok and refused_codes(other) or nil
  end
  return util.map(rules.nearest(finding, before, argument, try), function(one)
    return { name = argument(one.path).name, value = one.value }
  end)
end

return job
