-- Hostile scripts: every function that the library takes from a script does what it should not: fails, yields,
-- closes what the caller uses, calls the library again, recurses without end. One message each (or none, where
-- nothing is wrong), and all that was there works afterwards as before.

local core = require 'trinity.core'
local trinity = require 'trinity'
local examples = dofile(root .. '/tests/lua/support/examples.lua')

local e = examples.shared()
local quiet = { evaluations = 6, quiet = true, rescue = examples.path() }

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

local function policy_of(problem, f, which)
  local policy = trinity.policies.table(problem, { groups = 2 })
  local made = setmetatable({}, { __index = policy })
  for _, name in ipairs { 'parameters', 'sample', 'evaluate', 'placements' } do
    made[name] = function(_, ...)
      if name == which then f() end
      return policy[name](policy, ...)
    end
  end
  return made
end

local function model_file(text, use, f)
  local path = examples.path() .. '.lua'
  core.write_file(path, text)
  rawset(_G, 'attack_of_hostile_spec', f)
  local ok, problem = pcall(use, path)
  rawset(_G, 'attack_of_hostile_spec', nil)
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
    trinity.simulator { graph = w.graph, cluster = w.cluster, cost = function() f() end }
  end,
  ['profile:cost'] = function(w, f)
    local profile = examples.objects['trinity.Profile']()
    local graph = examples.arguments['trinity.Profile.is_of']()[1]
    trinity.problem { graph = graph, cluster = w.cluster, cost = profile:cost(graph, function() f() end) }
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
  ['nn.module'] = function(_, f) trinity.nn.module(function() f() end, {})() end,
  ['nn.sequential'] = function(_, f) trinity.nn.sequential { function(x) f() return x end } (1) end,
  ['tensor.no_grad'] = function(_, f) trinity.tensor.no_grad(f) end,
  logits = function(w, f)
    local learned = trinity.tensor.zeros({ w.graph.units, 2 }, { requires_grad = true })
    local policy = trinity.policies.independent { problem = w.problem, learned = { learned },
      logits = function() f() return learned end }
    policy:sample(2, trinity.random(1, 'hostile'))
  end,
  ['critical_path: time_s'] = function(w, f)
    w.graph:critical_path { time_s = function() f() return 1 end }
  end,
  ['critical_path: transfer_s'] = function(w, f)
    w.graph:critical_path { time_s = function() return 1 end, transfer_s = function() f() return 1 end }
  end,
  ['min_cut: capacity'] = function(w, f)
    w.graph:min_cut(1, { 'work6' }, { capacity = function() f() return 1 end })
  end,
  ['replication:train: loss'] = function(w, f)
    trinity.synchronisation.replicate { graph = w.graph, cluster = w.cluster,
      synchronisation = trinity.synchronisation.daso {} }:train { batches = 2, loss = function() f() return 1 end }
  end,
  ['a pipeline planner'] = function(w, f)
    trinity.pipeline.register('hostile', { run = function() f() return { feasible = false } end })
    trinity.pipeline(w.problem, { method = 'hostile', devices = 2, quiet = true })
  end,
  ['trinity.stoppable'] = function(_, f) trinity.stoppable(f) end,
  ['trinity.model'] = function(_, f)
    model_file('return { build = function() attack_of_hostile_spec() return 3 end }', trinity.model, f)
  end,
  ['trinity.cluster'] = function(_, f)
    model_file('return function() attack_of_hostile_spec() return "p100x2" end', trinity.cluster, f)
  end,
}
for _, name in ipairs { 'random', 'annealing', 'local_search', 'mcmc', 'trinity', 'best' } do
  callers['the reward of ' .. name] = function(w, f)
    local problem = trinity.problem { graph = w.graph, cluster = w.cluster, reward = function() f() return 1 end }
    local own = name == 'trinity' and { samples = 2, groups = 2, hidden = 2, epochs = 1 } or {}
    trinity.methods[name](problem, merged(own, quiet))
  end
end
for _, which in ipairs { 'parameters', 'sample', 'evaluate', 'placements' } do
  callers['policy:' .. which] = function(w, f)
    trinity.reinforce { policy = function() return policy_of(w.problem, f, which) end, samples = 2 }(w.problem, quiet)
  end
end
callers['the maker of a policy'] = function(w, f)
  trinity.ppo { policy = function() f() return policy_of(w.problem, f) end, samples = 2 }(w.problem, quiet)
end

local function evaluate_all(w)
  w.problem:evaluate_batch { w.problem:placement(), w.problem:placement() }
  w.problem:timeline(w.problem:placement())
