#!/usr/bin/env trinity
-- What runs on GPUs, on a machine that has some: the executor, collectives over NCCL, the profile, and Figure 9 of the
-- Trinity paper, each a part of a report with what it printed. No test of the suite runs it on a GPU:
--   build/trinity tests/gpu/report.lua --out FILE
-- With --devices cpu:0,cpu:1 the same goes over processors and Gloo, which is what a test does. The exit status is 1
-- where a part fails, or where there is no such device.

local trinity = require 'trinity'
local page = require 'trinity.paper.page'
local run_list = require 'trinity.runs.list'
local util = require 'trinity.base.util'

local options = trinity.options {
  'Runs executor, NCCL, profile and Figure 9 on GPUs and writes a report.',
  devices = { default = '', help = 'with commas; default: all CUDA devices that LibTorch sees' },
  quick = { default = false, help = 'small networks and few steps' },
  out = { default = 'runs/gpu-report.md', writes = '', help = 'where the report goes' },
}

-- All CUDA devices that LibTorch opens.
local function cuda_devices()
  local found = {}
  while pcall(function() return trinity.tensor.zeros(1, { device = ('cuda:%d'):format(#found) }) end) do
    found[#found + 1] = ('cuda:%d'):format(#found)
  end
  return found
end

local devices = options.devices ~= '' and util.words(options.devices) or cuda_devices()
if #devices == 0 then
  io.stderr:write 'trinity: LibTorch sees no CUDA device here: nothing was run, and there is no report\n'
  os.exit(1)
end
local is_cuda = devices[1]:match '^cuda' ~= nil

local parts, failed = {}, 0

local function note(title, what, ok, text, seconds)
  failed = failed + (ok and 0 or 1)
  parts[#parts + 1] = ('## %s: %s\n\n`%s`, %.1f s\n\n```\n%s\n```\n'):format(title, ok and 'passed' or 'FAILED',
    what, seconds, (text:gsub('%s+$', '')))
  print(('%-10s %s'):format(title, ok and 'passed' or 'FAILED'))
end

local function quoted(word) return "'" .. word:gsub("'", "'\\''") .. "'" end

-- A part that is a command of the program; what it prints has to contain `pattern`.
local function command(title, words, pattern)
  local begun = trinity.clock_s()
  local pipe = io.popen(table.concat(util.map({ run_list.program(), unpack(words) }, quoted), ' ')
    .. ' 2>&1; echo "status=$?"')
  local text = pipe:read '*a'
  pipe:close()
  local ok = text:match 'status=0\n$' ~= nil and text:find(pattern) ~= nil
  note(title, 'trinity ' .. table.concat(words, ' '), ok, text, trinity.clock_s() - begun)
end

local list = table.concat(devices, ',')
local network = options.quick and { '--model', 'alexnet', '--batch_size', '1' }
  or { '--model', 'inception_v3', '--batch_size', '16' }
local steps = options.quick and '2' or '20'

command('executor', { 'execute', network[1], network[2], network[3], network[4], '--devices', list, '--method',
  #devices > 1 and 'contiguous' or 'single_device', '--steps', steps, '--warm_up', '1', '--run', 'none' }, 'step')

local sum = os.tmpname()
trinity.files.write(sum, [[
  local trinity = require 'trinity'
  local job = trinity.dist.init()
  local x = job:all_reduce(trinity.tensor.full({ 2 ^ 20 }, job.rank + 1))
  local expected = job.size * (job.size + 1) / 2
  job:print((x - expected):abs():max():item() == 0 and 'the sum is right' or 'the sum is wrong')
]])
command('NCCL', { 'launch', '-n', ('%d'):format(#devices), '--backend', is_cuda and 'nccl' or 'gloo', sum },
  'the sum is right')
os.remove(sum)

local profile = os.tmpname()
command('profile', { 'profile', network[1], network[2], network[3], network[4], '--device', devices[1], '--devices',
  list, '--steps', steps, '--warm_up', '1', '--largest_copy', options.quick and '4096' or '268435456', '--copies',
  options.quick and '1' or '7', '--out', profile, '--run', 'none' }, '')
os.remove(profile)

-- Figure 9 as its page has it, on these devices.
local function figure()
  local section = require 'trinity.paper.trinity_measured'
  local settings = { quick = options.quick, seed = 1, seeds = 1, devices = devices, output = 'runs/gpu',
    format = 'text' }
  local begun = trinity.clock_s()
  local ok, text = pcall(function()
    local rows, notes = page.run(section, settings)
    return page.text(section, rows, notes, settings)
  end)
  note('Figure 9', 'trinity.paper.trinity_measured', ok, tostring(text), trinity.clock_s() - begun)
end
figure()

local machine = trinity.describe_machine()
trinity.files.write(options.out, ('# On %s\n\n%s, %s\n\n%s'):format(list, machine.processor, trinity.describe_torch(),
  table.concat(parts, '\n')))
print(('the report is in %s'):format(options.out))
os.exit(failed == 0 and 0 or 1)
