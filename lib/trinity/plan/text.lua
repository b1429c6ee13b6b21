-- The text of a plan's result: `trinity plan`.

local bounds = require 'trinity.plan.bounds'
local core = require 'trinity.core'
local format_table = require('trinity.base.text').format_table
local nodes = require 'trinity.cluster.nodes'
local owners = require 'trinity.strategy.owners'
local parallelism = require 'trinity.strategy.parallelism'
local simulator = require 'trinity.strategy.simulator'
local space = require 'trinity.plan.space'
local straddling = require('trinity.strategy.rank_order').straddling
local util = require 'trinity.base.util'

local text = {}

local bytes_text = core.format_bytes

local function seconds_text(seconds) return ('%.4g s'):format(seconds) end

local function percent(part, whole) return ('%.1f %%'):format(100 * part / whole) end

--- A cost of a step in its unit.
function text.cost(found, cost)
  local of = found.cost_of
  if not of then return seconds_text(cost) end
  return ('%.4g %s'):format(cost, of.unit)
end

--- The best plans as a table: each of another shape (space.shape), with the number of its variants that were simulated.
function text.plans(found, tokens)
  local rows = {}
  for i, plan in ipairs(found.plans) do
    local more = #plan.variants
    rows[i] = { ('%d: %s%s'):format(plan.rank, space.text(plan.point), plan.included and ' (included)'
      or more > 0 and (' (best of %d variants)'):format(more + 1) or ''),
      seconds_text(plan.step_time_s), ('%.5g'):format(plan.samples_per_s * tokens),
      ('%.1f %%'):format(100 * plan.mfu), bytes_text(plan.memory_bytes),
      seconds_text(plan.lower_bound_s) }
  end
  local head = { 'plan', 'step', tokens > 1 and 'tokens/s' or 'samples/s', 'MFU', 'memory', 'bound' }
  if found.cost_of then
    table.insert(head, 2, found.cost_of.name)
    for i, plan in ipairs(found.plans) do table.insert(rows[i], 2, text.cost(found, plan.cost)) end
  end
  return format_table(head, rows)
end

--- The parts of a step and their names.
text.parts = { { 'computing', 'computing' }, { 'within_stages', 'exposed tensor, context and expert communication' },
  { 'between_stages', 'pipeline bubble' }, { 'rest', 'exposed gradient and weight communication' } }

-- Bound of a step of one replica (of all that share experts) without other replicas, on its devices, in seconds.
-- at: coordinates of devices.
local function replica_bound_s(problem, plan, at, layers)
  local size, devices = util.merged(plan.fields.mesh, { data = plan.expert }), {}
  for device, data in util.sorted_pairs(at.data) do
    if data < size.data then
      local rank = at.pipeline[device] * size.data + data
      for _, axis in ipairs { 'placement', 'context', 'tensor' } do
        rank = rank * (size[axis] or 1) + at[axis][device]
      end
      devices[rank + 1] = device
    end
  end
  local alone = util.merged(plan.fields, { mesh = size, devices = devices, zero_stage = 0 })
  alone.sync, alone.order = nil, nil
  return simulator.mesh_bounds(problem, { alone }, layers)[1].step_time_s
end

--- Where a device spends a step, in seconds, means over the stages: computing, as simulated; waiting for messages
--- within a stage, and for other stages, which is what the bound of one replica has in addition; and the rest, which
--- gradients and weights of other replicas take, and messages that queue.
function text.shares(plan)
  local problem, layers = plan.networks:bounder(plan.point)
  local at = core.mesh_coordinates(util.picked(plan.fields, { 'mesh', 'order', 'devices' }))
  local p, m, busy, work, own = plan.pipeline, plan.micro_batches, 0, 0, 0
  for _, device in ipairs(parallelism.first_devices { coordinates = at }) do
    busy = busy + plan.metrics:compute_busy_s(device) / p
  end
  for _, unit in ipairs(simulator.mesh_units(problem, plan.fields, 1, layers)) do
    local update_s = bounds.update_s(plan.point.optimizer_offload_fraction or 0, unit.update_s, unit.host_update_s)
    work = work + (m * (unit.forward_work_s + unit.backward_work_s) + update_s) / p
    own = own + (m * (unit.forward_to_next_s + unit.backward_to_next_s + unit.weight_s) + update_s) / p
  end
  local waiting, inner, between = math.max(0, plan.step_time_s - busy), 0, 0
  if own > (1 + 1e-9) * work then inner = math.min(waiting, own - work) end
  if p > 1 then -- one stage has no bubble
    between = math.max(0, math.min(waiting - inner, replica_bound_s(problem, plan, at, layers) - own))
  end
  return { computing = busy, within_stages = inner, between_stages = between, rest = waiting - inner - between }
