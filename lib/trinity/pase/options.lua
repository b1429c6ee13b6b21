-- Options of trinity.pase.

local options = require 'trinity.base.options'

local declared = options.declare('trinity.PaseOptions', { help = 'Options of trinity.pase.',
  { 'devices', 'integer', 8, least = 1, most = 4096, help = 'number of devices p, the maximum number of parts of a '
    .. 'layer' },
  { 'peak_flops', 'number', 10e12, above = 0, help = 'peak FLOP/s of a device in the cost model' },
  { 'bandwidth_bytes_per_s', 'number', 16e9, above = 0, help = 'bandwidth in the cost model' },
  { 'word_bytes', 'number', 8, above = 0, help = 'bytes per element in messages' },
  { 'cutoff', 'integer', 4, least = 1, most = 2 ^ 40, help = 'minimum block size of a dimension' },
  { 'factors', options.words('trinity.PaseFactors', { 'divisors', 'powers_of_two', 'all' }), 'divisors',
    help = 'possible numbers of parts of a dimension' },
  { 'halo', 'boolean', false, help = 'also split convolutions along height and width' },
  { 'sum_edges', 'boolean', false, help = 'count all tensors between two layers, not only the last' },
  { 'space', options.words('trinity.PaseSpace', { 'code', 'paper' }), 'code',
    help = "'code', the reference code's, or 'paper', for few devices: all factors, cutoff 1, halo, sum_edges" },
})

return declared