end

-- What the function does: { the attack, a pattern of its error or nil where there is none to expect }.
local attacks = {
  ['an error'] = { function() error 'my own words' end, 'my own words' },
  ['an error without a text'] = { function() error() end, 'nil' },
  ['a yield'] = { function() coroutine.yield(1) end, 'attempt to yield' },
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
-- add their position. What is saved beside is named.
local function is_one_message(text)
  local own = text:gsub('\n  the best so far [^\n]*', '')
  return not own:find '\n'
end

local function still_works()
  local found = trinity.methods.random(e.problem, { evaluations = 4, quiet = true })
  return found.metrics.step_time_s == e.problem:evaluate(found.placement).step_time_s and found.metrics.feasible
end

-- What is refused by itself where the attack raises nothing.
local afterwards = { ['trinity.model'] = 'returned number 3, expected a graph',
  ['trinity.cluster'] = 'expected a table or a function that returns one, got string' }

for attack, about in trinity.sorted_pairs(attacks) do
  describe('a function of a script that does: ' .. attack, function()
    for name, call in trinity.sorted_pairs(callers) do
      it('in ' .. name, function()
        local w = {}
        w.graph, w.cluster = fresh()
        w.problem = trinity.problem { graph = w.graph, cluster = w.cluster }
        local ok, problem = pcall(call, w, function() about[1](w) end)
        local text = tostring(problem)
        local raises = about[2] and about[2] ~= 'close'
        if ok and (raises or afterwards[name]) then error 'nothing was raised' end
        if not ok and not (about[2] and text:find(about[2])) and (raises or not text:find(afterwards[name] or '^$')) then
          error(text)
        end
        if not ok and not is_one_message(text) then error('more than one message: ' .. text) end
        expect(still_works()):equals(true)
      end)
    end
  end)
end

-- Lines for the prompt, each an attack of its own, and what is asked afterwards.
local lines = {
  'local function f() return 1 + f() end f()',
  'local t = setmetatable({}, {}) getmetatable(t).__index = function(_, k) return t[k] end return t.x',
  'local t = setmetatable({}, {}) getmetatable(t).__concat = function(a, b) return a .. b end return t .. t',
  'local t = setmetatable({}, {}) getmetatable(t).__eq = function(a, b) return a == b end '
    .. 'return t == setmetatable({}, getmetatable(t))',
  'local s = ("x"):rep(300000) return s:find(("(x)"):rep(40))',
  'return (("x"):rep(300000)):find(("x-"):rep(3) .. "y", 299990)',
  'return ("("):rep(3000):gsub("%b()", "")',
  'return ("x"):find(("("):rep(300) .. "x")',
  'local t = {} for i = 1, 1000 do t[i] = i % 7 end table.sort(t, function() return true end)',
  'table.sort({ 3, 2, 1 }, function() error "in a comparator" end)',
  '("abc"):gsub(".", function() error "in a callback of gsub" end)',
  '("abc"):gsub(".", function() return {} end)',
  'local function deep(n) return coroutine.wrap(function() return deep(n + 1) end)() end deep(1)',
  'local t = {} for i = 1, 1e6 do t = { t } end return trinity.model("vgg16", t)',
  'local t = {} t.t = t return trinity.cluster(t)',
  'local t = {} for i = 1, 1e5 do t = { batch_size = t } end return trinity.model("vgg16", { batch_size = t })',
  'local t = {} for i = 1, 1e5 do t = { t } end return trinity.parallel_map({ 1 }, function() return t end, { quiet = true })',
  'getmetatable(newproxy(true)).__gc = function() error "in a finaliser" end collectgarbage() collectgarbage()',
  'return ("x"):rep(1e10)',
  'return unpack({}, 1, 1e8)',
  'return trinity.tensor.ones { 2 ^ 40, 2 ^ 20 }',
  'return trinity.array and 1 or trinity.graph.new { name = ("x"):rep(1e8) }',
  'error(setmetatable({}, { __tostring = function() error "in __tostring" end }))',
  'error(setmetatable({}, { __tostring = function(t) return tostring(t) end }))',
  'error(nil)',
  'return setmetatable({}, { __tostring = function() error "while it is shown" end })',
  'coroutine.yield(1)',
  'return coroutine.wrap(function() coroutine.yield(coroutine.running()) end)()',
  'while true do end',
}

describe('the prompt', function()
  it('goes on after every attack, with one message each', function()
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
end)

examples.clean()
