-- Searches shared by the ranks of a job. Every rank runs the same search with the same seed, so all have the same
-- state: used budget, best so far, curve, networks. Each rank simulates a part of a batch, and all ranks get all
-- results. Rank 0 decides for all whatever depends on a clock.
--
-- trinity.methods.trinity, best and all that train by learn.training (tapp, placers, post, trinity.learn, ...) share a
-- search if trinity.dist.current() returns a job. Without a job, these functions do the work of a single process.

local array = require 'trinity.base.array'
local checkpoints = require 'trinity.runs.checkpoints'
local core = require 'trinity.core'
local infeasibility = require 'trinity.strategy.infeasibility'
local ranks = require 'trinity.dist.ranks'
local search_curve = require 'trinity.search.curve'
local simulator = require 'trinity.strategy.simulator'
local tensor = require 'trinity.nn.tensor'
local util = require 'trinity.base.util'

local dist_search = {}

-- Returns the sums of numbers over all ranks.
local function summed(job, numbers)
  return job:all_reduce(tensor.new(numbers, { dtype = 'float64' })):totable()
end

--- Returns rank 0's value of a number that depends on a clock.
function dist_search.of_rank_0(job, number)
  if not job then return number end
  return job:broadcast(tensor.new({ number }, { dtype = 'float64' })):totable()[1]
end

--- Returns rank 0's answer to a question on which ranks may differ.
function dist_search.agreed(job, yes) return dist_search.of_rank_0(job, yes and 1 or 0) == 1 end

--- Returns the first and last of `count` samples (from 1) for this rank; none if last < first.
function dist_search.range(job, count)
  if not job then return 1, count end
  return math.floor(count * job.rank / job.size) + 1, math.floor(count * (job.rank + 1) / job.size)
end

-- Encodes a stop request of this rank as a number: 1 for Ctrl-C, more for SIGTERM. The sum over all ranks shows whether
-- any rank got a request, and which one.
local by_sigterm, statuses = 2 ^ 20, { ctrl_c = 130, sigterm = 143 }
local function asks(status)
  return status == statuses.sigterm and by_sigterm or status == statuses.ctrl_c and 1 or 0
end

local function status_of(asked) return asked >= by_sigterm and statuses.sigterm or statuses.ctrl_c end

-- Stops the search `run` if the sum says so. settle() passes the request to the script at the end of the search.
local function heed(run, asked)
  if asked > 0 then run.stopped, run.stop_status = true, status_of(asked) end
end

--- Returns whether a search continues: rank 0, whose clock counts, says so, and no rank got a stop request. All ranks
--- stop after the same batch.
function dist_search.goes_on(run, job, yes)
  if not job then return yes end
  local values = summed(job, { job.rank == 0 and yes and 1 or 0, asks(core.noted_status()) })
  heed(run, values[2])
  return values[1] > 0 and values[2] == 0
end

--- Does the same for a search whose batches are simulated by evaluate(), which checks at every batch.
function dist_search.more(run, job)
  if not job then return run:more() end
  local whole = run.whole or run
  if run.in_time == nil then return dist_search.goes_on(whole, job, run:more()) end
  return run.in_time and not whole.stopped and run:allowance(1) > 0
end

--- Ends a shared search. If any rank got a stop request, all ranks get it.
function dist_search.settle(run)
  local asked = summed(run.agrees, { asks(run.stop_status or core.noted_status()) })[1]
  if asked > 0 then core.accept_stop(status_of(asked)) end
end

-- Options that may differ between ranks.
local free = { quiet = true, seconds = true }

