-- Functions of scripts that the library calls. Each does what it should not: fails, yields, closes what the caller uses,
-- calls the library again, recurses without end. One message each, with its own line (or none, where nothing is wrong),
-- and all that was there works afterwards as before. A wrong result is reported with the place of the function.

local core = require 'trinity.core'
local trinity = require 'trinity'
local examples = dofile(root .. '/tests/lua/support/examples.lua')

local e = examples.shared()
local quiet = { evaluations = 6, quiet = true }

-- A graph, a cluster and a problem that an attack may close.
local function fresh()
  local builder = trinity.graph.new { name = 'fresh' }
  local x = builder:add { name = 'x', type = 'Input', outputs = { { shape = { 4 }, gradient = false } } }
  for i = 1, 6 do
    x = builder:add { name = 'work' .. i, type = 'Work', inputs = { x }, outputs = { { shape = { 1000 } } },
      measured_time_s = i * 1e-3 }
  end
  return builder:build(), trinity.cluster 'p100x2'
end

local Table = trinity.nn.class 'table'
function Table:build(spec) self.logits = trinity.tensor.zeros({ spec.nodes, 2 }, { requires_grad = true }) end
function Table:forward(observation)
  return self.logits:unsqueeze(1):expand { observation.mask:size(1), self.logits:size(1), 2 }
end

-- Learns by REINFORCE with a policy whose function `which` calls f, or with f within option decode or signal.
local function learn_with(problem, f, which)
  local options = { num_envs = 2, actions = 'joint' }
  if which == 'decode' then options.decode = function() f() return problem:placements(2) end end
  if which == 'signal' then options.signal = function() f() return 1 end end
  local env = trinity.env(problem, options)
  local policy = trinity.learn.policy(Table { nodes = problem.graph.units })
  local made = {}
  for _, name in ipairs { 'parameters', 'act', 'evaluate' } do
    made[name] = function(_, ...)
      if name == which then f() end
      return policy[name](policy, ...)
    end
  end
  trinity.learn.reinforce(env, made, { total_timesteps = 4, num_steps = 1, on_update = which == 'on_update' and f or nil })
end

local function model_file(text, use, f)
  local path = file_with(text, '.lua')
  rawset(_G, 'attack_of_callbacks_spec', f)
  local ok, problem = pcall(use, path)
  rawset(_G, 'attack_of_callbacks_spec', nil)
  if not ok then error(problem, 0) end
end

