-- Doppler's graphs and rules through the commands, and its method.

local core = require 'trinity.core'
local cli = require 'trinity.command.cli'
local json = require 'trinity.base.json'
local trinity = require 'trinity'

local ties = root .. '/tests/data/doppler/ties.txt' -- eight operators whose times coincide

local function problem_of(path, devices)
  return cli.problem { model = path, rules = 'doppler', devices = devices, set = {} }
end

local function makespan(problem, digits)
  return cli.makespan(problem:strategy(cli.read_placement(problem, (digits:gsub('.', '%0,'))), { method = 'given' }))
end

describe("Doppler's rules", function()

  it_shared('let a search come near the best known placement', function()
    local facts = json.decode(core.read_file(shared 'doppler/expected.json')).graphs.ffnn_192nodes
    local problem = problem_of(shared 'doppler/ffnn_192nodes.txt', facts.devices)
    local found = trinity.methods.best(problem, { evaluations = 20000, quiet = true })
    expect(cli.makespan(found) / facts.best_known):below(1.1)
  end)

  it('hold for problems of scripts', function()
    local c = trinity.cluster 'p100x2'
    local problem = trinity.problem { graph = trinity.model('alexnet', { batch_size = 8 }), cluster = c, rules = 'doppler' }
    local found = trinity.methods.heft(problem)
    expect(problem:bounds().step_time_s <= found.metrics.step_time_s):truthy()
    expect(function() problem:evaluate { placement = problem:placement(), micro_batches = 2 } end)
      :raises "rules 'doppler' support only one micro%-batch"
  end)
end)

describe('trinity simulate and search with --rules doppler', function()
  it('print the makespan, and the placement in the order of the file', function()
    local words = ("simulate --model '%s' --rules doppler --devices 3 --placement 0,1,2,1,2,0,1,2 --json"):format(ties)
    local status, output = run_trinity(words)
    expect(status):equals(0)
    expect(output):matches '"makespan":%s*28,'
    expect((output:match '"placement":%s*(%b[])':gsub('[%s%[%]]', ''))):equals '0,1,2,1,2,0,1,2'
    status, output = run_trinity(("--threads 2 search --model '%s' --rules doppler --devices 2 --method exhaustive --json"):format(ties))
    expect(status):equals(0)
    local found = output:match '"placement":%s*(%b[])':gsub('[%s%[%],]', '')
    expect(tonumber(output:match '"makespan":%s*(%d+)')):equals(makespan(problem_of(ties, 2), found))
    status, output = run_trinity(("simulate --model '%s' --rules doppler --devices 3"):format(ties))
    expect(status):equals(0)
    expect(output):matches '\nmakespan        23\n'
  end)

  it('refuse in a sentence', function()
    local function refused(words, expected)
      local status, output = run_trinity(words)
      expect(status):equals(2)
      expect(output):matches(expected)
    end
    refused(("simulate --model '%s' --rules dopler"):format(ties), "option '%-%-rules': unknown rules 'dopler', did you mean 'doppler'%?")
    refused('simulate --model alexnet --compat', "option '%-%-compat' was replaced; use %-%-rules placeto\n$")
    refused(("simulate --model '%s' --rules doppler --cluster p100x2"):format(ties), 'cannot be combined with %-%-rules doppler; use %-%-devices')
    refused('simulate --model alexnet --rules doppler', "doppler expects a graph of Doppler %(%.txt%), got model 'alexnet'")
    refused('simulate --model alexnet --devices 3', "'%-%-devices' needs %-%-rules placeto or doppler")
    refused(("simulate --model '%s' --rules doppler --placement 0,2"):format(ties), "entry 2: expected a device from 0 to 1, got '2'")
  end)

end)

describe('doppler', function()
  with_torch()

  -- Mean step time, s, of the latest updates.
  local function last_s(found)
    local sum, count = 0, 0
    for i = math.max(1, #found.curve - 9), #found.curve do sum, count = sum - found.curve[i].mean_reward, count + 1 end
    return sum / count
  end

  it('imitates a list scheduler before it learns from rewards', function()
    local problem = problem_of(ties, 2)
    local untrained = trinity.methods.doppler(problem, { evaluations = 40, hidden = 8, learn = false, quiet = true })
    expect(untrained.updates):equals(0)
    local path = os.tmpname()
    local taught = trinity.methods.doppler(problem, { evaluations = 480, imitation = 1e6, hidden = 8, learning_rate = 1e-9,
      save = path, quiet = true }) -- a quarter imitates, the rest hardly learns
    expect(taught.updates):equals(120)
    expect(last_s(taught)):below(last_s(untrained))
    -- Weights are of no graph and no number of devices.
    local elsewhere = trinity.methods.doppler(problem_of(ties, 3), { evaluations = 40, hidden = 8, learn = false,
      load = path, quiet = true })
    expect(elsewhere:found_by()):equals 'doppler'
    expect(function()
      trinity.methods.doppler(problem, { evaluations = 8, hidden = 4, load = path, quiet = true })
    end):raises 'of this policy'
  end)

  it("takes its authors' settings", function()
    local found = trinity.methods.doppler(problem_of(ties, 2), { preset = 'paper', hidden = 8, evaluations = 12, quiet = true })
    expect(found.updates):equals(12)
    expect(found.evaluations):equals(12)
  end)
end)
