#!/usr/bin/env trinity
-- Runs a script in several processes on this machine, joined by trinity.dist:
--   trinity launch -n 4 script.lua [arguments of the script]
--   trinity launch -n 4 --per_node 2 script.lua
-- A search that learns is shared by the ranks (lib/trinity/search/shared.lua):
--   trinity launch -n 2 scripts/search.lua --method trinity
-- Open MPI's mpirun starts them. Standard output is rank 0's. When a rank dies, hangs or fails, all end, and one
-- message names it. On a cluster the launchers there start the ranks: torchrun, mpirun, srun, Flux, PALS, jsrun,
-- Kubernetes (trinity help processes).

local trinity = require 'trinity'
local util = require 'trinity.base.util'

local declaration = {
  'Runs a script in several processes: trinity launch -n 4 script.lua [arguments].',
  processes = { default = 2, help = 'how many; -n 4 is the same', min = 1, max = 1024, integer = true },
  per_node = { default = 0, help = 'ranks on each of several pretended nodes; 0: all are on one', min = 0, max = 1024,
    integer = true },
  threads = { default = 0, help = 'worker threads of each rank; 0: the cores divided by the ranks', min = 0, max = 4096,
    integer = true },
  backend = { default = '', help = 'gloo or nccl (a GPU for each rank); default: as the script chooses, else gloo' },
  all_output = { default = false, help = 'standard output of every rank, with its number' },
}

-- What comes before the script is ours, the rest the script's.
local takes_value = { ['-n'] = true, ['--processes'] = true, ['--per_node'] = true, ['--threads'] = true,
  ['--backend'] = true }
local ours, rest, words, i = {}, {}, arg, 1
while words[i] and words[i]:sub(1, 1) == '-' do
  local word = words[i]
  if word:match '^%-n%d+$' then
    ours[#ours + 1] = '--processes=' .. word:sub(3)
  elseif takes_value[word] then
    ours[#ours + 1] = ('--%s=%s'):format(word == '-n' and 'processes' or word:sub(3), words[i + 1] or '')
    i = i + 1
  else
    ours[#ours + 1] = word
  end
  i = i + 1
end
for k = i, #words do rest[#rest + 1] = words[k] end

local options = trinity.options(declaration, ours)
if #rest == 0 then util.fail_usage 'launch: which script? (trinity launch -n 4 script.lua)' end
if options.per_node > 0 and options.processes % options.per_node ~= 0 then
  util.fail_usage("option '--per_node': %d processes do not fill nodes of %d", options.processes, options.per_node)
end
local backends = { gloo = true, nccl = true }
if options.backend ~= '' and not backends[options.backend] then
  util.fail_usage("option '--backend': unknown backend %s", util.unknown(options.backend, util.sorted_keys(backends)))
end
if options.backend == '' then options.backend = nil end
os.exit(trinity.dist.launch(rest, options))
