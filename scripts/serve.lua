#!/usr/bin/env trinity
-- Answers requests of another program: a line of JSON on standard input each, a line of JSON on standard output for
-- each (trinity help serving). --schema prints the protocol as a JSON Schema.

local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local serve = require 'trinity.command.serve'

local options = trinity.options(cli.declare('model batch_size cluster', {
  'Answers requests of other programs: JSON lines on standard input and output.',
  'keeps no run',
  schema = { default = false, help = 'print the protocol as a JSON Schema' },
  max_line_bytes = { default = 2 ^ 26, min = 1024, max = 2 ^ 30, integer = true, help = 'longest request' },
  max_placements = { default = 65536, min = 1, max = 2 ^ 20, integer = true,
    help = 'maximum number of placements in a request' },
  max_problems = { default = 8, min = 1, max = 4096, integer = true,
    help = 'maximum number of problems that are kept between requests' },
  max_envs = { default = 16, min = 1, max = 4096, integer = true, help = 'maximum number of environments' },
  max_seconds = { type = 'number', min = 0.001, help = 'time limit of a request (default: none)' },
}))

if options.schema then
  print(trinity.files.json.encode(serve.schema()))
else
  serve.run({ max_line_bytes = options.max_line_bytes, max_placements = options.max_placements,
    max_problems = options.max_problems, max_envs = options.max_envs, max_seconds = options.max_seconds or math.huge },
    { model = options.model, batch_size = options.batch_size, cluster = options.cluster })
end
