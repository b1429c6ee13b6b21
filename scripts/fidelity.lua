#!/usr/bin/env trinity
-- What trinity says beside what others measured or counted: one comparison a word (lib/trinity/fidelity).

local trinity = require 'trinity'
local fidelity = require 'trinity.fidelity'
local util = require 'trinity.base.util'

local options = trinity.options(util.merged({
  'Sets predictions beside numbers of others. ' .. fidelity.help() .. '.',
  comparison = { default = '', position = true, help = table.concat(fidelity.names, ', ') },
  constants = { default = false, help = 'lists the fitted constants that predictions rest on' },
  json = { default = false, help = 'JSON on standard output and nothing else' },
}, fidelity.options()))

fidelity.run(options.comparison, options)
