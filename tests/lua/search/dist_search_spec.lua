-- Searches that the ranks of a job share (lib/trinity/search/shared.lua), in real processes.

local core = require 'trinity.core'
local trinity = require 'trinity'

with_torch()

local processes = dofile(root .. '/tests/lua/support/processes.lua')
local launch = processes.launch

-- Searches of every kind that learns, and one line about each: all numbers of its course.
local searches = [[
local trinity = require 'trinity'
local kept = dofile(require('trinity.core').home .. '/tests/lua/support/kept.lua')
local graph, cluster = trinity.model('alexnet', { batch_size = 16 }), trinity.cluster 'p100x2'
local problem = trinity.problem { graph = graph, cluster = cluster }
local function learned(name, num_envs, more)
  return function(p, o)
    o = trinity.search.options(name, {}, o)
    return trinity.search.run(name, p, o, function(search)
      local env = trinity.env(p, { actions = 'joint', groups = 6, num_envs = num_envs, search = search, seed = o.seed })
      local given = { total_timesteps = o.evaluations, num_steps = 1, seed = o.seed }
      for key, value in trinity.system.sorted_pairs(more) do given[key] = value end
      trinity.learn[name](env, trinity.learn.scorer(env, { hidden = 8, seed = o.seed }), given)
    end)
  end
end
local small = { groups = 6, hidden = 8, samples = 7, epochs = 2 }
local function trinity_with(options)
  for key, value in trinity.system.sorted_pairs(small) do options[key] = value end
  return function(p, common)
    for key, value in trinity.system.sorted_pairs(common) do options[key] = value end
    return trinity.methods.trinity(p, options)
  end
end
local list = {
  { 'policy', trinity_with { warm_start = false, refine = false }, 33 },
  { 'dropout', trinity_with { warm_start = false, refine = false, dropout = 0.3, ratio = 'joint',
    exclude_failing_after = 0 }, 21 },
  { 'stages', trinity_with { warm_start = { 'single_device', 'etf' }, policy = 0.3, patience = 3 }, 120 },
  { 'tapp', function(p, o)
    o.samples, o.hidden, o.greedy_every = 5, 8, 2
    return trinity.methods.tapp(p, o)
  end, 28 },
  { 'post', trinity.methods.post, 40 },
  { 'ppo', learned('ppo', 5, { update_epochs = 2 }), 23 },
  { 'reinforce', learned('reinforce', 3, {}), 10 },
  { 'cross_entropy', learned('cross_entropy', 9, { elite = 0.3, update_epochs = 2 }), 20 },
}
local function course(found)
  local words = { ('%.17g'):format(found.reward), tostring(found.evaluations) }
  for _, point in ipairs(found.curve) do words[#words + 1] = ('%.17g'):format(point.mean_reward) end
  for op = 1, #found.placement do words[#words + 1] = tostring(found.placement[op]) end
  return table.concat(words, ' ')
end
local function each(visit)
  for _, entry in ipairs(list) do
    visit(entry[1], course(entry[2](problem, { seed = 5, evaluations = entry[3], quiet = true })))
  end
end
]]

-- The output of a script of `searches`, by kind.
local function by_kind(output)
  local found = {}
  for kind, text in output:gmatch '([%a_]+): ([^\n]*)\n' do found[kind] = text end
  return found
end

local in_job = searches .. [[
each(function(kind, text)
  local job = trinity.dist.current()
  if job then job:agree('what came of ' .. kind, text) end
  print(kind .. ': ' .. text)
end)
]]

-- Cases that a job refuses: fewer samples than ranks, ranks that search differently.
local refused = [[
local job = trinity.dist.current()
local ok, message = pcall(trinity.methods.trinity, problem, { samples = 1, quiet = true, warm_start = false })
job:print(tostring(ok) .. message:match ": .-\n?$")
trinity.methods.post(problem, { seed = 7 + job.rank, evaluations = 10 })
]]

-- The searches in this process, which is in no job of several.
local function alone()
  local found = {}
  local chunk = assert(loadstring(searches .. ' return each'))
  chunk()(function(kind, text) found[kind] = text end)
  return found
end

local function evaluations(text) return tonumber(text:match '^%S+ (%d+)') end

describe('a shared search', function()
  it('gives all ranks the same, every time, and one process what it gave before; refuses what differs', function()
    local first = alone()
    local status, one = launch(1, in_job)
    expect(status):equals(0)
    local in_one = by_kind(one)
    for kind, text in trinity.system.sorted_pairs(first) do expect(kind .. tostring(in_one[kind])):equals(kind .. text) end
    local two
    status, two = launch(2, in_job) -- ranks that differ end the job
    expect(status):equals(0)
    local failed, again = launch(2, in_job .. refused)
    again = again:gsub('^(.*\n)(trinity: [^\n]*\n)(.*)$', '%1%3%2') -- errors may overtake what is printed
    expect(again:sub(1, #two)):equals(two)
    local rest = again:sub(#two + 1)
    expect(rest):matches "^false: methods.trinity: option 'samples': expected one or more for each of 2 processes, got 1"
    expect(rest):matches 'rank [01] disagrees about the search: it has option seed = [78], the others option seed = [78]\n$'
    expect(failed):equals(1)
    local kinds = 0
    for kind, text in trinity.system.sorted_pairs(by_kind(two)) do
      expect(evaluations(text)):equals(evaluations(first[kind]))
      -- Batches are the same as in one process; only the refinement of the stages differs.
      if kind ~= 'stages' then
        expect(text:match '^%S+ %d+ (%S+)'):equals(first[kind]:match '^%S+ %d+ (%S+)')
      end
      kinds = kinds + 1
    end
    expect(kinds):equals(8)
  end)
  it('is no search of a plan, which one process does with its threads', function()
    local status, output = launch(2, [[
      local trinity = require 'trinity'
      local spec = { graph = trinity.model('gpt2', { batch_size = 1 }), cluster = trinity.cluster 'dgx_h100x1', global_batch = 8 }
      trinity.dist.current():print(select(2, pcall(trinity.plan, spec)))]])
    expect(status):equals(0)
    expect(output):matches 'trinity%.plan: one process searches a plan, [^\n]* %(%-%-threads%); 2 ranks would all do the same\n$'
  end)
  it('refines on every rank with a seed of its own, from 0', function()
    local path = temporary()
    local status = launch(2, searches .. [[
      local core, job, drawn = require 'trinity.core', trinity.dist.init(), nil
      local random, searcher = core.random, core.searcher
      core.random = function(seed, name, index)
        if name ~= 'refinement of a rank' then return random(seed, name, index) end
        drawn = index
        return { integer = function() return 1 end }
      end
      core.searcher = function(handle, kind, options)
        if drawn then core.write_file(arg[1], ('rank %d: seed %d'):format(drawn, options.seed)) end
        return searcher(handle, kind, options)
      end
      trinity.methods.trinity(problem, { seed = 5, evaluations = 60, policy = false, quiet = true })
    ]], { arguments = path })
    expect(status):equals(0)
    expect(core.read_file(path)):equals 'rank 1: seed 0'
  end)
  it('goes on from its checkpoint after a rank was killed, and ends with rank 0', function()
    local path = temporary()
    for _, tail in ipairs { '', '.policy0', '.policy1', '.scores' } do processes.to_remove(path .. tail) end
    local body = searches .. [[
      local job = trinity.dist.init { silence_s = 3 }
      local deaths = 0
      local spec = { graph = graph, cluster = cluster, reward = function(metrics)
        deaths = deaths + 1
        if arg[2] and job.rank == 1 and deaths == 38 then os.execute('kill -9 ' .. io.open '/proc/self/stat':read '*n') end
        return -metrics.step_time_s
      end }
      local function run()
        local given = { seed = 5, evaluations = 100, quiet = true, policy = 0.7, patience = 100 }
        for key, value in trinity.system.sorted_pairs(small) do given[key] = value end
        local found = trinity.methods.trinity(trinity.problem(spec), given)
        job:agree('what came of it', course(found))
        return course(found)
      end
      if arg[2] then kept.search(arg[1], run) end
      print('as without: ' .. tostring(kept.search(arg[1], run, true) == run()))
      local own = trinity.dist.alone(function() return trinity.methods.random(problem, { seed = job.rank, evaluations = 9 }) end)
      job:print('best of ranks: ' .. tostring(job:best(own).reward >= own.reward))
      local began_s, slow = require('trinity.core').clock_s(), job.rank == 1 and math.huge or 0.3
      local timed = trinity.methods.tapp(problem, { seconds = slow, evaluations = trinity.search.unlimited, hidden = 8,
        quiet = true })
      local both = trinity.methods.trinity(problem, { seconds = job.rank == 1 and 50 or 1, evaluations = 2 ^ 40, groups = 6,
        hidden = 8, quiet = true })
      job:agree('timed searches', course(timed) .. course(both))
      print('in time: ' .. tostring(require('trinity.core').clock_s() - began_s < 30))
    ]]
    local status, output, seconds = launch(2, body, { arguments = path .. ' kill' })
    expect(output):matches '^trinity: rank 1 has not answered for %d s: it was killed or stopped[^\n]*\n$'
    expect(status):equals(1)
    expect(seconds):below(30)
    status, output = launch(2, body, { arguments = path })
    expect(output):equals 'as without: true\nbest of ranks: true\nin time: true\n'
    expect(status):equals(0)
  end)
  it('does not go on from two checkpoints', function()
    local path = temporary()
    for _, tail in ipairs { '', '.policy0', '.policy1' } do
      processes.to_remove(path .. tail)
      processes.to_remove(path .. tail .. '.older')
    end
    local status, output = launch(2, searches .. [[
      local core, job, calls = require 'trinity.core', trinity.dist.init(), 0
      local files = { arg[1], arg[1] .. '.policy0', arg[1] .. '.policy1' }
      local function keep_older()
        for _, name in ipairs(files) do
          local there, content = pcall(core.read_file, name)
          if there then core.write_file(name .. '.older', content) end
        end
      end
      local counted = trinity.problem { graph = graph, cluster = cluster, reward = function(metrics)
        calls = calls + 1
        if job.rank == 0 and calls == 45 then keep_older() end
        return -metrics.step_time_s
      end }
      local function run()
        local options = { evaluations = 100, quiet = true, refine = false }
        for key, value in trinity.system.sorted_pairs(small) do options[key] = value end
        return trinity.methods.trinity(counted, options)
      end
      kept.search(arg[1], run)
      local read = core.read_file
      if job.rank == 1 then
        core.read_file = function(name, ...)
          return read(name:sub(1, #arg[1]) == arg[1] and name .. '.older' or name, ...)
        end
      end
      kept.search(arg[1], run, true)
    ]], { arguments = path })
    expect(status):equals(1)
    expect(output):matches('rank 1 disagrees about the checkpoint %S+: it has one of %d+ evaluations with checksum')
  end)
end)

processes.clean()
