-- trinity.dist: the processes of one training. A script joins the job that a launcher started it in
-- (mpirun, torchrun, srun, ...) and adds up tensors with the other ranks by LibTorch's c10d, with Gloo or NCCL.
-- What the ranks of a job train together trinity.execute runs.
--
-- Started without a launcher it is a job of one process. Ranks, nodes and local ranks count from 0, as those of
-- every launcher do. Searches that learn are shared by the ranks of the job (search/shared.lua). When a rank
-- dies, hangs or leaves while others wait for it, all processes end, and one message names it
-- (engine/distribute/job.h).

local core = require 'trinity.core'
local check = require 'trinity.base.check'
local progress = require 'trinity.base.progress'
local ranks = require 'trinity.dist.ranks'
local run_state = require 'trinity.runs.state'
local options_of = require 'trinity.base.options'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

---@class trinity.DistModule
---@since 0.1.0
local dist = {}

---@class trinity.Job
---@since 0.1.0
---@field rank integer of this process, from 0
---@field size integer ranks
---@field node integer of this rank, from 0
---@field nodes integer
---@field local_rank integer within the node, from 0
---@field local_size integer ranks a node
---@field source string the launcher: 'torchrun', 'Open MPI', 'Slurm', ... (trinity help processes), 'none'
local Job = { __name = 'job' }
Job.__index = Job

function Job.__tostring(self)
  return ('job: rank %d of %d, on node %d of %d (%s)'):format(self.rank, self.size, self.node, self.nodes, self.source)
end

--- A reduction that was started.
---@class trinity.Work
---@since 0.1.0
---@field job trinity.Job
local Work = { __name = 'work' }
Work.__index = Work

local joined -- the one job of this process
local alone = 0 -- calls of dist.alone() that run

local link = options_of.declare('trinity.InjectedLink', { help = 'A link that is slower than the one there is.',
  { 'latency_s', 'number', 0, least = 0, help = 'of a message' },
  { 'bandwidth_bytes_per_s', 'number', 0, least = 0, help = '0: no limit' },
})

local join_options = options_of.declare('trinity.JobOptions', { help = 'What dist.init takes.',
  { 'timeout_s', 'number', 20, least = 0.1, most = 1e6, help = 'a rank that others wait for this long hangs' },
  { 'silence_s', 'number', 10, least = 0.1, most = 1e6, help = 'a rank that gives no sign for this long is dead' },
  { 'join_timeout_s', 'number', otherwise = 'TRINITY_JOIN_TIMEOUT_S, else 25', least = 0.1, most = 1e6,
    help = 'for all ranks to come' },
  { 'backend', 'string', otherwise = "TRINITY_BACKEND, else 'gloo'", help = "'gloo', or 'nccl' where LibTorch has "
    .. 'CUDA and every rank of a node a GPU: tensors stay on the processor and travel by way of the GPU' },
  { 'arguments_differ', 'boolean', false,
    help = 'false: ranks whose program, script or arguments differ are refused by name; true: arguments may' },
  { 'link', link, help = "makes what crosses nodes slower by a ring's time over such a link, for experiments on one "
    .. 'machine' },
})

-- A script's text; nil for what is none, as the program itself under -e.
local function text_of(path)
  local ok, text = pcall(core.read_file, path)
  return ok and text:sub(1, 1) ~= '\127' and text or nil
end

-- What the ranks of a job must have alike: program, script, the script's arguments unless they may differ.
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

-- Seconds for all ranks to come, where the script does not say.
local function join_timeout_s()
  local text = core.environment 'TRINITY_JOIN_TIMEOUT_S'
  local seconds = tonumber(text or 25)
  if not seconds or seconds < 0.1 or seconds > 1e6 then
    util.fail('TRINITY_JOIN_TIMEOUT_S: expected seconds from 0.1 to 1e6, got %s', util.quoted(text))
  end
  return seconds
end

--- Joins the job that a launcher started this process in (mpirun, torchrun, srun, ...); without one, a
--- job of one process. Once a process: a second call gives the same job.
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

--- Whether searches join the job that this process was started in without being told to.
---@return boolean
function dist.joins() return core.environment 'TRINITY_JOIN' == '1' end

--- The job that this process has joined, when it has several ranks; else nil, as in dist.alone() and in workers of
--- trinity.parallel_map. With TRINITY_JOIN=1 it joins if that has not been done; else launchers may mean processes that
--- have nothing to do with each other: rank 0 of these warns, once.
---@return trinity.Job?
function dist.current()
  if alone > 0 or core.in_worker() then return nil end
  if not joined and dist.joins() then dist.init() end
  if not joined then core.warn_of_copies() end
  if joined and joined.size > 1 and not rawget(joined, 'closed') then return joined end
end

