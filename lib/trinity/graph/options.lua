-- Options of graphs' methods (trinity.graph) and of trinity.model.

local options = require 'trinity.base.options'

local graph_options = {}

local colocate = options.words('trinity.Colocate', { 'forward', 'parameters' })
local optimizer = options.words('trinity.Optimizer', { 'sgd', 'momentum', 'adam' })

graph_options.algorithms = options.words('trinity.CollectiveAlgorithm', { 'automatic', 'ring', 'halving_doubling',
  'tree', 'hierarchical', 'leader', 'multicast', 'in_network' })

graph_options.training = options.declare('trinity.TrainingOptions', { help = 'What a training step is made by.',
  { 'colocate', colocate, 'forward', help = 'which backward operators stay with their forward operator' },
  { 'optimizer', optimizer, 'momentum', help = 'state per weight' },
  { 'gradient_dtype', { 'float32', 'float16', 'bfloat16', 'float64' }, otherwise = 'that of the weights',
    help = 'of the gradients of weights' },
})

graph_options.model = options.declare('trinity.ModelOptions', { extends = graph_options.training,
  help = 'What trinity.model takes.', open = 'options of the model',
  { 'training', 'boolean', true, help = 'false: the forward graph alone' },
  { 'dtype', { 'float32', 'float16', 'bfloat16', 'float64', 'float8' }, 'float32', late = true,
    help = "of activations and weights (builders only); a config.json's: what it says, or bfloat16; its 'float8': "
      .. 'bfloat16, with operands of products in FP8' },
  { 'cluster', 'any', as = 'trinity.Cluster|string', help = 'where it is trained: gpt2, bert_base, vit_b16 and '
    .. 'moe_transformer without a dtype are in bfloat16, with float32 gradients, if all of its devices have that; '
    .. 'decoders whose file says no dtype in float16 if they have not' },
  { 'dimensions', 'table', as = 'table<string, integer>', help = 'sizes that an ONNX file leaves open, by name' },
  { 'copy_shared_vectors', 'boolean', true, late = true, help = 'of ONNX files: a vector read by several operators is '
    .. 'copied (exporters merge equal vectors), or one Variable' },
})

local bucket_bytes = { 'bucket_bytes', 'integer', 25000000, least = 1, most = 2 ^ 50,
  help = 'gradients that are reduced together' }
local algorithm = { 'algorithm', graph_options.algorithms, 'automatic', help = 'of all-reduces' }

graph_options.replicas = options.declare('trinity.ReplicaOptions', { help = 'What graph:replicate takes.',
  { 'replicas', 'integer', least = 1, most = 2 ^ 24, needed = true, help = 'how many' },
  bucket_bytes, algorithm,
  { 'placement', 'any', as = 'trinity.Placement', otherwise = 'those of one colocation unit share them',
    help = 'of one replica: gradients of one device share buckets' },
})

graph_options.recompute = options.declare('trinity.RecomputeOptions', { help = 'What graph:recompute takes.',
  { 'segment', 'any', as = 'trinity.Placement|integer[]', needed = true,
    help = 'per operator: those of one number run again together; 0: it is left as it is' },
  { 'eager', 'boolean', false, help = 'a segment may begin before a gradient comes in' },
})

graph_options.stage_replicas = options.declare('trinity.StageReplicaOptions', {
  help = 'What graph:replicate_stages takes.',
  { 'stage', 'any', as = 'trinity.Placement|integer[]', needed = true, help = 'per operator' },
  { 'replicas', 'table', as = 'integer[]', needed = true, help = 'per stage' },
  bucket_bytes, algorithm,
  { 'at_share', 'table', as = '(trinity.Graph|false)[]', otherwise = 'costs are divided',
    help = "per stage the network at a replica's part of the batch" },
})

graph_options.dot = options.declare('trinity.DotOptions', { help = 'A picture of a graph.',
  { 'units', 'boolean', false, help = 'a node per colocation unit' },
})

return graph_options