-- Each takes a world { graph =, cluster =, problem = } and calls f() from within what it is named after.
local callers = {
  reward = function(w, f)
    local problem = trinity.problem { graph = w.graph, cluster = w.cluster, reward = function() f() return 1 end }
    return problem:strategy(problem:placement())
  end,
  cost = function(w, f) trinity.problem { graph = w.graph, cluster = w.cluster, cost = function() f() end } end,
  ['cost of a simulator'] = function(w, f)
    trinity.problem { check_memory = false, graph = w.graph, cluster = w.cluster, cost = function() f() end }
  end,
  ['profile:cost'] = function(w, f)
    local made = examples.environment('trinity.Profile', 'cost')
    trinity.problem { graph = made.graph, cluster = w.cluster, cost = made.profile:cost(made.graph, function() f() end) }
  end,
  placement_by_unit = function(w, f) w.problem:placement_by_unit(function() f() return 1 end) end,
  ['a method'] = function(w, f)
    trinity.methods.register('hostile', function(problem) f() return problem:placement() end)
    trinity.methods.hostile(w.problem)
  end,
  ['the body of a search'] = function(w, f)
    trinity.search.run('body', w.problem, trinity.search.options('body', {}, quiet), function(search)
      search:evaluate { w.problem:placement() }
      f()
    end)
  end,
  ['parallel_map here'] = function(_, f) trinity.parallel_map(2, function() f() end, { workers = 1, quiet = true }) end,
  ['parallel_map in workers'] = function(_, f)
    trinity.parallel_map(2, function() f() end, { workers = 2, quiet = true })
  end,
  ['dist.alone'] = function(_, f) trinity.dist.alone(f) end,
  ['nn.sequential'] = function(_, f) trinity.nn.sequential { function(x) f() return x end } (1) end,
  ['tensor.no_grad'] = function(_, f) trinity.tensor.no_grad(f) end,
  ['critical_path: time_s'] = function(w, f)
    w.graph:critical_path { time_s = function() f() return 1 end }
  end,
  ['critical_path: transfer_s'] = function(w, f)
    w.graph:critical_path { time_s = function() return 1 end, transfer_s = function() f() return 1 end }
  end,
  ['min_cut: capacity'] = function(w, f)
    w.graph:min_cut(1, { 'work6' }, { capacity = function() f() return 1 end })
  end,
  ['a pipeline planner'] = function(w, f)
    trinity.pipeline.register('hostile', { run = function() f() return { feasible = false } end })
    trinity.pipeline(w.problem, { method = 'hostile', devices = 2, quiet = true })
  end,
  ['trinity.system.stoppable'] = function(_, f) trinity.system.stoppable(f) end,
  ['trinity.model'] = function(_, f)
    model_file('return { build = function() attack_of_callbacks_spec() return 3 end }', trinity.model, f)
  end,
  ['trinity.cluster'] = function(_, f)
    model_file('return function() attack_of_callbacks_spec() return "p100x2" end', trinity.cluster, f)
  end,
}
for _, name in ipairs { 'random', 'annealing', 'local_search', 'mcmc', 'trinity', 'best' } do
  callers['the reward of ' .. name] = function(w, f)
    local problem = trinity.problem { graph = w.graph, cluster = w.cluster, reward = function() f() return 1 end }
    local own = name == 'trinity' and { samples = 2, groups = 2, hidden = 2, epochs = 1 } or {}
    trinity.methods[name](problem, merged(own, quiet))
  end
end
for _, which in ipairs { 'parameters', 'act', 'evaluate', 'decode', 'signal', 'on_update' } do
  callers['a learner: ' .. which] = function(w, f) learn_with(w.problem, f, which) end
end

local function evaluate_all(w)
  w.problem:evaluate_batch { w.problem:placement(), w.problem:placement() }
  w.problem:timeline(w.problem:placement())
end

local here = 'callbacks_spec%.lua:%d+'
local object = setmetatable({}, { __tostring = function() return 'an object of mine' end })

-- Attacks by the function: { the attack, a pattern of its error or nil where there is none to expect }.
local attacks = {
  ['an error'] = { function() error 'my own words' end, here .. ': my own words' },
  ['an error with an object'] = { function() error(object) end, 'an object of mine' },
  ['a misuse of the library'] = { function() return (trinity.system.format_bytes 'many') end,
    here .. ": trinity%.format_bytes: argument 1 %('bytes'%): expected number, got string 'many'" },
  ['a yield'] = { function() coroutine.yield(1) end, here .. ': attempt to yield' },
  ['recursion without end'] = { function() local function deeper() return 1 + deeper() end deeper() end,
    'stack overflow' },
  ['evaluation of another state'] = { evaluate_all },
  ['a whole search'] = { function(w) trinity.methods.random(w.problem, quiet) end },
  ['closing the graph'] = { function(w) w.graph:close() end, 'close' },
  ['closing the cluster'] = { function(w) w.cluster:close() end, 'close' },
  ['closing the problem'] = { function(w) w.problem:close() end, 'close' },
  ['a full collection'] = { function() collectgarbage() collectgarbage() end },
  ['coroutines within coroutines'] = { function()
    local function deeper(depth)
      if depth > 0 then coroutine.wrap(deeper)(depth - 1) else error 'at the bottom' end
    end
    deeper(20)
  end, 'at the bottom' },
}

