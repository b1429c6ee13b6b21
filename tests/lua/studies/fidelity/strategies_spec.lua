-- trinity study fidelity strategies and published: what cases leave to the library, published memory, what is refused. Counts of
-- memory and messages: strategy/agreement_spec.

local core = require 'trinity.core'
local csv = require 'trinity.base.csv'
local trinity = require 'trinity'
local strategies = require 'studies.fidelity.strategies'

-- A small Llama.
local function small(strategy, changes)
  local case = { name = 'small', model = { layers = 4, hidden = 64, heads = 4, kv_heads = 2, ffn = 96, gated = true,
    vocabulary = 100, norm = 'rmsnorm' }, batch = { micro_batch = 2, sequence = 32, micro_batches = 4 },
    strategy = strategy }
  for key, value in trinity.system.sorted_pairs(changes or {}) do case[key] = value end
  return strategies.cases('cases.json', { case })[1]
end

describe('a small gated decoder', function()
  it('rounds rows of experts up to what parts of the sequence divide', function()
    local found = small({ mesh = { tensor = 2 }, sequence_parallel = true }, { model = { layers = 2, hidden = 64, heads = 4,
      ffn = 96, gated = true, experts = 8, top_k = 1, vocabulary = 100 }, batch = { micro_batch = 1, sequence = 40,
      micro_batches = 1 } })
    expect(#found.stages):equals(1)
  end)
  it('counts the messages of the weights of experts\' rows apart', function()
    local stage = small({ mesh = { data = 2, expert = 2 } }, { model = { layers = 2, hidden = 64, heads = 4, ffn = 96,
      gated = true, experts = 4, top_k = 2, vocabulary = 100 } }).stages[1]
    local rows = 2 * 32 * 2 -- tokens of a micro-batch, a copy a choice
    expect(stage.row_weights.count):equals(4 * 2 * 2) -- forwards, and their gradients back
    expect(stage.row_weights.bytes):equals(4 * 2 * 2 * 2 * rows)
  end)
end)

describe('cases of strategies', function()
  it('are refused in a sentence, the others go on', function()
    expect(small({ mesh = {} }, { bytes = { optimizer = 5 } }).refused):matches 'bytes: expected .*, got weights of 2'
    expect(small({ mesh = {} }, { model = { layer = 2 } }).refused):matches "unknown field 'layer', did you mean 'layers'"
    expect(small { mesh = { pipelin = 2 } }.refused):matches "unknown axis 'pipelin', did you mean 'pipeline'"
    local found = strategies.cases('cases.json', { { name = 'x' }, 7 })
    expect(found[1].refused):matches "cases.json: case 1: field 'model' is missing$"
    expect(found[1].name):equals 'x'
    expect(found[2].refused):matches 'cases.json: case 2: .*expected a table, got number 7$'
    expect(small { mesh = 3 }.refused):matches "strategy: field 'mesh': expected a table, got number 3"
    expect(small({ mesh = {}, flash = 1 }).refused):matches "field 'flash': expected true or false, got number 1"
    expect(small({ sequence_paralel = true }).refused):matches "unknown field 'sequence_paralel', did you mean"
    expect(small({ mesh = {} }, { model = { layers = 2, hidden = 64, heads = 4, ffn = 96 } }).refused):matches(
      "model: field 'vocabulary' is missing")
  end)
  it('are a command', function()
    local path = temporary '.json'
    core.write_file(path, '{"cases": [{"name": "one", "model": {"layers": 2, "hidden": 64, "heads": 4, "ffn": 96, '
      .. '"vocabulary": 100}, "batch": {"micro_batch": 1, "sequence": 16, "micro_batches": 2}, '
      .. '"strategy": {"mesh": {"data": 2}}}]}')
    local text = trinity_says(("study fidelity strategies --cases '%s' --json"):format(path), 0, '"refused": null')
    local case = trinity.files.json.decode(text).cases[1]
    expect(case.name):equals 'one'
    expect(case.stages[1].collectives[1].kind):equals 'all-reduce'
  end)
end)

describe('published memory', function()
  local head = 'id,hidden,layers,heads,sequence,micro_batch,tp,pp,vpp,recompute,sequence_parallel,what,unit,value\n'
  local function told(path, code, words)
    local out = trinity_says(("study fidelity published --memory '%s' --json"):format(path), code or 0, words)
    return trinity.files.json.decode(out:match '{.*}').rows
  end
  local function file_of(text, columns)
    local path = temporary '.csv'
    core.write_file(path, (columns or head) .. text)
    return path
  end
  local function rows(text, columns) return told(file_of(text, columns)) end
  it('equals the formula: s b h (10 + 24 / t + 5 a s / h t) a layer (Korthikanti et al. 2022, equation 2)', function()
    local found = rows 'a,256,4,8,128,2,2,1,1,none,0,activations of the fullest GPU,GiB,\n'
    expect(found[1].predicted * 2 ^ 30):near(4 * 128 * 2 * 256 * (10 + 24 / 2 + 5 * 8 * 128 / (256 * 2)), 1)
  end)
  it('relates to that without recomputation, and has the states of layers', function()
    local found = rows('b,256,4,8,128,2,2,1,1,full,0,activations relative to none,percent,\n'
      .. 'c,256,4,8,128,2,2,2,1,none,0,"weights, gradients and optimiser",GiB,1\n')
    expect(found[1].predicted):near(100 * 2 / (10 + 24 / 2 + 5 * 8 * 128 / (256 * 2)), 0.01)
    expect(found[2].predicted * 2 ^ 30):near(18 * 12 * 256 ^ 2 * 2 / 2 + 18 * 4 * 256 * 2, 1) -- and the norms
    expect(found[2].row):equals 'c'
  end)
  it('is plotted with what was published', function()
    if not require('trinity').plot.available() then skip 'gnuplot is not installed' end
    local path, out = temporary '.csv', temporary()
    core.write_file(path, head .. 'a,256,4,8,128,2,2,1,1,none,0,activations,GiB,0.01\n'
      .. 'b,256,4,8,128,2,2,1,1,full,0,activations relative to none,percent,5\n')
    trinity_says(("study fidelity published --memory '%s' --picture '%s'"):format(path, out), 0, 'picture: ')
    local svg = core.read_file(out .. '.svg')
    expect(svg):matches 'GiB'
    expect(svg):matches 'percent'
  end)
  it('refuses a damaged table in a sentence', function()
    trinity_says(("study fidelity published --memory '%s'"):format(file_of 'a,256\n'), 1, 'line 2: expected 14 fields, got 2')
  end)
  it('refuses rows in a sentence each, and predicts the others', function()
    local good = '4,8,128,2,2,1,1,none,0,activations,GiB,\n'
    local found = rows('a,256,x,8,128,2,2,1,1,none,0,activations,GiB,\nb,256,4,8,128,2,2,1,1,none,0,speed,GiB,\n'
      .. 'c,256,4,8,128,2,2,1,1,none,0,activations,MB,\nd,256,' .. good)
    expect(found[1].refused):matches "line 2: column 'layers': expected a number, got string 'x'"
    expect(found[2].refused):matches "line 3: column 'what': expected activations"
    expect(found[3].refused):matches 'line 4: .*expected GiB or percent'
    expect(found[1].predicted):equals(nil)
    expect(found[4].predicted):equals(rows('d,256,' .. good)[1].predicted)
  end)
  it('names row and column of each cell that is wrong', function()
    local function refused(cells, words)
      expect(told(file_of('a,' .. cells .. '\n'), 1)[1].refused):matches('line 2: ' .. words)
    end
    refused('0,4,8,128,2,2,1,1,none,0,activations,GiB,', "column 'hidden': expected a whole number from 1, got string '0'$")
    refused('256,4,8,128,2,0,1,1,none,0,activations,GiB,', "column 'tp': expected a whole number from 1, got string '0'$")
    refused('256,4,8,128,2,2,1.5,1,none,0,activations,GiB,', "column 'pp': expected a whole number")
    refused('256,4,8,128,2,2,1,1,some,0,activations,GiB,', "column 'recompute': expected none, selective or full, got "
      .. "string 'some', did you mean 'none'%?$")
    refused('256,4,8,128,2,2,1,1,none,yes,activations,GiB,', "column 'sequence_parallel': expected 0 or 1, got string 'yes'$")
    refused('256,4,8,128,2,2,1,1,none,0,activations,,', "column 'unit': expected GiB or percent, got string ''$")
    refused('256,4,8,128,2,2,1,1,none,0,activations,GiB,much', "column 'value': expected a number, got string 'much'$")
    refused('256,4,8,128,2,16,1,1,none,0,activations,GiB,', 'mesh: tensor = 16: .* has 8 heads, which 16 does not divide')
    refused('256,4,7,128,2,1,1,1,none,0,activations,percent,', "model 'decoder': hidden = 256 is no multiple of heads = 7")
    refused('256,4,8,128,2,1,3,2,none,0,activations,percent,', "column 'pp': expected at most 4 stages %(layers%), got 3 x 2")
  end)
  it('counts embedding and head as a layer each where layers do not divide', function()
    local found = rows('a,256,7,8,128,2,1,4,1,none,0,activations,GiB,\nb,256,8,8,128,2,1,4,1,none,0,activations,GiB,\n')
    expect(found[1].predicted / found[2].predicted):near(9 / 8, 1e-9) -- 1, 3, 2, 1 layers: 3 in flight of 3, for 4 of 2
  end)
  it('takes empty cells, and columns that are absent, as one device without recomputation', function()
    local full = rows 'a,256,4,8,128,1,1,1,1,none,0,activations,GiB,\n'
    expect(rows('a,256,4,8,128,,,,,,,activations,GiB,\n')[1].predicted):equals(full[1].predicted)
    expect(rows('activations,GiB,128,8,4,256,a\n', 'what,unit,sequence,heads,layers,hidden,id\n')[1].predicted):equals(full[1].predicted)
  end)
  it_shared('is met within 3 % by rows of all models but the two largest', function()
    local path = temporary '.csv'
    local lines = {}
    for line in io.lines(shared 'llm-published/memory.csv') do
      if not line:find('530B', 1, true) and not line:find('1T', 1, true) then lines[#lines + 1] = line end
    end
    core.write_file(path, table.concat(lines, '\n') .. '\n')
    local found, values = told(path), csv.read(path)
    for i, row in ipairs(found) do
      if math.abs(row.predicted / values[i].value - 1) > 0.03 then
        error(('%s: published %g, predicted %g'):format(row.row, values[i].value, row.predicted), 0)
      end
    end
    expect(#found):equals(#lines - 1)
  end)
end)
