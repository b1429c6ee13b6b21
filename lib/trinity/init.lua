-- The library of trinity, returned by `require 'trinity'`. README.md has a first script.

-- A stock luajit finds the engine next to the program of this tree or installation.
if not package.loaded['trinity.core'] and not package.preload['trinity.core'] then
  local lib = debug.getinfo(1, 'S').source:match '^@(.*)/trinity/init%.lua$'
  package.cpath = ('%s;%s/../build/lua/?.so;%s/../../../lib/lua/5.1/?.so'):format(package.cpath, lib, lib)
end

local core = require 'trinity.core'
local fields = require 'trinity.base.fields'
local hooks = require 'trinity.base.hooks'
local late = require 'trinity.base.late'

hooks.searches = late.table('searches', function() return require 'trinity.runs.search' end)
hooks.moves = late.table('moves', function() return require 'trinity.search.moves' end)
function hooks.warn(text) require('trinity.base.progress').warn(text) end
function hooks.job() return require('trinity.dist').current() end
function hooks.export(...) return require('trinity.formats').export(...) end
function hooks.picture(found)
  return require('trinity.report.plan_picture').svg(require('trinity.report.shown').of(found))
end
function hooks.read_chakra(...) return require('trinity.formats.chakra_reader').graph(...) end
function hooks.read_profile(...) return require('trinity.profile.object').load(...) end

---@class trinity
---@field devices trinity.DevicesModule device types, from published data; topologies of clusters
---@field graph trinity.GraphModule graphs of operators and tensors, networks made from layers
---@field rewards trinity.RewardsModule published reward formulas
---@field methods trinity.MethodsModule methods that make strategies
---@field tensor trinity.TensorModule LibTorch tensors with gradients
---@field nn trinity.NnModule networks and optimisers
---@field search trinity.SearchModule harness for custom searches
---@field learn trinity.LearnModule learners of policies on environments, their features, and Trinity's policy
---@field profile trinity.ProfileModule measured operators and copies on this machine
---@field dist trinity.DistModule processes of one training
---@field run trinity.Run the folder of the running script
---@field system trinity.SystemModule this program and machine, stops, helpers of scripts
---@field files trinity.FilesModule files, folders and JSON
---@field formats trinity.FormatsModule export to other programs
---@field plot trinity.PlotModule plots as SVG and PNG, numbers as CSV
---@field pipeline trinity.PipelineModule cuts networks into pipelines: trinity.pipeline(source, options)
---@field stragglers trinity.StragglersModule noise, slow devices, uneven work: trinity.stragglers(strategy, options)
---@field plan trinity.PlanModule search over whole strategies: trinity.plan { graph, cluster, global_batch }
local trinity = late.modules('trinity', function()
  return {
    options = require 'trinity.command.options',
    graph = require 'trinity.graph',
    ['graph.layers'] = require 'trinity.graph.layers',
    model = require('trinity.graph.model').load,
    cluster = require('trinity.graph.model').cluster,
    devices = require 'trinity.cluster.devices',
    ['devices.topology'] = require 'trinity.cluster.topology',
    problem = require('trinity.strategy.problem').new,
    rewards = require 'trinity.strategy.rewards',
    tensor = require 'trinity.nn.tensor',
    nn = require 'trinity.nn',
    methods = require 'trinity.methods',
    search = require 'trinity.search',
    ['search.rankers'] = require 'trinity.search.rankers',
    execute = require 'trinity.execute',
    profile = require 'trinity.execute.profile',
    formats = require 'trinity.formats',
    env = require 'trinity.env',
    learn = require 'trinity.learn',
    compare = require 'trinity.methods.compare',
    job = require('trinity.job').read,
    pipeline = require 'trinity.pipeline',
    plan = require 'trinity.plan',
    stragglers = require 'trinity.stragglers',
    parallel_map = require 'trinity.parallel',
    plot = require 'trinity.report.plot',
    dist = require 'trinity.dist',
    random = require 'trinity.base.random',
    run = require 'trinity.runs',
    system = require 'trinity.base.system',
    global = core.global,
    files = require 'trinity.files',
    ['files.json'] = require 'trinity.files.json',
  }
end)

trinity.global = fields.limited('trinity.global', trinity.global, 2)

return fields.module('trinity', trinity)