end

local function memory_table(plan)
  local stages = owners.of_stages(plan.strategy)
  local shown = owners.of_any(util.map(stages, function(row) return row.peak_bytes end))
  local head = { 'stage', 'layers', 'device', 'memory' }
  for _, owner in ipairs(shown) do head[#head + 1] = owner.name end
  head[#head + 1] = 'computes'
  local rows = util.map(stages, function(row)
    local cells = { tostring(row.stage), tostring(row.layers), tostring(row.device), bytes_text(row.memory_bytes) }
    for _, owner in ipairs(shown) do cells[#cells + 1] = bytes_text(row.peak_bytes[owner.key]) end
    cells[#cells + 1] = percent(row.compute_busy_s, plan.step_time_s)
    return cells
  end)
  if #rows > 16 then -- of many stages the first and the last
    while #rows > 16 do table.remove(rows, 9) end
    table.insert(rows, 9, util.map(head, function() return '...' end))
  end
  return format_table(head, rows)
end

--- Why one plan loses against another: the part of the step that grows most, and the part that shrinks most if it
--- shrinks by more than the plan loses. cost_of: of a result.
function text.loses(best, other, cost_of)
  if cost_of then return ('%s more %s'):format(percent(other.cost - best.cost, best.cost), cost_of.name) end
  local a, b = text.shares(best), text.shares(other)
  local words, most, saved, saved_s = nil, 0, nil, 0
  for _, part in ipairs(text.parts) do
    local more = b[part[1]] - a[part[1]]
    if more > most then words, most = part[2], more end
    if -more > saved_s then saved, saved_s = part[2], -more end
  end
  local slower = other.step_time_s - best.step_time_s
  if slower <= 0 then return 'as fast, with no less memory' end
  if not words then return ('%s slower'):format(percent(slower, best.step_time_s)) end
  local less = saved_s > slower and (', %s less %s'):format(seconds_text(saved_s), saved) or ''
  return ('%s slower: %s more %s%s'):format(percent(slower, best.step_time_s), seconds_text(most), words, less)
end

--- Where groups straddle machines: which do, and what the plan takes with the fastest and the slowest other order of
--- ranks, or with devices left idle so that fewer straddle.
local function straddling_lines(found)
  local best = found.plans[1]
  if not found.straddles then return {} end
  local fields, sizes = util.merged(best.fields), util.merged(best.fields.mesh)
  if best.segment_size then fields.devices = nil end
  sizes.data = sizes.data / sizes.expert
  local rows = util.filtered(best.problem:strategy(fields):rank_orders(), function(row)
    return row.step_time_s ~= best.step_time_s
  end)
  local words = straddling(best.fields, best.problem.cluster)
  if not words and not rows[1] then return {} end
  local lines = { ('groups of ranks that straddle machines: %s'):format(words or 'none') }
  for _, row in ipairs(#rows > 1 and { rows[1], rows[#rows] } or rows) do
    local axes = util.filtered(row.order, function(axis) return sizes[axis] > 1 end)
    lines[#lines + 1] = ('  ranks %s%s: step %s, %+.1f %%; straddle: %s'):format(table.concat(axes, '-'),
      row.segment_size and (' in segments of %d'):format(row.segment_size) or '', seconds_text(row.step_time_s),
      100 * (row.step_time_s / best.step_time_s - 1), row.straddles[1] and table.concat(row.straddles, ', ') or 'none')
  end
  return lines
end

--- Dimensions that were searched, and those left out with the reason.
function text.counts(found)
  local c, p = found.counts, found.pruned
  local lines = { ('searched %d configurations: %d invalid, %d out of memory and %d too slow by lower bounds, '
    .. '%d duplicates, %d unsupported, %d simulated, %d left'):format(c.points, p.contradictory, p.memory, p.bound,
    p.duplicates, p.refused, c.simulated - c.simulated_neighbours, found.left) }
  if c.neighbours > 0 then
    lines[1] = lines[1] .. ('; %d neighbours of the best, %d simulated'):format(c.neighbours, c.simulated_neighbours)
  end
  local best = found.plans[1]
  if best and found.lower_bound_s == 0 then
    lines[2] = 'no lower bound of all plans is known'
  elseif best and found.lower_bound_s < best.cost then
    lines[2] = ('lower bound of all: %s; plan 1 is within %s of it'):format(text.cost(found, found.lower_bound_s),
      percent(best.cost - found.lower_bound_s, found.lower_bound_s))
    if found.too_large > 0 then
      lines[2] = lines[2] .. ('; %d of those left are too large to simulate (--tasks)'):format(found.too_large)
    end
  elseif best then
    lines[2] = 'plan 1 is optimal: no configuration of the space is ' .. (found.cost_of and 'cheaper' or 'faster')
  end
  if found.cost_of then
    lines[#lines + 1] = found.cost_of.line
  end
  if found.runtime ~= 'any' then
    lines[#lines + 1] = ("space: what runtime '%s' runs; --runtime any has all that trinity can simulate"):format(
      found.runtime)
  end
  if found.fused then
    lines[#lines + 1] = 'recompute selective: attention is one fused operator here, which keeps no scores, so that '
      .. 'it frees less than 1 % of the activations'
  end
  return lines
end

-- Plans that nothing beats in both time and memory, with equal texts in one line.
local function front_lines(found)
  if #found.pareto < 2 then return {} end
  local lines = { ('%s plan by memory, of those simulated:'):format(found.cost_of and 'best' or 'fastest') }
  local function ends(plan) return ('%s, %s'):format(text.cost(found, plan.cost), bytes_text(plan.memory_bytes)) end
  for _, list in ipairs(util.grouped(found.pareto, function(plan) return space.text(plan.point) end)) do
    local first, last = ends(list[1]), ends(list[#list])
    lines[#lines + 1] = ('  %s%s: %s'):format(first, first ~= last and ' to ' .. last or '', list.name)
  end
  return lines
end

-- A warning where the best plan leaves less memory free than predictions may be off.
local function headroom_lines(found)
  local best, least, free = found.plans[1], 0.05, nil
  for d, device in ipairs(best.problem.cluster.devices) do
    local left = device.capacity_bytes - best.metrics:memory_bytes(d)
    if left < least * device.capacity_bytes then least, free = left / device.capacity_bytes, left end
  end
  return { free and ('plan 1 leaves %s (%s) of its fullest device free: predicted peaks are off by 2 %% on average, '
    .. 'by up to 11 %% (trinity help accuracy)'):format(bytes_text(free), percent(least, 1)) }
end

local function refused_lines(found)
  local lines = {}
  for _, plan in ipairs(found.simulated) do
    if plan.included and not plan.feasible then
      lines[1] = ('the included plan does not fit: %s (%s)'):format(space.text(plan.point),
        bytes_text(plan.metrics.excess_memory_bytes) .. ' are missing')
    end
  end
  for i, entry in ipairs(found.refused) do
    if i > 6 then
      lines[#lines + 1] = ('refused: and %d more sentences (--json has all)'):format(#found.refused - 6)
      break
    end
    lines[#lines + 1] = ('refused, %d points: %s'):format(entry.points, entry.reason)
  end
  return lines
end

--- Remedies where nothing fits: options whose values excluded what needs less memory, and other hardware.
function text.helps(point, given, cluster)
  local list, larger = {}, nodes.larger(cluster.name)
  if point.data > 1 and point.zero_stage < 3 and given.zero_stage ~= nil then list[1] = '--zero-stage 3' end
  if point.recompute ~= 'full' and given.recompute ~= nil then list[#list + 1] = '--recompute full' end
  for _, name in ipairs(space.offloads) do
    local offload = given[name]
    if offload ~= nil and type(offload) ~= 'function' then
      list[#list + 1] = ('--%s 1'):format(name:gsub('_', '-'))
    end
  end
  if point.micro_batch > 1 and given.micro_batch ~= nil then list[#list + 1] = 'a smaller --micro-batch' end
  for _, name in ipairs { 'tensor', 'pipeline', 'context' } do
    if given[name] ~= nil then list[#list + 1] = ('other values of --%s'):format(name) end
  end
  if larger then list[#list + 1] = ('%s, whose GPUs have more memory'):format(larger) end
  list[#list + 1] = 'more devices, or devices with more memory'
  list[#list + 1] = 'a shorter --sequence'
  return list
end

--- Where no configuration of a search is valid: the most frequent reasons.
function text.invalid_reasons(search)
  local about, broken, counts = search.space.about, search.space.broken, search.invalid
  if search.counts.points == 0 then
    return { broken and ('the runtime runs %s (%s)'):format(broken.text, broken.source)
      or ('expected tensor x pipeline x data x context of at most %d devices, and micro-batch x data that divides the '
        .. 'global batch of %d'):format(about.devices, about.batch) }
  end
  local list = util.sorted_keys(counts)
  table.sort(list, function(a, b)
    if counts[a] ~= counts[b] then return counts[a] > counts[b] end
    return a < b
  end)
  local reasons = util.map({ unpack(list, 1, 3) }, function(reason)
    return ('%d configurations: %s'):format(counts[reason], reason)
  end)
  if search.pruned.duplicates > 0 then
    reasons[#reasons + 1] = ('%d configurations: recompute by_layer of no layer or of all, which is none or full; use '
      .. '--recompute none,by_layer,full'):format(search.pruned.duplicates)
  end
  return reasons
end

function text.nothing(found)
  local near = found.nearest
  if found.stopped and (found.left > 0 or found.counts.points == 0) then
    return { ('no plan yet: the search ended (%s) before a simulation fitted; %d points are left'):format(found.stopped,
      found.left) }
  end
  if found.too_large > 0 then
    return { ('no plan: %d configurations are too large to simulate; use a larger --tasks'):format(found.too_large) }
  end
  if not near then
    local lines = refused_lines(found)
    table.insert(lines, 1, 'no valid plan: every configuration of the space violates a constraint')
    if lines[2] then return lines end
    for _, reason in ipairs(found.impossible) do lines[#lines + 1] = 'refused: ' .. reason end
    return lines
  end
  local lines = { ('no plan fits. The nearest: %s'):format(space.text(near.point)),
    ('its fullest device holds at least %s of %s: %s (%.0f bytes) are missing'):format(bytes_text(near.memory_bytes),
      bytes_text(found.capacity_bytes), bytes_text(near.excess_bytes), near.excess_bytes),
    'what would help: ' .. table.concat(near.helps, '; ') }
  for _, line in ipairs(refused_lines(found)) do lines[#lines + 1] = line end
  return lines
end

--- All of it.
function text.report(found, tokens)
  local best = found.plans[1]
  local shares = text.shares(best)
  local lines = { text.plans(found, tokens), '', ('step %s: %s'):format(seconds_text(best.step_time_s),
    table.concat(util.map(text.parts, function(part)
      return ('%s %s'):format(percent(shares[part[1]], best.step_time_s), part[2])
    end), ', ')), memory_table(best) }
  if found.plans[2] then lines[#lines + 1] = '' end
  for i = 2, #found.plans do
    lines[#lines + 1] = ('plan %d: %s'):format(found.plans[i].rank, text.loses(best, found.plans[i], found.cost_of))
  end
  for _, list in ipairs { straddling_lines(found), front_lines(found), headroom_lines(found), text.counts(found),
    refused_lines(found) } do
    for _, line in ipairs(list) do lines[#lines + 1] = line end
  end
  return table.concat(lines, '\n')
end

return text