-- Errors have one line of their own; a traceback or a second message would be more. Coroutines within each other each
-- add their position. Files that are saved as well are named.
local function is_one_message(text)
  local own = text:gsub('\n  the best so far [^\n]*', '')
  return not own:find '\n'
end

local function still_works()
  local found = trinity.methods.random(e.problem, { evaluations = 4, quiet = true })
  return found.metrics.step_time_s == e.problem:evaluate(found.placement).step_time_s and found.metrics.feasible
end

-- Results that are refused where the attack raises nothing.
local afterwards = { ['trinity.model'] = 'returned number 3, expected a graph',
  ['trinity.cluster'] = 'expected a table or a function that returns one, got string' }

for attack, about in trinity.system.sorted_pairs(attacks) do
  it('a function of a script that does: ' .. attack, function()
    for name, call in trinity.system.sorted_pairs(callers) do
      local w = {}
      w.graph, w.cluster = fresh()
      w.problem = trinity.problem { graph = w.graph, cluster = w.cluster }
      local ok, problem = pcall(call, w, function() about[1](w) end)
      local text = ('in %s: %s'):format(name, tostring(problem))
      local raises = about[2] and about[2] ~= 'close'
      if ok and (raises or afterwards[name]) then error('nothing was raised ' .. text, 0) end
      if about[2] == tostring(object) then
        if problem ~= object and not name:find '^parallel_map' then error('another object ' .. text, 0) end -- which sends texts
      elseif not ok and not (about[2] and text:find(about[2])) and (raises or not text:find(afterwards[name] or '^$')) then
        error(text, 0)
      end
      if not ok and not is_one_message(text) then error('more than one message ' .. text, 0) end
      expect(still_works()):equals(true)
    end
  end)
end

-- Functions whose result is checked: { call, the pattern of what it says, { [what it returned, as a pattern] = value } }.
local returned = {
  reward = { function(w, f)
    return trinity.problem({ graph = w.graph, cluster = w.cluster, reward = f }):strategy(w.problem:placement())
  end, ': the reward function returned RESULT, expected a',
    { ['nil'] = false, ["string 'high'"] = 'high', NaN = 0 / 0, inf = math.huge, table = {} } },
  cost = { function(w, f) return trinity.problem { graph = w.graph, cluster = w.cluster, cost = f } end,
    ": trinity.problem: the cost function at .-HERE returned RESULT for the cost of operator 'x' on device 'gpu0', "
      .. 'expected 0 or more seconds or nil',
    { ["string 'dear'"] = 'dear', ['number %-1'] = -1, ['number %-?nan'] = 0 / 0, ['number inf'] = math.huge, ['true'] = true } },
  placement_by_unit = { function(w, f) return w.problem:placement_by_unit(f) end,
    ': problem:placement_by_unit: the function at .-HERE returned RESULT for unit 1, expected a device from 1 to 2',
    { ['nil'] = false, ['number 0'] = 0, ['number 3'] = 3, ['number 1.5'] = 1.5, ["string '1'"] = '1' } },
  ['a method'] = { function(w, f)
    trinity.methods.register('wrong', f)
    return trinity.methods.wrong(w.problem)
  end, ": method 'wrong': the function at .* returned RESULT, expected a strategy, a placement",
    { ['nil'] = false, ['number 3'] = 3, ['function'] = print } },
}

for name, about in trinity.system.sorted_pairs(returned) do
  it('a wrong result is reported with the place of the function: ' .. name, function()
    local w = {}
    w.graph, w.cluster = fresh()
    w.problem = trinity.problem { graph = w.graph, cluster = w.cluster }
    for text, value in trinity.system.sorted_pairs(about[3]) do
      expect(function() about[1](w, function() return value or nil end) end)
        :raises(here .. (about[2]:gsub('HERE', here:gsub('%%', '%%%%')):gsub('RESULT', (text:gsub('%%', '%%%%')))))
    end
  end)
end