--- Runs body(), in which this rank shares its searches with no other, and returns what it returns.
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
  return leave(pcall(body, nil)) -- an argument, so that functions of C that want one take it
end

local scopes = options_of.words('trinity.Scope', { 'world', 'node', 'across' })
local reduce_options = options_of.declare('trinity.AllReduceOptions', { help = 'How tensors are reduced.',
  { 'scope', scopes, 'world', help = "over whom; 'across': ranks of the same local rank, one a node" },
  { 'reduction', options_of.words('trinity.Reduction', { 'sum', 'mean', 'max' }), 'sum', help = 'what of all values' },
})

local function check_tensor(owner, x)
  if not tensor.is(x) then check.wrong(owner, 1, 'x', x, 'a tensor') end
  return x
end

--- Starts to reduce a tensor in place over the ranks of a scope and returns at once. Leave the tensor alone until
--- work:wait(). All ranks of the scope start the same reductions in the same order.
---@param x trinity.TorchTensor contiguous, on the processor, without gradients
---@param options? trinity.AllReduceOptions
---@return trinity.Work
function Job:start_all_reduce(x, options)
  check_tensor('job:start_all_reduce', x)
  options = reduce_options:read('job:start_all_reduce', 2, 'options', options)
  return setmetatable({ job = self, handle = self.handle:all_reduce(x, options) }, Work)
end

--- Reduces a tensor in place over the ranks of a scope, and waits: see job:start_all_reduce.
---@param x trinity.TorchTensor
---@param options? trinity.AllReduceOptions
---@return trinity.TorchTensor x
function Job:all_reduce(x, options)
  check_tensor('job:all_reduce', x)
  options = reduce_options:read('job:all_reduce', 2, 'options', options)
  self.handle:wait(self.handle:all_reduce(x, options))
  return x
end

local broadcast_options = options_of.declare('trinity.BroadcastOptions', { help = 'Who gives a tensor to whom.',
  { 'scope', scopes, 'world', help = "to whom; 'across': ranks of the same local rank, one a node" },
  { 'root', 'integer', 0, least = 0, most = 2 ^ 20, help = 'the member that gives, counted from 0 in the scope' },
})

--- Copies a tensor in place from one member of a scope to all.
---@param x trinity.TorchTensor
---@param options? trinity.BroadcastOptions
---@return trinity.TorchTensor x
function Job:broadcast(x, options)
  check_tensor('job:broadcast', x)
  options = broadcast_options:read('job:broadcast', 2, 'options', options)
  self.handle:wait(self.handle:broadcast(x, options.scope, options.root))
  return x
end

--- Waits until the reduction has ended.
function Work:wait() self.job.handle:wait(self.handle) end

--- Whether it has ended.
---@return boolean
function Work:done() return self.job.handle:is_done(self.handle) end

--- The mean of a number over all ranks.
---@param number number
---@return number
function Job:mean(number)
  check.argument('job:mean', 1, 'number', number, 'number')
  if self.size == 1 then return number end
  return self:all_reduce(tensor.new({ number }, { dtype = 'float64' }), { reduction = 'mean' }):select(1, 1):item()
end

--- Averages the gradients of parameters over all ranks.
---@param parameters trinity.TorchTensor[]
function Job:average_gradients(parameters)
  check.argument('job:average_gradients', 1, 'parameters', parameters, 'table')
  if self.size == 1 then return end
  local count = 0
  for i, parameter in ipairs(parameters) do
    if not tensor.is(parameter) then
      check.refuse('job:average_gradients', 1, 'parameters', 'entry %d: expected a tensor, got %s', i,
        util.describe(parameter))
    end
    count = count + parameter:numel()
  end
  local flat = tensor.zeros(count)
  core.dist.pack(parameters, flat, true)
  self.handle:wait(self.handle:all_reduce(flat, { reduction = 'mean' }))
  core.dist.unpack(flat, parameters, true)
end

--- Of the strategies that all ranks found for the same problem the best, on every rank.
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

--- Waits for all ranks.
function Job:barrier() self.handle:barrier() end

--- Ends the job, naming the rank that differs, unless all ranks give the same text.
---@param what string what it is about
---@param text string
function Job:agree(what, text)
  check.argument('job:agree', 1, 'what', what, 'string')
  self.handle:agree(what, check.argument('job:agree', 2, 'text', text, 'string'))
end

--- Prints a text on rank 0 alone.
---@param text string
function Job:print(text)
  check.argument('job:print', 1, 'text', text, 'string')
  if self.rank == 0 then print(text) end
end

--- Says goodbye to the other ranks; the script's end does, too. Further collectives are errors.
function Job:close()
  check.closing('job:close', self, 'job').handle:leave()
  if self.size == 1 then joined = nil end -- others cannot be met a second time
end

check.methods(Job, 'trinity.Job')
check.methods(Work, 'trinity.Work')

return dist
