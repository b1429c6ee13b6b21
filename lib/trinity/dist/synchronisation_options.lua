-- Options of trinity.synchronisation.

local graph_options = require 'trinity.graph.options'
local options = require 'trinity.base.options'

local synchronisation_options = {}

synchronisation_options.bsp = options.declare('trinity.BspOptions', { help = 'Options of synchronisation.bsp.',
  { 'algorithm', graph_options.algorithms, 'automatic',
    help = "algorithm of the all-reduce: 'ring' is flat, 'hierarchical' reduces inside nodes, between nodes, inside "
      .. "nodes" },
  { 'bucket_bytes', 'integer', 25000000, least = 0, most = 2 ^ 50, help = 'size of gradient buckets, which are '
    .. 'reduced during the backward pass; 0: one all-reduce after it' },
})

synchronisation_options.parameter_server = options.declare('trinity.ServerOptions', {
  help = 'Options of synchronisation.parameter_server.',
  { 'servers', 'integer', 1, least = 1, most = 4096,
    help = 'number of replicas whose devices hold a part of the parameters, spread over the nodes' },
  { 'asynchronous', 'boolean', false, help = 'replicas do not wait for each other' },
})

synchronisation_options.local_sgd = options.declare('trinity.LocalSgdOptions', {
  help = 'Options of synchronisation.local_sgd.',
  { 'steps', 'integer', 8, least = 1, most = 2 ^ 30, help = 'batches between averages' },
  { 'algorithm', graph_options.algorithms, 'automatic', help = 'algorithm of the averaging' },
})

synchronisation_options.replicate = options.declare('trinity.ReplicationSpec', {
  help = 'Options of synchronisation.replicate: a graph, or a strategy instead.',
  { 'graph', 'object', class = 'graph', help = "training step with one replica's batch" },
  { 'strategy', 'any', as = 'trinity.Strategy',
    help = 'strategy for one replica, instead of graph and placement' },
  { 'cluster', 'object', class = 'cluster', needed = true, help = 'devices and network' },
  { 'synchronisation', 'object', class = 'synchronisation', as = 'trinity.Synchronisation', needed = true,
    help = 'how replicas are synchronized' },
  { 'placement', 'any', as = 'trinity.Placement', otherwise = 'all on device 1',
    help = 'placement of one replica, on the first devices' },
  { 'replicas', 'integer', least = 1, most = 4096, otherwise = 'all that fit', help = 'number of replicas' },
})

synchronisation_options.train = options.declare('trinity.ReplicatedTraining', { help = 'Options of replication:train.',
  { 'epochs', 'integer', 1, least = 1, most = 1e5, help = 'number of epochs' },
  { 'batches', 'integer', least = 1, most = 1e7, needed = true, help = 'batches per epoch, on every replica' },
  { 'loss', 'any', as = 'number[]|fun(epoch: integer): number',
    otherwise = 'a constant, on which its skips cycle every three epochs',
    help = "losses per epoch for DASO's schedule" },
})

return synchronisation_options