it('a search that evaluates nothing, or fails with an object, says so, and has its best saved all the same', function()
  expect(function() trinity.search.run('body', e.problem, trinity.search.options('body', {}, quiet), function() end) end)
    :raises "method 'body' ended without evaluating a plan"
  local count = 0
  local problem = trinity.problem { graph = e.graph, cluster = e.cluster, reward = function()
    count = count + 1
    if count == 10 then error(object) end
    return 1
  end }
  local _, caught = pcall(trinity.methods.random, problem, { evaluations = 20, batch = 4, quiet = true })
  expect(caught == object):equals(true)
  expect(trinity.search.rescued[#trinity.search.rescued].method):equals 'random'
end)

describe('files of models and clusters', function()
  local function file(text, use)
    local ok, message = pcall(use, file_with(text, '.lua'))
    if ok then error 'taken' end
    return message
  end
  it('that build nothing are named with the function', function()
    expect(file('return { build = function() return 3 end }', trinity.model)):matches(
      "model '.*': the function `build` at .*%.lua:1 returned number 3, expected a graph")
    expect(file('return 3', trinity.model)):matches 'expected a table with a function `build`, got number 3'
    expect(file('return function() return 3 end', trinity.cluster)):matches 'expected a table or a function that returns one, got number 3'
  end)
  it('that fail keep their own line', function()
    expect(file('return { build = function() error "no network" end }', trinity.model)):matches '%.lua:1: no network'
    expect(file('return function() error "no machine" end', trinity.cluster)):matches '%.lua:1: no machine'
  end)
end)

-- Lines for the prompt, each an attack of its own, and what is asked afterwards.
local lines = {
  'local function f() return 1 + f() end f()',
  'local t = setmetatable({}, {}) getmetatable(t).__index = function(_, k) return t[k] end return t.x',
  'local s = ("x"):rep(300000) return s:find(("(x)"):rep(40))',
  'return ("("):rep(3000):gsub("%b()", "")',
  'local t = {} for i = 1, 1000 do t[i] = i % 7 end table.sort(t, function() return true end)',
  '("abc"):gsub(".", function() error "in a callback of gsub" end)',
  'local function deep(n) return coroutine.wrap(function() return deep(n + 1) end)() end deep(1)',
  'local t = {} for i = 1, 1e6 do t = { t } end return trinity.model("vgg16", t)',
  'local t = {} t.t = t return trinity.cluster(t)',
  'local t = {} for i = 1, 1e5 do t = { t } end return trinity.parallel_map({ 1 }, function() return t end, { quiet = true })',
  'getmetatable(newproxy(true)).__gc = function() error "in a finaliser" end collectgarbage() collectgarbage()',
  'return ("x"):rep(1e10)',
  'return trinity.graph.new { name = ("x"):rep(1e8) }',
  'error(setmetatable({}, { __tostring = function(t) return tostring(t) end }))',
  'return setmetatable({}, { __tostring = function() error "while it is shown" end })',
  'return coroutine.wrap(function() coroutine.yield(coroutine.running()) end)()',
  'while true do end',
}

it('the prompt goes on after every attack, with one message each', function()
  local path = temporary()
  local script = { 'p = trinity.problem { graph = trinity.model "vgg16", cluster = trinity.cluster "p100x2" }' }
  for i, line in ipairs(lines) do
    script[#script + 1] = line
    script[#script + 1] = ('print("after %d", p:evaluate(p:placement()).feasible)'):format(i)
  end
  core.write_file(path, table.concat(script, '\n') .. '\n')
  local status, output = run_trinity(('--memory-limit 300M --time-limit 2 -i < %s'):format(path))
  for i, line in ipairs(lines) do
    if not output:find(('after %d\ttrue'):format(i), 1, true) then
      error(('no answer after %s:\n%s'):format(line, output:sub(-1000)), 0)
    end
  end
  expect(status):equals(0)
  expect(output):matches 'trinity: [^\n]*time limit of 2 s reached\n[^\n]*after'
  for message in output:gmatch 'trinity: ([^\n]*)' do
    expect(#message < 4000):equals(true)
  end
end)
