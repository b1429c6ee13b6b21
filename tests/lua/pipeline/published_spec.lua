-- Planners against published figures, on the files of their authors.

local core = require 'trinity.core'
local instances = require 'trinity.graph.instances'
local json = require 'trinity.base.json'

-- The network of a file, its table, and what the file says about the machine.
local function network_of(path)
  local _, _, network = instances.read(path)
  local made, about = network()
  return core.pipeline_network(made), made, about
end

-- Calls body(name, figures, network, made, machine) for every instance of dnn-partitioning's throughput.
local function each_instance(body)
  for name, figures in pairs(json.read(shared 'dnn-partitioning/expected.json').throughput) do -- in any order
    local network, made, about = network_of(shared(('dnn-partitioning/throughput-inputs/%s.json'):format(name)))
    body(name, figures, network, made, about, { devices = about.devices, cpus = about.cpus, memory_bytes = about.memory_bytes,
      bandwidth_bytes_per_s = about.bandwidth_bytes_per_s })
  end
end

-- The device of every node by a cut of the authors. Nodes that it leaves out are with their unit, so that a cut
-- for inference cuts the training graph.
local function placed(cut, made, about)
  local by_id, by_unit, devices = {}, {}, {}
  for kind, count in pairs { fpgas = 0, cpus = 1 } do -- in any order
    for d, group in ipairs(cut[kind] or {}) do
      for _, id in ipairs(group.nodes) do by_id[id] = count == 0 and d or 1 - d end
    end
  end
  for i, id in ipairs(about.nodes) do by_unit[made.nodes[i].unit] = by_unit[made.nodes[i].unit] or by_id[id] end
  for i, id in ipairs(about.nodes) do devices[i] = by_id[id] or by_unit[made.nodes[i].unit] end
  return devices
end

describe('published instances of dnn-partitioning', function()
  it_shared("have the published objective on one accelerator and by the experts' cuts", function()
    local single, experts, without = 0, 0, ''
    each_instance(function(name, figures, network, made, about, machine)
      local one = {}
      for i = 1, #about.nodes do one[i] = 1 end
      expect(network:price(machine, one).max_load):near(figures.one_accelerator, 1e-5 * figures.one_accelerator)
      single = single + 1
      if not figures.human_expert then return end
      local folder, short = 'dnn-partitioning/human-experts/', name:match '[^/]*$'
      local path
      for _, cut in ipairs { short, short:gsub('_training', '_inference') .. '' } do
        path = path or core.exists(shared(folder .. cut .. '_expert.json')) and shared(folder .. cut .. '_expert.json')
      end
      if not path then
        without = without .. name
        return
      end
      local cut = network:price(machine, placed(json.read(path), made, about))
      expect(cut.max_load):near(figures.human_expert, 1e-5 * figures.human_expert)
      experts = experts + 1
    end)
    expect(single):equals(11)
    expect(experts):equals(5)
    expect(without):equals 'LayerGraphs/inceptionv3_inference' -- no cut there
  end)
  it_shared('have the published optimum where down-sets are few', function()
    -- The slowest cases are left out: all but one of GNMT, where one order is not optimal, and of BERT-12, and CPUs with
    -- two accelerators and more where down-sets are many.
    local only = { ['LayerGraphs/gnmt_training'] = '3', ['OperatorGraphs/bert_L-12_training'] = '4' }
    local many = { ['LayerGraphs/inceptionv3_inference'] = true, ['OperatorGraphs/bert_l-3_training'] = true,
      ['OperatorGraphs/bert_l-6_inference'] = true }
    local compared = 0
    each_instance(function(name, figures, network, _, about, machine)
      for k, optimum in pairs(figures.optimal_contiguous_by_k) do -- in any order
        for cpus = 0, math.min(1, about.cpus) do
          machine.devices, machine.cpus = tonumber(k), cpus * about.cpus
          local left_out = machine.devices + machine.cpus == 0 or only[name] and (only[name] ~= k or cpus > 0)
            or many[name] and cpus > 0 and machine.devices > 1
          if not left_out then
            local best = optimum[cpus > 0 and 'with_cpu' or 'accelerators_only']
            local cut = network:max_load(machine, {})
            expect(cut.optimal):truthy()
            expect(cut.feasible):equals(best ~= nil)
            if best then expect(cut.max_load):near(best, 1e-11 * best) end -- figures of 12 digits
            compared = compared + 1
          end
        end
      end
    end)
    expect(compared):equals(92)
  end)
  all_only()
  it_shared('have cuts that are not contiguous as good as the best known', function()
    local compared = 0
    each_instance(function(_, figures, network, _, _, machine)
      local known = figures.noncontiguous_best_found_cbc_400s
      if not known then return end
      local cut = network:search(machine, { rounds = 2, trials = 400000 })
      expect(cut.max_load <= known and cut.feasible):truthy()
      compared = compared + 1
    end)
    expect(compared):equals(3)
  end)
end)

describe('published instances of Piper', function()
  it_shared('have the published optimum', function()
    local rows = json.read(shared 'piper/expected.json').optimum
    for _, row in ipairs(rows) do
      local network = network_of(shared('piper/' .. row.graph))
      local found = network:piper({ devices = row.k, memory_bytes = math.floor(row.memory_GiB * 2 ^ 30),
        bandwidth_bytes_per_s = row.bandwidth_GiB * 2 ^ 30, micro_batches = row.N }, {})
      expect(found.optimal):truthy()
      expect(found.feasible):equals(row.TPS ~= nil)
      -- GNMT's figure has six digits.
      if row.TPS then expect(found.max_load):near(row.TPS, (row.graph == 'gnmt.json' and 2e-6 or 1e-8) * row.TPS) end
    end
    expect(#rows):equals(12)
  end)
end)
