-- Options of layers (trinity.layers) but for windows and attention, which stand beside them.

local options = require 'trinity.base.options'

local layer_options = {}

layer_options.linear = options.declare('trinity.LinearLayerOptions', { help = 'What layers:linear takes.',
  { 'bias', 'boolean', true, help = 'whether something is added' },
  { 'weight', 'tensor', axes = 2, otherwise = 'weights of its own', help = 'a variable [features, K]' },
  { 'start', { 'plain', 'he' }, 'plain', help = 'variance of the first weights: 1 / K, or 2 / K (He et al. 2015)' },
  { 'attributes', 'table', help = 'of the operator, beside its own' },
})

layer_options.embedding = options.declare('trinity.EmbeddingLayerOptions', {
  help = 'What layers:embedding takes: rows and features, or a weight.',
  { 'rows', 'integer', least = 1, help = 'how many there are' },
  { 'features', 'integer', least = 1, help = 'width of a row' },
  { 'weight', 'tensor', otherwise = 'weights of its own', help = 'a variable [rows, features]' },
})

layer_options.norm = options.declare('trinity.NormLayerOptions', {
  help = 'What layers:layer_norm and layers:rms_norm take.',
  { 'epsilon', 'number', 1e-5, least = 0, help = 'added to the variance' },
})

layer_options.batch_norm = options.declare('trinity.BatchNormOptions', { help = 'What layers:batch_norm takes.',
  { 'epsilon', 'number', 1e-3, least = 0, help = 'added to the variance' },
  { 'scale', 'boolean', true, help = 'whether there is one' },
  { 'fused', 'integer', 1, least = 0, most = 1,
    help = "0: without a fused kernel, as TensorFlow's graphs show" },
})

layer_options.lrn = options.declare('trinity.LrnOptions', { help = 'What layers:lrn takes.',
  { 'size', 'integer', least = 1, most = 2 ^ 31, needed = true, help = 'channels that count' },
  { 'alpha', 'number', 1e-4, help = 'weight of their squares' },
  { 'beta', 'number', 0.75, help = 'exponent' },
  { 'bias', 'number', 1, help = 'added to the sum' },
})

layer_options.lstm_cell = options.declare('trinity.LstmCellOptions', {
  help = "What layers:lstm_cell takes: variables that steps share (TensorFlow's BasicLSTMCell).",
  { 'weight', 'tensor', axes = 2, needed = true, help = 'a variable [I + H, 4 H]' },
  { 'bias', 'tensor', axes = 1, needed = true, help = 'a variable [4 H]' },
})

layer_options.lstm_steps = options.declare('trinity.LstmStepsOptions', { help = 'What layers:lstm_steps takes.',
  { 'inputs', 'integer', least = 1, needed = true, help = 'width of what comes in' },
  { 'hidden', 'integer', least = 1, needed = true, help = 'width of the state' },
  { 'h', 'tensor', axes = 2, otherwise = 'zero, then `batch_size` is needed',
    help = 'the state [N, hidden] before the first step' },
  { 'c', 'tensor', axes = 2, otherwise = 'h', help = 'the cell [N, hidden] before the first step' },
  { 'batch_size', 'integer', least = 1, help = 'N of a state that is zero' },
})

layer_options.lstm = options.declare('trinity.LstmLayerOptions', { help = 'What layers:lstm takes.',
  { 'hidden', 'integer', least = 1, needed = true, help = 'H, width of the state' },
  { 'bidirectional', 'boolean', false, help = 'D is 2, else 1' },
  { 'time_major', 'boolean', false, help = '[T, N, I] to [T, D, N, H] and [D, N, H]' },
})

return layer_options