local function describe(run)
  local problem, lines = run.problem, { 'method ' .. run.method }
  lines[2] = ('graph %s %s'):format(problem.graph.name, problem.graph.fingerprint)
  lines[3] = ('cluster %s %s'):format(problem.cluster.name, problem.cluster.fingerprint)
  for key, value in util.sorted_pairs(run.options) do
    if type(value) == 'table' then value = ('a list of %d'):format(#value) end
    if not free[key] then lines[#lines + 1] = ('option %s = %s'):format(key, tostring(value)) end
  end
  return table.concat(lines, '\n')
end

--- Returns a function that sends rank 0's checkpoint text to all ranks (checkpoints.begin), or nil without a job.
function dist_search.share(job)
  return job and function(text) return ranks.text(job, text) end or nil
end

--- Starts sharing the search `run` over a job (nil: no sharing). Ends the job with a message that names the rank if a
--- rank runs another search.
function dist_search.begin(run, job)
  if not job then return nil end
  core.begin_agreement() -- which search.run ends
  run.agrees = job
  job:agree('the search', describe(run))
  run.progress.quiet = run.progress.quiet or job.rank > 0
  return job
end

-- Makes rank `owner`'s placement the best one on all ranks.
local function adopt(run, job, owner, placement)
  local problem = run.problem
  ranks.take_placement(job, owner, placement, run.placement)
  local metrics = simulator.run_batch('search:evaluate', problem, { run.placement }, nil, true)[1]
  run.best = { metrics = metrics, reward = problem:score(metrics, run.placement, true) }
end

-- Metrics of a placement that ranks exchange, in this order.
local shared_fields = { 'step_time_s', 'peak_memory_bytes', 'peak_communication_bytes', 'total_communication_bytes',
  'excess_memory_bytes', 'transfers' }
local values_each = #shared_fields + 2

-- Exchanges rewards and metrics of `total` samples, of which this rank simulated those from `first` on, and also
-- whether rank 0 has time left and whether any rank got a stop request.
local function gather(run, job, placements, metrics, first, total)
  local mine, problem, in_time = {}, run.problem, job.rank == 0 and run:more()
  for i = 1, total * values_each do mine[i] = 0 end
  mine[#mine + 1] = in_time and 1 or 0
  mine[#mine + 1] = asks(core.noted_status())
  for i = 1, #metrics do
    local at = (first + i - 2) * values_each
    mine[at + 1], mine[at + 2] = problem:score(metrics[i], placements[i]), metrics[i].feasible and 1 or 0
    for k, name in ipairs(shared_fields) do mine[at + 2 + k] = metrics[i][name] end
  end
  local all, rewards, list = summed(job, mine), array.double(total), {}
  for i = 1, total do
    local at = (i - 1) * values_each
    rewards[i], list[i] = all[at + 1], { feasible = all[at + 2] == 1 }
    for k, name in ipairs(shared_fields) do list[i][name] = all[at + 2 + k] end
  end
  run.in_time = all[#all - 1] == 1
  heed(run.whole or run, all[#all])
  return rewards, list
end

local function rank_of(job, sample, total)
  for rank = 0, job.size - 1 do
    if sample <= math.floor(total * (rank + 1) / job.size) then return rank end
  end
end

--- search:evaluate for a batch of `total` placements, of which this rank has those from number `first` on. `whole`:
--- size of the divided batch if only its first `total` placements are evaluated. Returns rewards and metrics of all
--- placements; metrics are tables without values per device. `run` may be a table that represents a search in its field
--- `whole`.
function dist_search.evaluate(run, job, placements, first, total, whole)
  if not job then return run:evaluate(placements) end
  local problem, metrics = run.problem, {}
  if #placements > 0 then
    metrics = simulator.run_batch('search:evaluate', problem, placements, nil, true)
  end
  local rewards, list = gather(run, job, placements, metrics, first, total)
  run = run.whole or run
  local winner, best, sum = nil, run.best, 0
  for i = 1, total do
    sum = sum + rewards[i]
    local result = { metrics = list[i], reward = rewards[i] }
    if infeasibility.better(result, best) then winner, best = i, result end
  end
  if winner then adopt(run, job, rank_of(job, winner, whole or total), placements[winner - first + 1]) end
  run.evaluations = run.evaluations + total
  search_curve.note(run, sum / total)
  run:show(total)
  return rewards, list
end

--- Takes over rank 0's evaluations, best and curve after work that was equal on all ranks except for clocks.
function dist_search.follow(run, job)
  if not job then return end
  local has_best = run.best and 1 or 0
  local state = { run.evaluations, run.step, has_best, #run.curve, run.mean_reward or 0 }
  state = job:broadcast(tensor.new(state, { dtype = 'float64' })):totable()
  if state[3] == 0 then -- rank 0 has simulated nothing
    run.best, run.evaluations, run.step, run.curve = nil, state[1], 0, {}
    return
  end
  adopt(run, job, 0, run.placement)
  local points = checkpoints.curve_numbers(run.curve)
  points = util.listed(#checkpoints.point * state[4], function(i) return points[i] or 0 end)
  points = job:broadcast(tensor.new(points, { dtype = 'float64' })):totable()
  run.evaluations, run.step, run.curve, run.mean_reward = state[1], state[2], checkpoints.curve_of(points), state[5]
end

--- Returns a search of this rank alone that starts from the state of `run`, with `evaluations` of its budget and its
--- own best.
function dist_search.branch(run, evaluations)
  local own = util.merged(run, { placement = run.problem:placement(), sum_of_means = 0, curve = {},
    options = util.merged(run.options, { evaluations = run.evaluations + evaluations }) })
  for i = 1, #run.curve do own.curve[i] = run.curve[i] end
  for op = 1, #own.placement do own.placement[op] = run.placement[op] end
  return setmetatable(own, getmetatable(run))
end

local pulse_s = 1 -- between two synchronizations of ranks that search independently

--- Returns a hook on_scores for ask_tell() that synchronizes independently searching ranks now and then, so that no
--- rank is assumed to hang, all end with rank 0 at a time limit, and all stop if one gets a stop request. Call the
--- second returned function when this rank's search has ended.
function dist_search.pulse(own, job)
  local last, rank_0 = core.clock_s(), job.rank == 0
  local function meet(done)
    local ended = rank_0 and core.clock_s() - own.start >= own.options.seconds
    local values = summed(job, { done and 1 or 0, ended and 1 or 0, asks(core.noted_status()) })
    last = core.clock_s()
    if values[2] > 0 then own.stopped = true end
    heed(own, values[3])
    return values[1] == job.size
  end
  local function now_and_then()
    if core.clock_s() - last > pulse_s then meet(false) end
  end
  return now_and_then, function()
    local all_done = meet(true)
    while not all_done do all_done = meet(true) end
  end
end

--- Ends searches of branch(): takes the best of all ranks (ties: the lowest rank) and sums their evaluations. `alike`:
--- all ranks did the same, which counts once.
function dist_search.join(run, job, own, alike)
  local used, sum, batches = 0, 0, 0
  local rows = ranks.rows(job, { own.evaluations - run.evaluations, own.sum_of_means, own.step - run.step,
    ranks.worth(own.best) })
  for _, row in ipairs(rows) do
    used = alike and math.max(used, row[1]) or used + row[1]
    sum, batches = sum + row[2], batches + row[3]
  end
  adopt(run, job, ranks.best(rows, 4), own.placement)
  if own.stop_status then run.stopped, run.stop_status = true, own.stop_status end
  run.evaluations = run.evaluations + used
  if batches > 0 then search_curve.note(run, sum / batches) end
end

return dist_search
