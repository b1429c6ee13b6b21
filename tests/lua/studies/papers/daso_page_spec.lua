-- The page of DASO: gains are those of trainings that are simulated one by one, verdicts what they say.

local daso = require 'studies.papers.daso_networks'
local page = require 'studies.papers.page'
local trinity = require 'trinity'

local sync = trinity.synchronisation

local function section(name)
  for _, one in ipairs(require('studies.papers.pages').daso().sections) do
    if one.name == name then return one end
  end
end

local settings = { quick = true, seeds = 1, seed = 1, models = { resnet50 = true }, format = 'text',
  output = temporary '.folder' }

-- Hours of a training on 16 GPUs, its replication made anew.
local function hours(way)
  local run = sync.replicate { graph = trinity.model('resnet50', { batch_size = 256 }), cluster = daso.cluster(16),
    synchronisation = way }
  return run:train({ epochs = 90, batches = math.floor(1281167 / (256 * 16)) }).time_s / 3600
end

local function row_of(rows, what)
  for _, row in ipairs(rows) do if row.what == what then return row end end
  error('no row ' .. what, 0)
end

describe('the page of DASO', function()
  local claims = page.run(section 'claims', settings)
  it('sets it beside the overlapped all-reduce, and two that hide nothing', function()
    local example = hours(sync.daso { max_global_skips = 4 })
    for key, way in trinity.sorted_pairs { bucketed = sync.bsp {},
      flat = sync.bsp { algorithm = 'ring', bucket_bytes = 0 },
      hierarchical = sync.bsp { algorithm = 'hierarchical', bucket_bytes = 0 } } do
      local row = row_of(claims, 'resnet50, 16 GPUs, ' .. key)
      expect(row.literal):equals(('%+.2f %%'):format(100 * (1 - example / hours(way))))
    end
  end)
  it('takes the fastest of its fixed skips', function()
    local least = math.huge
    for _, setting in ipairs(daso.settings) do least = math.min(least, hours(setting.synchronisation)) end
    expect(row_of(claims, 'resnet50, 16 GPUs, bucketed').ours:match '^%S+')
      :equals(('%+.2f'):format(100 * (1 - least / hours(sync.bsp {}))))
  end)
  it('maps bandwidth, GPUs and network cards', function()
    local rows = page.run(section 'map', settings)
    expect(#rows):equals(4)
    for _, row in ipairs(rows) do
      local first, second = row.ours:match '^([%+%-][%d.]+) ([%+%-][%d.]+)$'
      local ahead = {}
      if tonumber(first) >= 1 then ahead[#ahead + 1] = '16' end
      if tonumber(second) >= 1 then ahead[#ahead + 1] = '64' end
      expect(row.verdict.text):equals(#ahead > 0 and ('ahead at %s GPUs'):format(table.concat(ahead, ', '))
        or 'nowhere ahead by 1 %')
    end
  end)
  it('has nodes of one network card on which what all GPUs send shares it', function()
    local function exchange_s(one_card)
      local cluster = daso.cluster(8, 6, one_card)
      return cluster:collective({ kind = 'all_reduce', algorithm = 'ring', devices = { 1, 5 }, bytes = 6e9 }).time_s,
        cluster:collective({ kind = 'all_reduce', algorithm = 'hierarchical', bytes = 6e9,
          devices = { 1, 2, 3, 4, 5, 6, 7, 8 } }).time_s
    end
    local two, all = exchange_s(false)
    local two_shared, all_shared = exchange_s(true)
    expect(two_shared):near(two, 1e-3 * two) -- one GPU a node has the card to itself
    expect(all_shared > 2 * all):equals(true)
  end)
end)
