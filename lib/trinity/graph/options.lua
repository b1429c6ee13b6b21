-- Options of graphs' methods (trinity.graph) and of trinity.model.

local options = require 'trinity.base.options'

local graph_options = {}

local colocate = options.words('trinity.Colocate', { 'forward', 'parameters' })
local optimizer = options.words('trinity.Optimizer', { 'sgd', 'momentum', 'adam' })

graph_options.algorithms = options.words('trinity.CollectiveAlgorithm', { 'automatic', 'ring', 'halving_doubling',
  'tree', 'hierarchical', 'leader', 'multicast', 'in_network' })

graph_options.training = options.declare('trinity.TrainingOptions', { help = 'Options of graph:to_training.',
  { 'colocate', colocate, 'forward', help = 'which backward operators are in the colocation unit of their forward '
    .. 'operator' },
  { 'optimizer', optimizer, 'momentum', help = 'optimizer, which determines the state per weight' },
  { 'gradient_dtype', { 'float32', 'float16', 'bfloat16', 'float64' }, otherwise = "the weights' dtype",
    help = 'dtype of weight gradients' },
})

graph_options.model = options.declare('trinity.ModelOptions', { extends = graph_options.training,
  help = 'Options of trinity.model.', open = 'options of the model',
  { 'training', 'boolean', true, help = 'false: only the forward graph' },
  { 'dtype', { 'float32', 'float16', 'bfloat16', 'float64', 'float8' }, 'float32', late = true,
    help = 'dtype of activations and weights (built-in models and config.json; default of a config.json: its own, or '
      .. "bfloat16); 'float8': bfloat16 with FP8 operands of matmuls" },
  { 'cluster', 'any', as = 'trinity.Cluster|string', help = 'cluster of the training, which chooses the default '
    .. 'dtype: gpt2, bert_base, vit_b16 and moe_transformer use bfloat16 with float32 gradients if all devices '
    .. 'support it; decoders without a dtype use float16 if a device does not' },
  { 'dimensions', 'table', as = 'table<string, integer>', help = 'symbolic sizes of an ONNX file, by name' },
  { 'copy_shared_vectors', 'boolean', true, late = true, help = 'ONNX files: copy a vector that several operators '
    .. 'read (exporters merge equal vectors); false: one Variable' },
})

local bucket_bytes = { 'bucket_bytes', 'integer', 25000000, least = 1, most = 2 ^ 50,
  help = 'size of gradient buckets, which are reduced together' }
local algorithm = { 'algorithm', graph_options.algorithms, 'automatic', help = 'algorithm of the all-reduces' }

graph_options.replicas = options.declare('trinity.ReplicaOptions', { help = 'Options of graph:replicate.',
  { 'replicas', 'integer', least = 1, most = 2 ^ 24, needed = true, help = 'number of replicas' },
  bucket_bytes, algorithm,
  { 'placement', 'any', as = 'trinity.Placement', otherwise = 'one bucket list per colocation unit',
    help = 'placement of one replica; gradients on one device share buckets' },
})

graph_options.recompute = options.declare('trinity.RecomputeOptions', { help = 'Options of graph:recompute.',
  { 'segment', 'any', as = 'trinity.Placement|integer[]', needed = true,
    help = 'per operator: number of its segment, which is recomputed together; 0: not recomputed' },
  { 'eager', 'boolean', false, help = 'a segment may be recomputed before its first gradient arrives' },
})

graph_options.stage_replicas = options.declare('trinity.StageReplicaOptions', {
  help = 'Options of graph:replicate_stages.',
  { 'stage', 'any', as = 'trinity.Placement|integer[]', needed = true, help = 'stage per operator, from 1' },
  { 'replicas', 'table', as = 'integer[]', needed = true, help = 'number of replicas per stage' },
  bucket_bytes, algorithm,
  { 'at_share', 'table', as = '(trinity.Graph|false)[]', otherwise = 'costs are divided',
    help = "per stage: the network with a replica's part of the batch" },
})

graph_options.dot = options.declare('trinity.DotOptions', { help = 'Options of graph:to_dot.',
  { 'units', 'boolean', false, help = 'one node per colocation unit' },
})

return graph_options
