-- Options of layers (trinity.graph.layers), except for windows and attention, which are in the files of these layers.

local options = require 'trinity.base.options'

local layer_options = {}

layer_options.linear = options.declare('trinity.LinearLayerOptions', { help = 'Options of layers:linear.',
  { 'bias', 'boolean', true, help = 'add a bias' },
  { 'weight', 'tensor', axes = 2, otherwise = 'own weights', help = 'shared weights [features, K]' },
  { 'start', { 'plain', 'he' }, 'plain', help = 'variance of the initial weights: 1 / K, or 2 / K (He et al. 2015)' },
  { 'attributes', 'table', help = 'additional attributes of the operator' },
})

layer_options.embedding = options.declare('trinity.EmbeddingLayerOptions', {
  help = 'Options of layers:embedding: rows and features, or a weight.',
  { 'rows', 'integer', least = 1, help = 'number of rows' },
  { 'features', 'integer', least = 1, help = 'width of a row' },
  { 'weight', 'tensor', otherwise = 'own weights', help = 'shared weights [rows, features]' },
})

layer_options.norm = options.declare('trinity.NormLayerOptions', {
  help = 'Options of layers:layer_norm and layers:rms_norm.',
  { 'epsilon', 'number', 1e-5, least = 0, help = 'added to the variance' },
})

layer_options.batch_norm = options.declare('trinity.BatchNormOptions', { help = 'Options of layers:batch_norm.',
  { 'epsilon', 'number', 1e-3, least = 0, help = 'added to the variance' },
  { 'scale', 'boolean', true, help = 'with a scale' },
  { 'fused', 'integer', 1, least = 0, most = 1,
    help = "0: without a fused kernel, as TensorFlow's graphs show" },
})

layer_options.lstm_cell = options.declare('trinity.LstmCellOptions', {
  help = "Options of layers:lstm_cell: weights that steps share (TensorFlow's BasicLSTMCell).",
  { 'weight', 'tensor', axes = 2, needed = true, help = 'weights [I + H, 4 H]' },
  { 'bias', 'tensor', axes = 1, needed = true, help = 'biases [4 H]' },
})

layer_options.lstm_steps = options.declare('trinity.LstmStepsOptions', { help = 'Options of layers:lstm_steps.',
  { 'inputs', 'integer', least = 1, needed = true, help = 'width of the input' },
  { 'hidden', 'integer', least = 1, needed = true, help = 'width of the state' },
  { 'h', 'tensor', axes = 2, otherwise = 'zero, then `batch_size` is needed',
    help = 'the state [N, hidden] before the first step' },
  { 'c', 'tensor', axes = 2, otherwise = 'h', help = 'the cell [N, hidden] before the first step' },
  { 'batch_size', 'integer', least = 1, help = 'N, for a zero initial state' },
})

layer_options.lstm = options.declare('trinity.LstmLayerOptions', { help = 'Options of layers:lstm.',
  { 'hidden', 'integer', least = 1, needed = true, help = 'H, width of the state' },
  { 'bidirectional', 'boolean', false, help = 'D is 2, else 1' },
  { 'time_major', 'boolean', false, help = '[T, N, I] to [T, D, N, H] and [D, N, H]' },
})

return layer_options
