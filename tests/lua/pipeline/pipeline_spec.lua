-- trinity.pipeline and the command: small cases by hand, files of every kind, published figures, errors.

local core = require 'trinity.core'
local trinity = require 'trinity'

local methods = trinity.pipeline.methods() -- before tests register their own
local training = root .. '/tests/data/pipeline/training.json'
local profile = root .. '/tests/data/profiles/small.graph.txt'

local function cut(file, options)
  options.quiet = true
  return trinity.pipeline(file, options)
end

describe('trinity.pipeline', function()
  -- Three layers of 6, 9 and 3 ms, forward and backward; what crosses between the first two takes 0.25 ms each way.
  it('gives the exact contiguous cut, gradients with their layers', function()
    local found = cut(training, { method = 'max_load_dp', cpus = 0 })
    expect(found.max_load):equals(12.5) -- 6 + 0.5 against 9 + 3 + 0.5
    expect(found.unit):equals 'ms'
    expect(table.concat(found.assignment, ' ')):equals '1 2 2 2 2 1'
    expect(found.optimal):truthy()
    expect(found.feasible):truthy()
    expect(#found.stages):equals(2)
    expect(found.stages[1].load):equals(6.5)
    expect(table.concat(found.stages[1].nodes, ' ')):equals '1 6'
    expect(found.loads[2]):equals(12.5)
  end)
  it('finds better ones that are not contiguous', function()
    local found = cut(training, { method = 'max_load_annealing', rounds = 2 })
    expect(found.max_load):equals(10.5) -- 6 + 3 and the transfer, against 9 + 1.5
    expect(found.contiguous_max_load):equals(12.5)
    expect(found.assignment[1]):equals(found.assignment[3])
    expect(found.assignment[2]):equals(found.assignment[5])
  end)
  it('numbers the CPU 0, in the order of the file', function()
    local found = cut(training, { method = 'max_load_dp', devices = 0 })
    expect(found.max_load):equals(180)
    expect(table.concat(found.assignment, ' ')):equals '0 0 0 0 0 0'
    expect(found.nodes[4]):equals(22)
    expect(found.stages[1].first_device):equals(0)
    expect(found.stages[1].load):equals(180)
  end)
  it('knows memory, and says what cannot be', function()
    expect(cut(training, { method = 'max_load_dp', memory_bytes = 20, cpus = 0 }).feasible):truthy()
    expect(cut(training, { method = 'pipedream', memory_bytes = 1, devices = 2, straight = true }).feasible):equals(false)
  end)
  it('says what keeps a cut from fitting, and shows the one nearest to it', function()
    local found = cut(training, { method = 'gpipe', memory_bytes = 14, cpus = 0 })
    expect(found.feasible):equals(false)
    expect(found.max_load):equals(12.5)
    expect(found.infeasibility.over_bytes):equals(found.infeasibility.needed_bytes - 14)
    expect(found.infeasibility.text):matches('^device [12] needs %d+ B, %d+ B %(%d+ bytes%) more than its 14 B$')
    expect(found.least_infeasible):equals(nil)
    local least = math.huge -- that any of the contiguous cuts needs
    for bytes = 15, 30 do
      if cut(training, { method = 'max_load_dp', memory_bytes = bytes, cpus = 0 }).feasible then
        least = bytes
        break
      end
    end
    for _, method in ipairs { 'max_load_dp', 'max_load_annealing', 'piper' } do
      found = cut(training, { method = method, memory_bytes = 14, cpus = 0, rounds = 1 })
      expect(found.feasible):equals(false)
      if method ~= 'piper' then expect(found.max_load == nil and found.optimal and #found.assignment):equals(0) end
      expect(found.infeasibility.needed_bytes):equals(least)
      expect(found.infeasibility.text):matches '^where consecutive cuts balance memory, device %d needs '
      expect(#found.least_infeasible.assignment):equals(6)
      expect(#found.least_infeasible.stages):equals(2)
    end
    expect(cut(training, { method = 'max_load_dp', memory_bytes = 20, cpus = 0 }).infeasibility):equals(nil)
    local only_cpus = temporary '.json'
    core.write_file(only_cpus, (core.read_file(training):gsub('"id": 11, "supportedOnFpga": 1',
      '"id": 11, "supportedOnFpga": 0')))
    expect(cut(only_cpus, { method = 'gpipe', cpus = 0 }).infeasibility.text):equals(
      'node 11 runs on CPUs alone, and an accelerator has it')
    local _, output = run_trinity(("pipeline '%s' --memory 14 --cpus 0 --quiet"):format(training))
    expect(output):matches 'no cut fits, proved\nwhat limits it: .*\nnearest to fitting:\nstage '
  end)
  it('scales transfers to another bandwidth', function()
    local at_file, slower = 2 ^ 31, 2 ^ 30
    expect(cut(training, { method = 'max_load_dp', cpus = 0, bandwidth_bytes_per_s = at_file }).max_load):equals(12.5)
    expect(cut(training, { method = 'max_load_dp', cpus = 0, bandwidth_bytes_per_s = slower }).max_load):equals(13)
  end)
  it('has every method on every kind of file, feasible and with all nodes', function()
    for _, file in ipairs { training, profile } do
      for _, method in ipairs(methods) do
        if trinity.pipeline.help(method) ~= '' then
          local found = cut(file, { method = method, devices = 2, rounds = 1 })
          expect(found.feasible):truthy()
          expect(#found.assignment):equals(#found.nodes)
          local seen = 0
          for _, stage in ipairs(found.stages) do seen = seen + #stage.nodes end
          expect(seen):equals(#found.nodes)
        end
      end
    end
  end)
  it('cuts our own models and problems, with the memory of the cluster', function()
    local found = cut('vgg16', { method = 'gpipe', devices = 4 })
    expect(found.unit):equals 's'
    expect(#found.stages):equals(4)
    expect(found.machine.memory_bytes > 1e9):truthy()
    local problem = trinity.problem { graph = trinity.model('vgg16', { batch_size = 8 }), cluster = trinity.cluster 'p100x2' }
    local exact, rule = cut(problem, { method = 'max_load_dp', devices = 2 }), cut(problem, { method = 'torchgpipe', devices = 2 })
    expect(exact.optimal):truthy()
    expect(exact.max_load <= rule.max_load):truthy()
    local onnx = cut(root .. '/tests/data/onnx/vit.onnx', { method = 'max_load_dp', devices = 2 })
    expect(onnx.feasible):truthy()
  end)
  it('takes methods of scripts', function()
    trinity.pipeline.register('all_on_one', { help = 'for the spec', run = function(plan)
      local list = {}
      for i = 1, #plan.about.nodes do list[i] = 1 end
      return plan.network:price(plan.machine, list)
    end })
    expect(cut(training, { method = 'all_on_one' }).max_load):equals(18)
  end)
  it('raises the error of a method, however late it comes', function()
    trinity.pipeline.register('slow', { help = '', run = function()
      local start = core.clock_s()
      while core.clock_s() - start < 1 do end
      error 'a reason of its own'
    end })
    expect(function() cut(training, { method = 'slow', seconds = 0.01 }) end):raises 'a reason of its own'
  end)
  it('refuses what it cannot take, with one message', function()
    for _, case in ipairs {
      { { training, { method = 'max_load_db' } }, "'max_load_db', did you mean 'max_load_dp'" },
      { { training, { devices = 1.5 } }, "option 'devices': expected an integer from 0" },
      { { training, { devices = {} } }, "option 'devices': expected a number or a list" },
      { { training, { bandwidth_bytes_per_s = 0 } }, "option 'bandwidth_bytes_per_s': expected a positive number" },
      { { training, { devices = { 2, 2 }, bandwidth_bytes_per_s = { 1, 2, 3 } } }, 'expected one number, or one per level of devices %(2%), got 3' },
      { { training, { method = 'pipedream', devices = 0 } }, 'pipedream: expected 1 to 1024 per level, got 0' },
      { { training, { method = 'piper', devices = 0 } }, 'piper: expected 1 to 65536 per level, got 0' },
      { { root .. '/nowhere.json' }, 'no file .*nowhere.json' },
      { { training, { method = 'max_load_dp', devices = 0, cpus = 0 } }, '0 accelerators and 0 CPUs' },
    } do
      local ok, message = pcall(trinity.pipeline, unpack(case[1]))
      expect(ok):equals(false)
      if not tostring(message):find(case[2]) then error(('%s\nhas no "%s"'):format(message, case[2])) end
    end
  end)
end)

describe('trinity pipeline, the command', function()
  it('prints JSON and nothing else', function()
    local words = ("pipeline '%s' --method max_load_dp --cpus 0 --json"):format(training)
    trinity_says(words, 0, '^{', '"max_load": 12.5', '"unit": "ms"', '"optimal": true')
    trinity_says(words .. ' --memory 14', 0, '"max_load": null', '"feasible": false')
  end)
  it('reads lists of levels', function()
    trinity_says(("pipeline '%s' --method pipedream --devices 2,2 --bandwidth 1e9,1e8"):format(profile), 0,
      'by pipedream: max load')
  end)
  it('ends with 2 for a wrong option, with 1 for a wrong file', function()
    trinity_says(("pipeline '%s' --devices two"):format(training), 2,
      "option '%-%-devices': expected numbers with commas, got 'two'")
    trinity_says('pipeline /nowhere/x.json', 1, 'no file /nowhere/x.json')
    trinity_says('pipeline', 2, 'expected a model to cut')
  end)
end)
