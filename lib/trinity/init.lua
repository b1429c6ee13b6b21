-- The library of trinity, returned by `require 'trinity'`. README.md has a first script.

-- A stock luajit finds the engine next to the program of this tree or installation.
if not package.loaded['trinity.core'] and not package.preload['trinity.core'] then
  local lib = debug.getinfo(1, 'S').source:match '^@(.*)/trinity/init%.lua$'
  package.cpath = ('%s;%s/../build/lua/?.so;%s/../../../lib/lua/5.1/?.so'):format(package.cpath, lib, lib)
end

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local fields = require 'trinity.base.fields'
local hooks = require 'trinity.base.hooks'
local late = require 'trinity.base.late'
local util = require 'trinity.base.util'

hooks.searches = late.table('searches', function() return require 'trinity.runs.search' end)
hooks.moves = late.table('moves', function() return require 'trinity.search.moves' end)
function hooks.warn(text) require('trinity.base.progress').warn(text) end
function hooks.job() return require('trinity.dist').current() end
function hooks.read_replication(...) return require('trinity.dist.replication_file').read(...) end
function hooks.export(...) return require('trinity.formats').export(...) end
function hooks.picture(found)
  return require('trinity.report.plan_picture').svg(require('trinity.report.shown').of(found))
end
function hooks.read_chakra(...) return require('trinity.formats.chakra_reader').graph(...) end
function hooks.read_profile(...) return require('trinity.profile.object').load(...) end

---@class trinity
---@since 0.1.0
---@field version string version of the program
---@field api integer level of the script interface (trinity help extending); it increases when something is removed
---@field devices trinity.DevicesModule device types, from published data
---@field topology trinity.TopologyModule functions to describe clusters
---@field graph trinity.GraphModule graphs of operators and tensors
---@field layers trinity.LayersModule networks made from layers
---@field rewards trinity.RewardsModule published reward formulas
---@field methods trinity.MethodsModule methods that make strategies
---@field tensor trinity.TensorModule LibTorch tensors with gradients
---@field nn trinity.NnModule networks and optimisers
---@field search trinity.SearchModule harness for custom searches
---@field learn trinity.LearnModule learners of policies on environments, and Trinity's policy
---@field rankers trinity.RankersModule rankers of the moves of a search
---@field profile trinity.ProfileModule measured operators and copies on this machine
---@field dist trinity.DistModule processes of one training
---@field daso trinity.DasoModule the schedule of DASO
---@field synchronisation trinity.SynchronisationModule time of data-parallel training
---@field run trinity.Run the folder of the running script
---@field home string the folder of lib, models and scripts
---@field files trinity.FilesModule files and folders
---@field json trinity.JsonModule readable JSON
---@field formats trinity.FormatsModule export to other programs
---@field plot trinity.PlotModule plots as SVG and PNG, numbers as CSV
---@field pipeline trinity.PipelineModule cuts networks into pipelines: trinity.pipeline(source, options)
---@field plan trinity.PlanModule search over whole strategies: trinity.plan { graph, cluster, global_batch }
local trinity = late.modules('trinity', function()
  return {
    version = core.version,
    api = 1,
    options = require 'trinity.command.options',
    graph = require 'trinity.graph',
    layers = require 'trinity.graph.layers',
    model = require('trinity.graph.model').load,
    models = require('trinity.graph.model').names,
    cluster = require('trinity.graph.model').cluster,
    clusters = require('trinity.graph.model').cluster_names,
    devices = require 'trinity.cluster.devices',
    topology = require 'trinity.cluster.topology',
    problem = require('trinity.strategy.problem').new,
    simulator = require('trinity.strategy.problem').simulator,
    rewards = require 'trinity.strategy.rewards',
    tensor = require 'trinity.nn.tensor',
    nn = require 'trinity.nn',
    methods = require 'trinity.methods',
    search = require 'trinity.search',
    select = require 'trinity.select',
    execute = require 'trinity.execute',
    profile = require 'trinity.execute.profile',
    formats = require 'trinity.formats',
    features = require 'trinity.learn.features',
    env = require 'trinity.env',
    learn = require 'trinity.learn',
    rankers = require 'trinity.search.rankers',
    compare = require 'trinity.methods.compare',
    pase = require 'trinity.pase',
    lower = require('trinity.strategy.splits').lower,
    schedule_bubble = require('trinity.strategy.parallelism').schedule_bubble,
    iteration_space = require('trinity.strategy.splits').iteration_space,
    job = require('trinity.job').read,
    pipeline = require 'trinity.pipeline',
    plan = require 'trinity.plan',
    replay = require 'trinity.stragglers.replay',
    stragglers = require 'trinity.stragglers',
    rank_order = require 'trinity.strategy.rank_order',
    expert_load = require 'trinity.stragglers.expert_load',
    parallel_map = require 'trinity.parallel',
    plot = require 'trinity.report.plot',
    dist = require 'trinity.dist',
    daso = require 'trinity.dist.daso',
    synchronisation = require 'trinity.dist.synchronisation',
    sorted_pairs = util.sorted_pairs,
    median = util.median,
    format_bytes = core.format_bytes,
    format_table = require('trinity.base.text').format_table,
    random = require 'trinity.base.random',
    run = require 'trinity.runs',
    global = core.global,
    threads = core.threads,
    home = core.home,
    files = require 'trinity.files',
    json = require 'trinity.files.json',
    clock_s = core.clock_s,
    describe_machine = core.describe_machine,
    stop_requested = core.stop_requested,
    was_interrupted = core.was_interrupted,
    stop_status = core.stop_status,
    stop_name = core.stop_name,
  }
end)

--- Whether this trinity was built with LibTorch, which tensors, networks, learning methods, several processes and the
--- executor need.
---@return boolean
function trinity.has_torch() return core.has_torch() end

--- Runs body(stop_requested), a loop that ends when stop_requested() is true. The first Ctrl-C only sets
--- stop_requested(); a search, simulation or command that runs then raises 'interrupted'. The second Ctrl-C stops the
--- script. Returns whether a stop was requested. Example: `trinity.stoppable(function(stop_requested) while not
--- stop_requested() do break end end)`
---@param body fun(stop_requested: fun(): boolean)
---@return boolean
function trinity.stoppable(body)
  check.argument('trinity.stoppable', 1, 'body', body, 'function')
  core.begin_search()
  local ok, message = xpcall(function() body(core.stop_requested) end, function(raised) return raised end)
  local stopped = core.stop_requested()
  core.end_search()
  if not ok then error(message, 0) end
  return stopped
end

--- Returns LibTorch and the BLAS in use, as a line of text. Warns on standard error about a slow BLAS.
---@return string
function trinity.describe_torch()
  local text, slow = core.describe_torch()
  if slow then
    require('trinity.base.progress').warn('the reference BLAS is loaded, about 16 times slower than OpenBLAS; install '
      .. 'libopenblas0-openmp')
  end
  return text
end

local engine_functions = { format_bytes = 1, global = 2, threads = 0, clock_s = 0, describe_machine = 0,
  stop_requested = 0, was_interrupted = 0, stop_status = 0, stop_name = 0 } -- numbers of arguments
for name, most in util.sorted_pairs(engine_functions) do
  trinity[name] = fields.limited('trinity.' .. name, trinity[name], most)
end

return fields.module('trinity', trinity)
