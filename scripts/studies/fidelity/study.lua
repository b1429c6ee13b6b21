#!/usr/bin/env trinity
-- Predictions compared with what others measured or counted: one comparison a word (scripts/studies/fidelity/).

local trinity = require 'trinity'
local fidelity = require 'studies.fidelity'
local util = require 'trinity.base.util'

local options = trinity.options(util.merged({
  'Compares predictions with numbers of others. ' .. fidelity.help() .. '.',
  comparison = { default = '', position = true, help = table.concat(fidelity.names, ', ') .. ', errors' },
  constants = { default = 'calibrated', help = "of the GPUs: calibrated, data_sheet, or a file of Lua with one's own" },
  json = { default = false, help = 'JSON on standard output and nothing else' },
}, fidelity.options()))

fidelity.run(options.comparison, options)
