-- Real trainings for DASO's page: jobs of scripts/train_distributed.lua on this machine.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local util = require 'trinity.base.util'

local jobs = {}

--- The rows of a job: what train_distributed says of each training (method, seed, seconds, waited_s, loss). given: its
--- options by name; processes, two nodes.
function jobs.train(processes, given)
  local path = os.tmpname()
  local arguments = { core.home .. '/scripts/train_distributed.lua', '--run', 'none', '--output', path }
  for name, value in util.sorted_pairs(given) do
    arguments[#arguments + 1], arguments[#arguments + 2] = '--' .. name, tostring(value)
  end
  local status = core.dist.launch(arguments, { processes = processes, per_node = processes / 2, threads = 1 })
  local text = status == 0 and core.read_file(path)
  os.remove(path)
  if not text then util.fail('a job of scripts/train_distributed.lua ended with exit status %d', status) end
  return json.decode(text).rows
end

--- Values of a field in the rows of a method, in order of seeds.
function jobs.values(rows, method, field)
  local values = {}
  for _, row in ipairs(rows) do
    if row.method == method then values[#values + 1] = row[field] end
  end
  return values
end

return jobs
