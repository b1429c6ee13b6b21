-- Table 1 of the PaSE paper: how long searches take.

local core = require 'trinity.core'
local model = require 'trinity.graph.model'
local networks = require 'studies.papers.pase_networks'
local page = require 'studies.papers.page'

local iterations = 250000 -- of FlexFlow's chain, the paper's budget
local memory_bytes, entry_bytes = 64 * 2 ^ 30, 8 -- what a table of breadth-first dynamic programming may take here

local function add_times(rows, label, theirs, search, settings)
  local chain = theirs.flexflow_s and search.pase:mcmc(iterations, settings.seed)
  page.unless_stopped()
  rows:add { what = label .. ': PaSE', claimed = theirs.pase_s, ours = search.best.seconds, unit = 's',
    verdict = { text = ('another machine, in C++; optimal: %s; largest set %d'):format(
      search.best.optimal and 'yes' or 'no', search.best.widest_set) } }
  if not chain then return end
  rows:add { what = label .. ": FlexFlow's chain", claimed = theirs.flexflow_s, ours = chain.seconds, unit = 's',
    verdict = { text = ("%d proposals over PaSE's costs, which need no simulation"):format(chain.iterations) } }
  rows:add { what = label .. ': which is shorter', claimed = theirs.pase_s < theirs.flexflow_s and 'PaSE' or 'FlexFlow',
    ours = search.best.seconds < chain.seconds and 'PaSE' or 'FlexFlow',
    verdict = page.order(theirs.pase_s, theirs.flexflow_s, search.best.seconds, chain.seconds) }
end

--- The time of a state of FlexFlow's own chain: lowered and simulated.
local function add_state(rows, label, p, search)
  local cluster = model.cluster(('%sx%d'):format(networks.clusters[1], p))
  local price, begun = networks.simulator(search, cluster), core.clock_s()
  price(search.expert)
  local seconds = core.clock_s() - begun
  rows:add { what = label .. ': FlexFlow, a simulated state', ours = seconds, unit = 's', verdict = {
    text = ("%d of them, the paper's budget, would be %.1f h"):format(iterations, iterations * seconds / 3600) } }
end

local function add_breadth_first(rows, label, claimed, search)
  local needed = networks.breadth_first(search.pase)
  local bytes = entry_bytes * needed.largest_table
  local fits = claimed ~= 'OOM'
  rows:add { what = label .. ': breadth-first tables', claimed = fits and ('%.3g s'):format(claimed) or claimed,
    ours = bytes < 1e15 and core.format_bytes(bytes) or ('%.3g bytes'):format(bytes),
    verdict = page.memory(fits, bytes <= memory_bytes) }
end

return { name = 'table1', title = 'Table 1: search times', quick = networks.quick,
  about = 'Theirs is Python on a machine that is not named, ours C++ on this one: seconds tell an order of magnitude, '
    .. "and which is faster. For breadth-first dynamic programming ours is the size of its largest table, which must "
    .. "not exceed 64 GiB. FlexFlow's own costs are simulations: section figure6.",
  run = function(rows, settings)
    for name, p in networks.cells(settings) do
      local known, search = networks.claimed[name], networks.search(name, p)
      local label, breadth_first = ('%s, p = %d'):format(name, p), known.breadth_first_s
      add_times(rows, label, { pase_s = known.pase_s[p], flexflow_s = known.flexflow_s[p] }, search, settings)
      if known.flexflow_s[p] then add_state(rows, label, p, search) end
      add_breadth_first(rows, label, type(breadth_first) == 'table' and breadth_first[p] or 'OOM', search)
    end
  end }
