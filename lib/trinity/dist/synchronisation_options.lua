-- Options of trinity.synchronisation.

local graph_options = require 'trinity.graph.options'
local options = require 'trinity.base.options'

local synchronisation_options = {}

synchronisation_options.bsp = options.declare('trinity.BspOptions', { help = 'What synchronisation.bsp takes.',
  { 'algorithm', graph_options.algorithms, 'automatic',
    help = "of the all-reduce: 'ring' is flat, 'hierarchical' goes inside nodes, between, inside" },
  { 'bucket_bytes', 'integer', 25000000, least = 0, most = 2 ^ 50, help = 'a bucket is reduced while the backward pass '
    .. 'goes on; 0: one all-reduce when it has ended' },
})

synchronisation_options.parameter_server = options.declare('trinity.ServerOptions', {
  help = 'What synchronisation.parameter_server takes.',
  { 'servers', 'integer', 1, least = 1, most = 4096,
    help = "how many replicas' devices keep a share of the parameters each, spread over the nodes" },
  { 'asynchronous', 'boolean', false, help = 'replicas do not wait for each other' },
})

synchronisation_options.local_sgd = options.declare('trinity.LocalSgdOptions', {
  help = 'What synchronisation.local_sgd takes.',
  { 'steps', 'integer', 8, least = 1, most = 2 ^ 30, help = 'batches between averages' },
  { 'algorithm', graph_options.algorithms, 'automatic', help = 'of the averages' },
})

synchronisation_options.replicate = options.declare('trinity.ReplicationSpec', {
  help = 'What synchronisation.replicate takes: a graph, or a strategy in its place.',
  { 'graph', 'object', class = 'graph', help = "a training step on one replica's batch" },
  { 'strategy', 'any', as = 'trinity.Strategy',
    help = 'in place of graph and placement: a strategy for one replica' },
  { 'cluster', 'object', class = 'cluster', needed = true, help = 'where it runs' },
  { 'synchronisation', 'object', class = 'synchronisation', as = 'trinity.Synchronisation', needed = true,
    help = 'how replicas are kept together' },
  { 'placement', 'any', as = 'trinity.Placement', otherwise = 'all on device 1',
    help = 'of one replica, on the first devices' },
  { 'replicas', 'integer', least = 1, most = 4096, otherwise = 'as many as fit', help = 'how many' },
})

synchronisation_options.train = options.declare('trinity.ReplicatedTraining', { help = 'What replication:train takes.',
  { 'epochs', 'integer', 1, least = 1, most = 1e5, help = 'how many' },
  { 'batches', 'integer', least = 1, most = 1e7, needed = true, help = 'an epoch, on every replica' },
  { 'loss', 'any', as = 'number[]|fun(epoch: integer): number',
    otherwise = 'a constant, on which its skips cycle every three epochs',
    help = "what DASO's schedule is told after every epoch" },
})

return synchronisation_options
