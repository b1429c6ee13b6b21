-- trinity fidelity sailor: plans that Sailor's authors measured (seconds of an iteration, memory of the fullest GPU)
-- told by problem:evaluate over their profiles of layers (sailor_step.lua). --plans: a folder of plans; --data: one
-- with llm_info.json, profiles_tmp.json, providers/multizone_bandwidths_het.json, and NETWORK_GPU_measured.json where
-- a profile is to be replaced by another.

local constants = require 'trinity.fidelity.sailor_constants'
local core = require 'trinity.core'
local csv = require 'trinity.fidelity.csv'
local fit = require 'trinity.fidelity.fit'
local json = require 'trinity.base.json'
local picture = require 'trinity.fidelity.picture'
local run = require 'trinity.runs'
local sailor_plan = require 'trinity.fidelity.sailor_plan'
local sailor_step = require 'trinity.fidelity.sailor_step'
local summary = require 'trinity.fidelity.summary'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local sailor = {
  help = 'measured plans of Sailor, over its profiles of layers',
  options = {
    plans = { default = '', help = 'folder of plans, with what is in it (JSON)' },
    data = { default = '', help = 'folder of profiles, sizes and bandwidths' },
    fit = { default = false, help = 'fits the constants to the plans and prints these' },
    left_out = { default = false, help = 'fits without each configuration in turn, and tells that one' },
    save = { default = '', help = 'with --fit: the file for the constants' },
    picture = { default = '', help = 'told against measured times, as PATH.svg and PATH.png' },
  },
}

--- What a plan leaves open, printed with the predictions.
sailor.assumptions = {
  'the network is the one with as many layers as the plan (of several the one that its path names)',
  'a pass takes no longer than the same with a larger micro-batch: profiles of small ones hold the cost of launching',
  'GPUs of a group work in step; groups of GH200 have a card for each GPU, those of other GPUs share one',
}

local noise, most_steps = 0.05, 40

local function object(folder, name)
  local path = ('%s/%s'):format(folder, name)
  if not core.exists(path) then
    util.fail("trinity fidelity sailor: option '--data': no file %s in %s", name, util.shortened(folder))
  end
  local found = json.read(path)
  if type(found) ~= 'table' then
    util.fail('%s: expected an object, got %s', util.shortened(path), util.describe(found))
  end
  return found
end

--- Sizes of layers (info), profiles and bandwidths of a folder.
---@param folder string
---@return { info: table, profiles: table, bandwidths: table }
function sailor.data(folder)
  local data = { info = object(folder, 'llm_info.json'), profiles = object(folder, 'profiles_tmp.json'),
    bandwidths = object(folder, 'providers/multizone_bandwidths_het.json') }
  for network, by_gpu in util.sorted_pairs(data.profiles) do
    for gpu in util.sorted_pairs(by_gpu) do
      local measured = ('%s_%s_measured.json'):format(network, gpu)
      if core.exists(('%s/%s'):format(folder, measured)) then by_gpu[gpu] = object(folder, measured) end
    end
  end
  return data
end

