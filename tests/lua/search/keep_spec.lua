-- Searches of a script's own that keep checkpoints: search:resumed, search:keep.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local trinity = require 'trinity'

local head = [[
local trinity = require 'trinity'
local core = require 'trinity.core'
local checkpoints = require 'trinity.runs.checkpoints'
checkpoints.least_s, checkpoints.share = 0, 1e9 -- after every step
local options = trinity.options { stop = { default = 0 }, evaluations = { default = 40 } }
local problem = trinity.problem { graph = trinity.model('alexnet', { batch_size = 4 }), cluster = trinity.cluster 'p100x2' }
local log = io.open(os.getenv 'LOG', 'a')
]]

local body = [[
trinity.methods.register('climb', function(p, given)
  local o = trinity.search.options('climb', {}, given)
  return trinity.search.run('climb', p, o, function(search)
    local state = search:resumed() or { round = 0, seen = {} }
    while search:more() do
      state.round = state.round + 1
      log:write(state.round, '\n') log:flush()
      local stream = trinity.random(o.seed, 'climb', state.round)
      local placement = p:placement_by_unit(function() return stream:integer(2) end)
      local rewards = search:evaluate { { placement = placement, schedule = state.round % 2 == 1 and 'lifo' or nil } }
      state.seen[#state.seen + 1] = rewards[1]
      search:keep(function() return state end)
      if state.round == tonumber(os.getenv 'STOP') then require('ffi').C.abort() end
    end
    local sum = 0
    for _, reward in ipairs(state.seen) do sum = sum + reward end
    print(#state.seen, ('%.17g'):format(sum))
  end)
end, { budget = true })
local found = trinity.methods.climb(problem, { evaluations = options.evaluations, quiet = true })
print(found.reward, found.schedule, found.reward == -problem:evaluate(found).step_time_s)
]]

describe('a search of its own', function()
  local path = file_with(head .. "require('ffi').cdef 'void abort(void);'\n" .. body, '.lua')
  local runs, log = temporary '.runs', temporary '.log'
  local function run(words, stop)
    local text, status = output_of(("LOG='%s' STOP=%d '%s' '%s' --runs '%s' %s 2>/dev/null; echo \"status=$?\""):format(log, stop or 0,
      program, path, runs, words)):match '^(.*)status=(%d+)\n$'
    return tonumber(status), text
  end
  it('goes on from what it kept, to the same end', function()
    local status, whole = run '--run whole'
    expect(status):equals(0)
    expect(whole):matches 'lifo\ttrue\n$' -- the best is not a placement alone
    core.write_file(log, '')
    expect((run('--run broken', 17)) > 128):equals(true)
    expect(core.read_file(log)):matches '\n17\n$'
    core.write_file(log, '')
    local again
    status, again = run '--run broken --resume'
    expect(status):equals(0)
    expect(again):equals(whole)
    expect(core.read_file(log)):matches '^18\n' -- what was kept is not done again
    local search = json.read(runs .. '/broken/searches/1/search.json')
    expect(search.resumed_from):equals(17)
    expect(core.read_file(runs .. '/broken/searches/1/curve.csv')):equals(core.read_file(runs .. '/whole/searches/1/curve.csv'))
  end)
  local problem = trinity.problem { graph = trinity.model('alexnet', { batch_size = 4 }), cluster = trinity.cluster 'p100x2' }
  local function search(act)
    return trinity.search.run('mine', problem, trinity.search.options('mine', {}, { evaluations = 2, quiet = true }), function(self)
      act(self)
      self:evaluate { problem:placement() }
    end)
  end
  it('says what is wrong', function()
    expect(function() search(function(self) self:keep {} end) end):raises 'search:keep: call search:resumed%(%) before it'
    for said, state in pairs { -- in any order
      ["both a list and named fields %('round'%)"] = { 7, 8, round = 5 },
      ['at%.best%[2%]: JSON cannot represent the number inf'] = { at = { best = { 1, 1 / 0 } } },
      ['a list with holes'] = { 1, nil, 3 }, ['keys are not 1, 2, 3, %.%.%.: 7'] = { [7] = 1 }, ['name: a text that is not UTF%-8'] = { name = '\xff' },
      ['JSON cannot represent a function'] = { print } } do
      expect(function() search(function(self) self:resumed() self:keep(state) end) end)
        :raises("_spec%.lua:%d+: search:keep: argument 1 %('state'%): .*" .. said)
    end
  end)
end)
