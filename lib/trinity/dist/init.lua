-- trinity.dist: the processes of one training. A script joins the job that a launcher started it in
-- (mpirun, torchrun, srun, ...) and all-reduces tensors with the other ranks by LibTorch's c10d, with Gloo or NCCL.
-- trinity.execute runs the common training of the ranks of a job.
--
-- Without a launcher, it is a job of one process. Ranks, nodes and local ranks are numbered from 0, as in every
-- launcher. The ranks of a job share searches that learn (search/shared.lua). If a rank dies, hangs or leaves while
-- others wait for it, all processes end with a message that names it (engine/distribute/job.h).

local core = require 'trinity.core'
local check = require 'trinity.base.check'
local progress = require 'trinity.base.progress'
local ranks = require 'trinity.dist.ranks'
local run_state = require 'trinity.runs.state'
local options_of = require 'trinity.base.options'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

---@class trinity.DistModule
local dist = {}

---@class trinity.Job
---@field rank integer rank of this process, from 0
---@field size integer number of ranks
---@field node integer node of this rank, from 0
---@field nodes integer
---@field local_rank integer rank within the node, from 0
---@field local_size integer ranks per node
---@field source string the launcher: 'torchrun', 'Open MPI', 'Slurm', ... (trinity help processes), 'none'
local Job = { __name = 'job' }
Job.__index = Job

function Job.__tostring(self)
  return ('job: rank %d of %d, on node %d of %d (%s)'):format(self.rank, self.size, self.node, self.nodes, self.source)
end

local joined -- the job of this process
local alone = 0 -- number of running calls of dist.alone()

local link = options_of.declare('trinity.InjectedLink', { help = 'An emulated slower link.',
  { 'latency_s', 'number', 0, least = 0, help = 'latency per message' },
  { 'bandwidth_bytes_per_s', 'number', 0, least = 0, help = 'bandwidth; 0: no limit' },
})

local join_options = options_of.declare('trinity.JobOptions', { help = 'Options of dist.init.',
  { 'timeout_s', 'number', 20, least = 0.1, most = 1e6, help = 'a rank for which others wait this long counts as '
    .. 'hanging' },
  { 'silence_s', 'number', 10, least = 0.1, most = 1e6, help = 'a rank without a sign of life for this long counts as '
    .. 'dead' },
  { 'join_timeout_s', 'number', otherwise = 'TRINITY_JOIN_TIMEOUT_S, else 25', least = 0.1, most = 1e6,
    help = 'time for all ranks to join' },
  { 'backend', 'string', otherwise = "TRINITY_BACKEND, else 'gloo'", help = "'gloo', or 'nccl' if LibTorch has CUDA "
    .. "and every rank of a node a GPU: tensors stay in CPU memory and are sent through the GPU" },
  { 'arguments_differ', 'boolean', false,
    help = 'true: ranks may have different arguments; false: ranks with another program, script or arguments are '
      .. 'refused' },
  { 'link', link, help = "emulates slower links between nodes on one machine: adds the time of a ring over such a "
    .. "link" },
})

-- Returns a script's text, or nil if there is none (with -e).
local function text_of(path)
  local ok, text = pcall(core.read_file, path)
  return ok and text:sub(1, 1) ~= '\127' and text or nil
end

-- Returns what the ranks of a job must have in common: program, script, and the script's arguments unless they may
-- differ.
local function identity(arguments_differ)
  local command, name, script_text, words = rawget(_G, 'arg'), '', nil, {}
  if type(command) == 'table' and type(command[0]) == 'string' then
    name = command[0]:match '[^/]*$'
    script_text = text_of(command[0])
    for i = 1, arguments_differ and 0 or #command do words[i] = tostring(command[i]) end
  end
  return { program = ('trinity %s with %s'):format(core.version, (core.describe_torch())), script = name,
    script_text = script_text, arguments = table.concat(words, ' ') }
end

-- Returns the default time for all ranks to join.
local function join_timeout_s()
  local text = core.environment 'TRINITY_JOIN_TIMEOUT_S'
  local seconds = tonumber(text or 25)
  if not seconds or seconds < 0.1 or seconds > 1e6 then
    util.fail('TRINITY_JOIN_TIMEOUT_S: expected seconds from 0.1 to 1e6, got %s', util.quoted(text))
  end
  return seconds
end

--- Joins the job in which a launcher started this process (mpirun, torchrun, srun, ...); without a launcher, makes a
--- job of one process. A second call returns the same job. Raises an error if a rank does not join in time. Example:
--- `local job = trinity.dist.init { timeout_s = 60 }`
---@param options? trinity.JobOptions
---@return trinity.Job
function dist.init(options)
  options = join_options:read('dist.init', 1, 'options', options)
  if joined then return joined end
  local handle = core.dist.join { timeout_s = options.timeout_s, silence_s = options.silence_s,
    join_timeout_s = options.join_timeout_s or join_timeout_s(), link = options.link, backend = options.backend,
    identity = identity(options.arguments_differ) }
  local self = handle:facts()
  self.handle = handle
  joined = setmetatable(self, Job)
  if joined.rank > 0 then
    progress.silent = true
    run_state.leave_to_first_rank()
  end
  return joined
end