--- Paths of plans below a folder, sorted.
local function paths_below(folder, under, found)
  for _, name in ipairs(core.list_folder(under == '' and folder or ('%s/%s'):format(folder, under))) do
    local path = under == '' and name or ('%s/%s'):format(under, name)
    if name:match '%.json$' then found[#found + 1] = path
    elseif core.exists(('%s/%s/.'):format(folder, path)) then paths_below(folder, path, found) end
  end
  return found
end

--- All plans of a folder, each with `name`, its path there.
---@param folder string
---@param data table
---@param keep? boolean a plan that is refused is { name, refused }, with the sentence; else it is an error
---@return table[]
function sailor.plans(folder, data, keep)
  if not core.exists(folder .. '/.') then
    util.fail("trinity fidelity sailor: option '--plans': %s: no such folder", util.shortened(folder))
  end
  return util.map(paths_below(folder, '', {}), function(name)
    local path = ('%s/%s'):format(folder, name)
    local function read() return util.merged(sailor_plan.read(path, json.read(path), data.info), { name = name }) end
    if not keep then return read() end
    local plan, why = csv.attempt(read)
    return plan or { name = name, refused = why }
  end)
end

--- Errors of time and memory of a prediction, relative; nil without a measurement. Where less memory was measured than
--- weights and their optimiser take alone it is not that of a GPU of the plan.
local function errors_of(plan, told, values)
  local time_e = plan.measured_s and told.predicted_s / plan.measured_s - 1
  local bytes = plan.measured_bytes
  if bytes and bytes < 0.5 * (told.predicted_memory_bytes - values.context_bytes) then bytes = nil end
  return time_e, bytes and told.predicted_memory_bytes / bytes - 1
end

--- Constants of a family fitted to these plans: { values }.
local function fitted_to(plans, data, family)
  local known = {} -- whose memory counts, decided once
  for i, plan in ipairs(plans) do
    local values = {}
    for _, one in ipairs(constants.list(family)) do values[one.name] = one.start end
    local _, memory_e = errors_of(plan, sailor_step.predict(plan, data, values), values)
    known[i] = memory_e ~= nil
  end
  return fit.constants(constants.list(family), function(values)
    local errors = {}
    for i, plan in ipairs(plans) do
      local told = sailor_step.predict(plan, data, values)
      if plan.measured_s then errors[#errors + 1] = math.log(told.predicted_s / plan.measured_s) end
      if known[i] then errors[#errors + 1] = math.log(told.predicted_memory_bytes / plan.measured_bytes) end
    end
    return errors
  end, noise, most_steps)
end

local function of_family(plans, family, serves)
  local found = {}
  for _, plan in ipairs(plans) do
    if sailor_plan.family(plan) == family and plan.measured_s and (not serves or serves(plan)) then
      found[#found + 1] = plan
    end
  end
  return found
end

--- Constants of all families, fitted to those of the plans for which serves(plan).
local function fit_all(plans, data, serves)
  local values, used = {}, {}
  for _, family in ipairs(constants.families) do
    local own = of_family(plans, family, serves)
    values[family] = #own > 0 and fitted_to(own, data, family) or constants.fitted().values[family]
    for _, plan in ipairs(own) do used[#used + 1] = plan.name end
  end
  return values, used
end

local function tell(plans, data, values)
  return util.map(plans, function(plan)
    local own = values[sailor_plan.family(plan)]
    local told = sailor_step.predict(plan, data, own)
    told.time_e, told.memory_e = errors_of(plan, told, own)
    return told
  end)
end

--- The group whose errors are stated together: network and machines.
local function group_name(plan)
  return ('%s, %s'):format(plan.network, sailor_plan.family(plan) == 'gh200' and 'GH200' or 'mixed nodes')
end

local function print_errors(heading, plans, told)
  local groups, by = {}, {}
  for i, plan in ipairs(plans) do
    for _, what in ipairs { 'time', 'memory' } do
      local name = ('%s: %s'):format(group_name(plan), what)
      if not by[name] then
        by[name] = { name = name, errors = {} }
        groups[#groups + 1] = by[name]
      end
      table.insert(by[name].errors, told[i][what .. '_e'])
    end
  end
  summary.print(heading, groups)
end

local function print_plans(plans, told)
  print(text.format_table({ 'plan', 'measured', 'told', 'off', 'memory', 'told', 'off' }, util.map(plans,
    function(plan, i)
      local t = told[i]
      return { plan.name, plan.measured_s and ('%.3f s'):format(plan.measured_s) or '',
        ('%.3f s'):format(t.predicted_s), summary.percent(t.time_e),
        plan.measured_bytes and ('%.2f GB'):format(plan.measured_bytes / 1e9) or '',
        ('%.2f GB'):format(t.predicted_memory_bytes / 1e9), summary.percent(t.memory_e) }
    end)))
end

--- The file that sailor_constants.lua reads.
local function fitted_file(values, used)
  local lines = { '-- Fitted by `trinity fidelity sailor --fit --save`: values by kind of machine and name',
    '-- (sailor_constants.lua has units and meanings), and the plans that they were fitted to.', 'return {',
    '  plans = {' }
  for _, name in ipairs(used) do lines[#lines + 1] = ("    '%s',"):format(name) end
  lines[#lines + 1] = '  },\n  values = {'
  for _, family in ipairs(constants.families) do
    lines[#lines + 1] = ('    %s = {'):format(family)
    for _, one in ipairs(constants.list(family)) do
      lines[#lines + 1] = ('      %s = %.4g,'):format(one.name, values[family][one.name])
    end
    lines[#lines + 1] = '    },'
  end
  return table.concat(lines, '\n') .. '\n  },\n}\n'
end

local function show_fit(plans, data, options)
  local used
  local values = fit.keeping(function()
    local found
    found, used = fit_all(plans, data)
    return found
  end)
  if #used == 0 then util.fail('no plan to fit to: expected some that are measured') end
  local written = fitted_file(values, used)
  if options.save ~= '' then core.write_file(options.save, written) else io.write(written) end
  print_errors('plans that the constants were fitted to', plans, tell(plans, data, values))
end

--- Every configuration told by constants that were fitted to the others.
local function leave_each_out(plans, data)
  local order, seen, by_plan, kept, told = {}, {}, {}, {}, {}
  for i, plan in ipairs(plans) do
    local key = sailor_plan.configuration(plan)
    seen[key] = seen[key] or {}
    if #seen[key] == 0 then order[#order + 1] = key end
    table.insert(seen[key], i)
  end
  local by_key = fit.each(order, 'configurations', function(key)
    local values = fit_all(plans, data, function(plan) return sailor_plan.configuration(plan) ~= key end)
    return tell(util.map(seen[key], function(i) return plans[i] end), data, values)
  end)
  for k, list in ipairs(by_key) do
    for at, one in ipairs(list) do by_plan[seen[order[k]][at]] = one end
  end
  for i, plan in ipairs(plans) do
    if by_plan[i] then kept[#kept + 1], told[#told + 1] = plan, by_plan[i] end
  end
  print_plans(kept, told)
  print ''
  print_errors('every configuration told by constants that were fitted to the others', kept, told)
end

--- Draws measured times of steps, by network and GPUs.
local function draw(path, plans, told)
  picture.draw(path, util.map(plans, function(plan, i)
    return { group = plan.name:match '^(.*)/N%d+/' or 'plans', given = plan.measured_s, told = told[i].predicted_s }
  end), 'time in s')
end

--- Tells plans; one that cannot be told is `refused`, and costs none of the others. Those that were told before Ctrl-C.
local function tell_each(plans, data, values)
  return (fit.each(plans, 'plans', function(plan)
    if not plan.refused then
      local told, why = csv.attempt(tell, { plan }, data, values)
      plan.told, plan.refused = told and told[1], why and (why:find(plan.path, 1, true) and why
        or ('%s: %s'):format(plan.path, why))
    end
    return plan
  end))
end

local function show(all, data, as_json, path)
  local fitted = constants.fitted()
  all = tell_each(all, data, fitted.values)
  local rows = { plans = util.map(all, function(plan)
    if plan.refused then return { plan = plan.name, refused = plan.refused } end
    return { plan = plan.name, predicted_s = plan.told.predicted_s,
      predicted_memory_bytes = plan.told.predicted_memory_bytes }
  end) }
  local plans = csv.accepted(all, as_json and function() print(json.encode(rows)) end)
  local told, served = util.map(plans, function(plan) return plan.told end), {}
  run:result('sailor', rows)
  if as_json then return print(json.encode(rows)) end
  for _, name in ipairs(fitted.plans) do served[name] = true end
  print_plans(plans, told)
  print ''
  for _, fitted_ones in ipairs { true, false } do
    local own, own_told = {}, {}
    for i, plan in ipairs(plans) do
      if (served[plan.name] or false) == fitted_ones and plan.measured_s then
        own[#own + 1], own_told[#own_told + 1] = plan, told[i]
      end
    end
    if #own > 0 then
      local heading = fitted_ones and 'plans that the constants were fitted to' or 'plans that are left out'
      print_errors(heading, own, own_told)
    end
  end
  for _, line in ipairs(sailor.assumptions) do print('assumed: ' .. line) end
  if path ~= '' then draw(path, plans, told) end
end

function sailor.run(options)
  for _, name in ipairs { 'plans', 'data' } do
    if options[name] == '' then util.fail_usage("trinity fidelity sailor: option '--%s' is missing: a folder", name) end
  end
  local data = sailor.data(options.data)
  local plans = sailor.plans(options.plans, data, not (options.fit or options.left_out))
  if options.fit then return show_fit(plans, data, options) end
  if options.left_out then return leave_each_out(plans, data) end
  return show(plans, data, options.json, options.picture)
end

--- The constants of this comparison with their values.
function sailor.constants()
  local values, all = constants.fitted().values, {}
  for _, family in ipairs(constants.families) do
    for _, one in ipairs(constants.list(family)) do
      all[#all + 1] = util.merged(one, { name = family .. '.' .. one.name, value = values[family][one.name] })
    end
  end
  return all
end

return sailor
