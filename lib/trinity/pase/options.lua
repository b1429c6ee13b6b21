-- What trinity.pase takes.

local options = require 'trinity.base.options'

local declared = options.declare('trinity.PaseOptions', { help = 'What trinity.pase takes.',
  { 'devices', 'integer', 8, least = 1, most = 4096, help = 'p: no layer has more parts' },
  { 'peak_flops', 'number', 10e12, above = 0, help = 'of a device, for the cost model' },
  { 'bandwidth_bytes_per_s', 'number', 16e9, above = 0, help = 'of the cost model' },
  { 'word_bytes', 'number', 8, above = 0, help = 'of an element on the wire' },
  { 'cutoff', 'integer', 4, least = 1, most = 2 ^ 40, help = 'the smallest block of a dimension' },
  { 'factors', options.words('trinity.PaseFactors', { 'divisors', 'powers_of_two', 'all' }), 'divisors',
    help = 'how many parts a dimension may have' },
  { 'halo', 'boolean', false, help = 'convolutions split along height and width too' },
  { 'sum_edges', 'boolean', false, help = 'all tensors between two layers count, not the last alone' },
  { 'space', options.words('trinity.PaseSpace', { 'code', 'paper' }), 'code',
    help = "'code', the reference code's, or 'paper', for few devices: all factors, cutoff 1, halo, sum_edges" },
})

return declared