--- Returns whether searches join the job of this process automatically. Example: `trinity.dist.joins()`
---@return boolean
function dist.joins() return core.environment 'TRINITY_JOIN' == '1' end

--- Returns the joined job if it has several ranks, or nil (also in dist.alone() and in workers of
--- trinity.parallel_map). With TRINITY_JOIN=1 it joins first. Otherwise a launcher may have started independent
--- processes, and rank 0 warns once. Example: `local job = trinity.dist.current()`
---@return trinity.Job?
function dist.current()
  if alone > 0 or core.in_worker() then return nil end
  if not joined and dist.joins() then dist.init() end
  if not joined then core.warn_of_copies() end
  if joined and joined.size > 1 and not rawget(joined, 'closed') then return joined end
end

--- Runs body() without sharing searches with other ranks, and returns its results. Example:
--- `trinity.dist.alone(function() return 1 end)`
---@param body function
---@return any ...
function dist.alone(body)
  check.argument('dist.alone', 1, 'body', body, 'function')
  alone = alone + 1
  local function leave(ok, ...)
    alone = alone - 1
    if not ok then error((...), 0) end
    return ...
  end
  return leave(pcall(body, nil)) -- an argument for C functions that need one
end

local scopes = options_of.words('trinity.Scope', { 'world', 'node', 'across' })
local reduce_options = options_of.declare('trinity.AllReduceOptions', { help = 'Options of job:all_reduce.',
  { 'scope', scopes, 'world', help = "ranks to reduce over; 'across': ranks with the same local rank, one per node" },
  { 'reduction', options_of.words('trinity.Reduction', { 'sum', 'mean', 'max' }), 'sum',
    help = 'reduction of the values' },
})

local function check_tensor(owner, x)
  if not tensor.is(x) then check.wrong(owner, 1, 'x', x, 'a tensor') end
  return x
end

--- All-reduces a tensor in place over the ranks of a scope. All ranks of the scope must call the same reductions in the
--- same order. Example: `job:all_reduce(x, { reduction = 'mean' })`
---@param x trinity.TorchTensor contiguous, in CPU memory, without gradients
---@param options? trinity.AllReduceOptions
---@return trinity.TorchTensor x
function Job:all_reduce(x, options)
  check_tensor('job:all_reduce', x)
  options = reduce_options:read('job:all_reduce', 2, 'options', options)
  self.handle:wait(self.handle:all_reduce(x, options))
  return x
end

local broadcast_options = options_of.declare('trinity.BroadcastOptions', { help = 'Options of job:broadcast.',
  { 'scope', scopes, 'world', help = "receiving ranks; 'across': ranks with the same local rank, one per node" },
  { 'root', 'integer', 0, least = 0, most = 2 ^ 20, help = 'sending member, numbered from 0 in the scope' },
})

--- Copies a tensor in place from one member of a scope to all. Example: `job:broadcast(x, { root = 0 })`
---@param x trinity.TorchTensor
---@param options? trinity.BroadcastOptions
---@return trinity.TorchTensor x
function Job:broadcast(x, options)
  check_tensor('job:broadcast', x)
  options = broadcast_options:read('job:broadcast', 2, 'options', options)
  self.handle:wait(self.handle:broadcast(x, options.scope, options.root))
  return x
end

--- Returns the mean of a number over all ranks. Example: `job:mean(loss)`
---@param number number
---@return number
function Job:mean(number)
  check.argument('job:mean', 1, 'number', number, 'number')
  if self.size == 1 then return number end
  return self:all_reduce(tensor.new({ number }, { dtype = 'float64' }), { reduction = 'mean' }):select(1, 1):item()
end

--- Returns the best of the strategies that all ranks found for the same problem, on every rank. Example:
--- `job:best(found)`
---@param strategy trinity.Strategy
---@return trinity.Strategy
function Job:best(strategy)
  check.object('job:best', 1, 'strategy', strategy, 'strategy')
  if self.size == 1 then return strategy end
  local placement = strategy.problem:placement()
  local winner = ranks.best(ranks.rows(self, { ranks.worth(strategy) }), 1)
  ranks.take_placement(self, winner, strategy.placement, placement)
  return strategy.problem:strategy(placement, { method = strategy.method, seed = strategy.seed,
    evaluations = strategy.evaluations })
end

--- Waits for all ranks. Example: `job:barrier()`
function Job:barrier() self.handle:barrier() end

--- Checks that all ranks have the same text; otherwise ends the job with a message that names the rank. Example:
--- `job:agree('the seed', '1')`
---@param what string subject, for the message
---@param text string
function Job:agree(what, text)
  check.argument('job:agree', 1, 'what', what, 'string')
  self.handle:agree(what, check.argument('job:agree', 2, 'text', text, 'string'))
end

--- Prints a text on rank 0 only. Example: `job:print 'done'`
---@param text string
function Job:print(text)
  check.argument('job:print', 1, 'text', text, 'string')
  if self.rank == 0 then print(text) end
end

--- Leaves the job, as the script's end does. Later collectives are errors. Example: `job:close()`
function Job:close()
  check.closing('job:close', self, 'job').handle:leave()
  if self.size == 1 then joined = nil end -- a job of several ranks cannot be joined again
end

check.methods(Job, 'trinity.Job')

return dist
