-- Strategy-selection problems, also compressed: what is read can be solved.

local core = require 'trinity.core'
local frame = require 'frame'
local select_strategies = require 'trinity.select'

return {
  seeds = { core.read_file(core.home .. '/tests/data/selection/example.json') },
  run = function(text)
    local path = frame.file(text:find '^\31\139' and 'problem.json.gz' or 'problem.json', text)
    frame.try(select_strategies, path, { rounds = 1, seconds = 0.05, table_bytes = 2 ^ 20, quiet = true })
  end,
}
