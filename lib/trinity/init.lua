-- The library of trinity: what `require 'trinity'` gives. See README.md for a first script.

-- A stock luajit finds the engine beside the program of this tree, or of this installation.
if not package.loaded['trinity.core'] and not package.preload['trinity.core'] then
  local lib = debug.getinfo(1, 'S').source:match '^@(.*)/trinity/init%.lua$'
  package.cpath = ('%s;%s/../build/lua/?.so;%s/../../../lib/lua/5.1/?.so'):format(package.cpath, lib, lib)
end

local core = require 'trinity.core'
local model = require 'trinity.model'
local util = require 'trinity.util'

local trinity = {
  version = core.version,
  options = require 'trinity.options',
  graph = require 'trinity.graph',
  layers = require 'trinity.layers',
  model = model.load,
  models = model.names,
  cluster = model.cluster,
  clusters = model.cluster_names,
  devices = require 'trinity.devices',
  topology = require 'trinity.topology',
  problem = require('trinity.problem').new,
  simulator = require('trinity.simulator').new,
  rewards = require 'trinity.rewards',
  tensor = require 'trinity.tensor',
  nn = require 'trinity.nn',
  methods = require 'trinity.methods',
  search = require 'trinity.search',
  select = require 'trinity.select',
  execute = require 'trinity.execute',
  profile = require 'trinity.profile',
  features = require 'trinity.features',
  policies = require 'trinity.policies',
  compare = require 'trinity.compare',
  pase = require 'trinity.pase',
  lower = require('trinity.splits').lower,
  iteration_space = require('trinity.splits').iteration_space,
  pipeline = require 'trinity.pipeline',
  parallel_map = require 'trinity.parallel',
  dist = require 'trinity.dist',
  daso = require 'trinity.daso',
  synchronisation = require 'trinity.synchronisation',
  sorted_pairs = util.sorted_pairs,
  median = util.median,
  format_bytes = core.format_bytes,
  format_table = require('trinity.text').format_table,
  random = require 'trinity.random',
  run = require 'trinity.run',
  global = core.global,
  threads = core.threads,
}

for name, learner in util.sorted_pairs(require 'trinity.learning') do trinity[name] = learner end

--- LibTorch and the BLAS in use, as a line of text; warns on standard error about a slow BLAS.
function trinity.describe_torch()
  local text, slow = core.describe_torch()
  if slow then
    io.stderr:write('trinity: warning: the reference BLAS is loaded, about 16 times slower than ',
      'OpenBLAS; install libopenblas0-openmp\n')
  end
  return text
end

return trinity
