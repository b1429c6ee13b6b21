-- AutoParallel's problem in `trinity study select`: random ones against every combination, one that AutoParallel wrote
-- (data/formats of the shared folder).

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local autoparallel = require 'studies.select.autoparallel'
local trinity = require 'trinity'

local folder = temporary()

local function write(name, value)
  local path = ('%s/%s'):format(folder, name)
  trinity.files.write(path, json.encode(value))
  return path
end

--- A chain of nodes with a second reader of the first, a fixed last one, two that are equal and an exact memory.
local function random_problem(seed)
  local random = trinity.random(seed, 'autoparallel')
  local nodes, tables, weights = {}, {}, {}
  for v = 0, 4 do
    local choices = {}
    for o = 1, 3 do choices[o] = ('S(%d)'):format(o) end
    nodes[v + 1] = { name = 'n' .. v, op = 'mm', choices = choices, inputs = { { 'R' }, { 'R' }, { 'R' } } }
  end
  local function list(n, make)
    local l = {}
    for i = 1, n do l[i] = make(i) end
    return l
  end
  for t, link in ipairs { { 0 }, { 1, 0 }, { 2, 1 }, { 3, 2 }, { 4, 0 }, { 4, 3 } } do
    local others = link[2] and 3 or 1
    local function cost() return random:integer(8) == 1 and math.huge or random:integer(20) end
    tables[t] = { node = link[1], argument = 0, from = link[2], compute = list(3, function() return random:integer(9) end),
      comm = list(3, function() return list(others, cost) end),
      transition = list(3, function() return list(others, function() return random:integer(2) % 2 end) end) }
  end
  for v = 0, 1 do for o = 0, 2 do weights[#weights + 1] = { v, o, 1 / 2 ^ o } end end
  local equal = {}
  for o = 0, 2 do equal[o + 1] = { { { 0, o } }, { { 3, (o + 1) % 3 } } } end
  return { mesh = { shape = { 2 }, dim_names = { 'dp' } }, nodes = nodes, tables = tables, equal = equal,
    pinned = { { { 4, 1 }, { 4, 2 } } }, memory = { low = 0.75, high = 1.25, weights = weights } }
end

--- The least cost by trying everything, by the words of the format alone.
local function least(read)
  local best = math.huge
  for code = 0, 3 ^ 5 - 1 do
    local choice, cost, rest = {}, 0, code
    for v = 0, 4 do
      choice[v] = rest % 3
      rest = (rest - choice[v]) / 3
    end
    for _, t in ipairs(read.tables) do
      local o, i = choice[t.node] + 1, t.from and choice[t.from] + 1 or 1
      local comm = t.comm[o][i]
      cost = cost + t.compute[o] + (type(comm) == 'number' and comm or math.huge) + t.transition[o][i]
    end
    local used = 0
    for _, w in ipairs(read.memory.weights) do if choice[w[1]] == w[2] then used = used + w[3] end end
    local same = choice[3] == (choice[0] + 1) % 3
    if same and choice[4] > 0 and used >= read.memory.low and used <= read.memory.high then best = math.min(best, cost) end
  end
  return best
end

describe("AutoParallel's problem", function()
  it('is solved to the optimum of all combinations', function()
    local solved = 0
    for seed = 1, 60 do
      local read = random_problem(seed)
      local path = write(('%d.json'):format(seed), read)
      local result, wanted = autoparallel.select(path, { quiet = true, seconds = 10 }), least(json.read(path))
      expect(result.feasible):equals(wanted < math.huge)
      if result.feasible then
        solved = solved + 1
        expect(result.cost):near(wanted, 1e-9)
        expect(result.optimal):equals(true)
        expect(#result.solution):equals(5)
        expect(result.placements.placements.n0.output):equals(('S(%d)'):format(result.solution[1]))
        expect(result.placements.placements.n0.inputs[1]):equals 'R'
      end
    end
    expect(solved > 20):equals(true)
  end)

  it('has the objective of its own integer program', function()
    local path = '../shared/data/formats/autoparallel_mlp_2x2.problem.json'
    if not core.exists(path) then skip 'needs ../shared/data/formats' end
    local result = autoparallel.select(path, { quiet = true, seconds = 10 })
    expect(result.cost):near(result.objective, 1e-6)
    expect(result.optimal):equals(true)
    expect(result.nodes):equals(27)
  end)

  it('names every node with the choice of the one that it is linked to, and tables share costs', function()
    local read = random_problem(1)
    read.nodes[2].linked = { 'twin', 'other' }
    local plain = autoparallel.select(write('linked.json', read), { quiet = true })
    expect(plain.placements.placements.twin.output):equals(plain.placements.placements.n1.output)
    expect(plain.placements.placements.other.inputs[1]):equals 'R'
    read.tables[7] = merged(read.tables[1], {})
    local twice = autoparallel.select(write('twice.json', read), { quiet = true })
    read.tables[7] = { node = 0, argument = 0, as = 0 }
    local shared = autoparallel.select(write('shared.json', read), { quiet = true })
    expect(shared.cost):equals(twice.cost)
    expect(twice.cost > plain.cost):equals(true)
  end)

  it('may bound the memory by what no weights come to', function()
    local read = random_problem(2)
    local function solved(low, high)
      read.memory.low, read.memory.high = low, high
      local result = autoparallel.select(write('bounds.json', read), { quiet = true })
      return result.feasible, result.cost, least(read)
    end
    local feasible, cost, best = solved(-1e30, 1e30)
    expect(feasible):equals(true)
    expect(cost):near(best, 1e-9)
    for _, bounds in ipairs { { 1e30, 2e30 }, { -2e30, -1e30 } } do
      feasible, cost, best = solved(bounds[1], bounds[2])
      expect(feasible):equals(false)
      expect(cost):equals(best)
    end
  end)

  it('is read compressed or not, whatever its name says, and behind a byte order mark', function()
    local path = core.home .. '/tests/data/clients/autoparallel/gpt2_8.json.gz'
    local compressed, best = core.read_file(path), autoparallel.select(path, { quiet = true }).cost
    local plain = core.read_compressed(path)
    for name, text in trinity.system.sorted_pairs { ['compressed.json'] = compressed, ['plain.json.gz'] = plain,
      ['marked.json'] = '\239\187\191' .. plain } do
      trinity.files.write(folder .. '/' .. name, text)
      expect(autoparallel.select(folder .. '/' .. name, { quiet = true }).cost):equals(best)
    end
    trinity.files.write(folder .. '/cut.json.gz', compressed:sub(1, -2))
    expect(function() autoparallel.select(folder .. '/cut.json.gz', { quiet = true }) end):raises(
      'cut%.json%.gz: byte %d+: expected a whole file of gzip')
  end)

  it('names file and field of what is wrong', function()
    local function refusal(change)
      local read = random_problem(1)
      change(read)
      local path = write('wrong.json', read)
      local ok, message = pcall(autoparallel.select, path, { quiet = true })
      expect(ok):equals(false)
      expect(message):matches 'wrong%.json: '
      return message
    end
    expect(refusal(function(r) r.tables[2].node = 9 end)):matches "table 1: field 'node': expected a number from 0 to 4, got number 9"
    expect(refusal(function(r) r.tables[2].comm[1] = { 1 } end)):matches "table 1: choice 0: field 'comm': expected a list of 3"
    expect(refusal(function(r) r.nodes[1].choices = {} end)):matches "node 0: field 'choices'"
    expect(refusal(function(r) r.nodes[1].name = 4 end)):matches "node 0: field 'name': expected a text, got number 4"
    expect(refusal(function(r) r.nodes[1].inputs = 'R' end)):matches "node 0: field 'inputs': expected a list of 3"
    expect(refusal(function(r) r.nodes[1].linked = { 1 } end)):matches "node 0: field 'linked'%[0%]: expected a text"
    expect(refusal(function(r) r.mesh.shape = 2 end)):matches "mesh: field 'shape': expected a list"
    expect(refusal(function(r) r.tables[1] = { node = 0, as = 0 } end)):matches "table 0: field 'as': "
    expect(refusal(function(r) r.tables[1] = 3 end)):matches 'table 0: expected an object, got number 3'
    expect(refusal(function(r) r.memory.weights[1] = { 0, 7, 1 } end)):matches 'memory: weight 0: choice'
    expect(refusal(function(r) r.equal[1] = { { { 0, 0 } } } end)):matches 'equal 0: expected a list of 2'
    expect(refusal(function(r) r.pinned[1] = { { 0, 0 }, { 1, 0 } } end)):matches 'pinned 0: expected choices of one node'
    expect(refusal(function(r) r.pinned[1] = { 3 } end)):matches 'pinned 0: choice: expected a list of 2, got number 3'
    expect(refusal(function(r) r.memory.low = 'x' end)):matches "memory: field 'low': expected a number, got string"
    expect(refusal(function(r) r.memory = 3 end)):matches "field 'memory': expected an object, got number 3"
    expect(refusal(function(r) r.equal = { x = 1 } end)):matches "field 'equal': expected a list, got an object"
    expect(refusal(function(r) r.nodes = {} end)):matches "field 'nodes': expected a node, got none$"
    expect(refusal(function(r) r.nodes[3].name = 'n0' end)):matches "node 2: name 'n0': expected a unique name, got the name of node 0$"
    expect(refusal(function(r) r.nodes[3].linked = { 'n4' } end)):matches "node 4: name 'n4': expected a unique name, got the name of node 2$"
    expect(refusal(function(r) r.memory.weights[2][3] = -1 end)):matches 'memory: weight 1: weight: expected a number from 0 to %d+, got number %-1$'
    expect(refusal(function(r) r.memory.weights[2][3] = 1e30 end)):matches 'memory: weight 1: weight: expected a number from 0 to %d+, got'
    expect(refusal(function(r)
      for w = 1, 6 do r.memory.weights[w][3] = 8e6 end
    end)):matches 'memory: expected largest weights per node that sum to at most %d+, got 1.6e%+07$'
    expect(refusal(function(r) r.mesh.dim_names = { 1 } end)):matches "mesh: field 'dim_names'%[0%]: expected a text"
  end)
end)

--- What a solution costs by the words of the format alone, choices counted from 0.
local function cost_of(read, solution)
  local cost = 0
  for _, t in ipairs(read.tables) do
    local of = t.as and read.tables[t.as + 1] or t
    local o, i = solution[t.node + 1] + 1, t.from and solution[t.from + 1] + 1 or 1
    cost = cost + of.compute[o] + of.comm[o][i] + of.transition[o][i]
  end
  return cost
end

describe("AutoParallel's programs of whole models", function()
  local data = core.home .. '/tests/data/clients/'
  local solved = json.read(data .. 'autoparallel_solver.json')
  for name, case in trinity.system.sorted_pairs(solved.cases) do
    local path = ('%sautoparallel/%s.json.gz'):format(data, name)
    it(('are solved to the objective of CBC: %s'):format(name), function()
      local read = json.decode(core.read_compressed(path))
      local result = autoparallel.select(path, { quiet = true, seconds = 60 })
      expect(result.cost / case.cbc.objective):near(1, 1e-6)
      expect(cost_of(read, read.solution) / case.cbc.objective):near(1, 1e-9)
      local chosen = {}
      for v, o in ipairs(result.solution) do chosen[v] = o - 1 end
      expect(cost_of(read, chosen) / result.cost):near(1, 1e-9)
      expect(result.bound / result.cost):near(1, 1e-9)
      expect(result.optimal):equals(true)
    end)
    it(('were solved in a tenth of its time, and AutoParallel counts the same: %s'):format(name), function()
      expect(case.trinity.seconds / case.cbc.seconds):below(0.1)
      expect(case.trinity.processor_s / (case.cbc.processor_s + case.cbc.pulp_processor_s)):below(0.1)
      expect(case.trinity.total_by_autoparallel / case.cbc.total_by_autoparallel):near(1, 1e-6)
      expect(case.trinity.bound / case.cbc.objective):near(1, 1e-9)
    end)
  end
  it('are those of GPT-2 on 8 devices and Llama-3-8B on 8 x 4', function()
    expect(solved.cases.gpt2_8 ~= nil):equals(true)
    expect(solved.cases.llama3_8b_8x4 ~= nil):equals(true)
  end)
end)
