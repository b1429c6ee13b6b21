#!/usr/bin/env trinity
-- Run folders as one HTML page that opens without a network: what was searched and found, comparison, convergence,
-- placement, timeline, memory, and what single experiments add. Several runs stand side by side. With --json one object
-- with the fields out and bytes.

local report = require 'trinity.report'
local run_list = require 'trinity.runs.list'
local run_state = require 'trinity.runs.state'
local trinity = require 'trinity'
local util = require 'trinity.base.util'

local options = trinity.options {
  'Writes a report on runs, named by folder or by name.',
  'keeps no run',
  names = { default = {}, position = true, help = 'RUN [RUN2 ...]: names in --runs, or folders' },
  out = { default = '', writes = '', help = "where the page goes; '': report.html in the folder of the first run" },
  json = { default = false, help = 'JSON on standard output and nothing else' },
}

local names = options.names
if #names == 0 then util.fail_usage 'expected the name or the folder of a run (trinity runs lists them)' end
if #names > 8 then util.fail_usage('expected at most 8 runs, got %d', #names) end
local folders = util.map(names, function(name) return run_list.find(run_state.root(), name).path end)

local out = options.out
if out == '' then
  out = folders[1] .. (#folders == 1 and '/report.html' or '/report-together.html')
end
local bytes = report.write(folders, out)
if options.json then print(trinity.json.encode { out = out, bytes = bytes })
else print(('%s (%s), opens in any browser'):format(out, trinity.format_bytes(bytes))) end
