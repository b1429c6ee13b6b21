-- trinity.compare over seeds: medians, failures as rows, finished runs kept; the commands simulate, search, compare.

local graphs = dofile(root .. '/tests/lua/support/graphs.lua')
local trinity = require 'trinity'
local cli = require 'trinity.command.cli'
local core = require 'trinity.core'
local json = require 'trinity.base.json'

local function chain()
  local graph = graphs.chain(10, function(i) return { time_s = i * 1e-3 } end)
  return trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' }
end

describe('comparisons over seeds', function()
  it('give every drawing method all seeds, others one run', function()
    local comparison = trinity.compare(chain(), { 'single_device', 'random', 'heft' },
      { seeds = 3, evaluations = 20, quiet = true })
    expect(#comparison.rows[1].runs):equals(1)
    expect(#comparison.rows[2].runs):equals(3)
    expect(comparison.rows[2].runs[3].seed):equals(3)
    expect(#comparison.rows[3].runs):equals(1)
    expect(tostring(comparison)):matches 'seeds 1 to 3 %(medians%), at most 20 evaluations a method'
    expect(tostring(comparison)):matches '%* best: '
  end)
  it('have significant digits of rewards of any size, and the same columns', function()
    local heads = {}
    for i, scale in ipairs { 1, 1e-7, 1e9 } do
      local problem = chain()
      problem.reward = function(m) return -scale * m.step_time_s end
      local comparison = trinity.compare(problem, { 'single_device', 'random' }, { seeds = 2, evaluations = 20, quiet = true })
      heads[i] = tostring(comparison):match '^[^\n]+':gsub(' +', ' ')
      local shown = { '-0.05500', '-5.500e-09', '-55000000' }
      for _, format in ipairs { 'text', 'latex' } do
        expect(comparison:table { format = format, columns = { 'method', 'reward', 'reward_mean' } })
          :matches(('device[^\n]-%s[ &]+%s'):format((shown[i]:gsub('%p', '%%%0')), (shown[i]:gsub('%p', '%%%0'))))
      end
    end
    expect(heads[1]):equals 'method step time mean deviation peak memory peak communication feasible reward p seconds'
    expect(heads[2]):equals(heads[1])
    expect(heads[3]):equals(heads[1])
  end)
  it('simulate a strategy of another problem again, and refuse one of other operators', function()
    local problem, graph = chain(), trinity.model('alexnet', { batch_size = 4 })
    local found = trinity.methods.single_device(problem, { quiet = true })
    local other = trinity.problem { graph = problem.graph, cluster = problem.cluster,
      reward = function(m) return -1000 * m.step_time_s end }
    local row = trinity.compare(other, { found }, { quiet = true }).rows[1]
    expect(row.method):equals 'single_device'
    expect(row.best.reward):equals(-1000 * found.metrics.step_time_s)
    local alexnet = trinity.problem { graph = graph, cluster = problem.cluster }
    expect(function() trinity.compare(alexnet, { found }, { quiet = true }) end)
      :raises "entry 1: the strategy belongs to chain on p100x2: a placement of graph 'alexnet' needs %d+ entries, got 10"
  end)
  it('show no bound for strategies with splits, which it does not bind', function()
    local problem = trinity.problem { graph = trinity.model('vgg16', { batch_size = 32 }), cluster = trinity.cluster 'p100x4' }
    local text = tostring(trinity.compare(problem, { 'pase', 'single_device' }, { quiet = true }))
    expect(text):matches '\npase[ *]+[%d.]+ s +%- '
    expect(text):matches '\nsingle_device[ *]+[%d.]+ s +[%d.]+x '
    expect(text):matches '\nthe bounds hold where operators are whole'
  end)
  it('need a method', function()
    expect(function() trinity.compare(chain(), {}) end):raises "'list'%): expected names of methods or strategies, got none"
  end)
  it('show what failed as a row that says so', function()
    trinity.methods.register('broken', function() error 'out of luck' end)
    trinity.methods.register('empty', function() return nil, 'nothing fits' end)
    local comparison = trinity.compare(chain(), { 'broken', 'single_device', 'empty' }, { quiet = true })
    expect(#comparison.rows[1].runs):equals(0)
    expect(tostring(comparison)):matches 'broken: failed: .*out of luck'
    expect(tostring(comparison)):matches 'empty: nothing fits'
    expect(comparison:best().method):equals 'single_device'
  end)
end)

describe('methods in the engine', function()
  it('of earlier versions are refused with the word of today', function()
    expect(function() return trinity.methods.gpipe end):raises "no method 'gpipe'; use 'contiguous'"
    expect(function() trinity.methods.get 'm_sct' end):raises "no method 'm_sct'; use 'm_etf'"
    expect(function() return trinity.methods.heftt end):raises "no method 'heftt', did you mean 'heft'"
  end)
  it('run the order of a list schedule when asked', function()
    local found = trinity.methods.heft(chain(), { order = true })
    expect(found.schedule):equals 'order'
  end)
end)

describe('trinity simulate', function()
  it('prints JSON with the placement it was given', function()
    local path = root .. '/tests/data/profiles/small.graph.txt'
    local words = ('1,'):rep(7) .. '0'
    local output = trinity_says(("simulate --rules placeto --devices 2 --model '%s' --placement %s --json"):format(path, words), 0)
    expect(output):matches '"fits":%s*true'
    expect((output:match '"placement":%s*(%b[])':gsub('[%s%[%]]', ''))):equals(words)
    expect(#output:match '"peak_memory_bytes":%s*(%b[])' > 3):equals(true)
  end)
  it('refuses devices that are not there, and counts that do not fit', function()
    trinity_says('simulate --model vgg16 --cluster p100x2 --placement 0,2', 2,
      "option '%-%-placement': entry 2: expected a device from 0 to 1, got '2'")
    trinity_says('simulate --model vgg16 --cluster p100x2 --placement 0,1', 2, 'expected %d+ devices %(one per operator%)')
    trinity_says('simulate --model vgg16 --rules placeto --cluster p100x2', 2, 'cannot be combined with %-%-rules placeto')
  end)
end)

describe('trinity search', function()
  it('prints what simulate prints, and who searched', function()
    local output = trinity_says('search --model vgg16 --cluster p100x2 --method local_search --evaluations 50 --json', 0)
    for _, field in ipairs { 'step_time_s', 'fits', 'peak_memory_bytes', 'lower_bound_s', 'evaluations', 'seconds', 'placement',
      'method', 'seed' } do
      expect(output):matches(('"%s":'):format(field))
    end
  end)
  it('compares several methods: rows as JSON and as a table', function()
    local words = 'search --model vgg16 --cluster p100x2 --method single_device,heft,random --evaluations 20 --seeds 2'
    trinity_says(words .. ' --json', 0, '"method":%s*"heft"', '"best":')
    trinity_says(words, 0, 'made by: trinity search')
  end)
  it_shared('the house method beats the published annealing with the same 3000 evaluations', function()
    local text = core.read_file(shared 'placeto-sim/search_reference.json')
    for _, entry in ipairs(json.decode(text).results) do
      local problem = cli.problem { rules = 'placeto', devices = entry.devices, set = {},
        model = shared(('pipedream/%s.graph.txt'):format(entry.graph)) }
      -- The reference's own figure for one device: the rules are the same.
      expect(problem:evaluate(problem:placement()).step_time_s * 1e6):near(entry.single_us, 2e-7 * entry.single_us)
      for seed = 1, 2 do
        local found = trinity.methods.best(problem, { seed = seed, evaluations = entry.sa_evals, quiet = true })
        expect(found.evaluations <= entry.sa_evals):equals(true)
        expect(found.metrics.step_time_s * 1e6):below(entry.sa_us)
        expect(problem:bounds().step_time_s):below(found.metrics.step_time_s)
      end
    end
  end)
end)

-- Units of 10 GB in a row, too large for one P100 from the second on.
local function heavy(units, cluster)
  return trinity.problem { graph = graphs.heavy(units), cluster = trinity.cluster(cluster) }
end

describe('comparisons of what is out of memory', function()
  it('show a placement that does not fit as a row that says so, and never as the best', function()
    local comparison = trinity.compare(heavy(3, 'p100x4'), { 'single_device', 'round_robin', 'exhaustive' }, { quiet = true })
    expect(tostring(comparison)):matches '\nsingle_device [^\n]* no +%-'
    expect(tostring(comparison)):matches '\nround_robin %* [^\n]* yes +%-'
    expect(comparison:find('single_device').metrics.feasible):equals(false)
    expect(comparison:totable().rows[1].runs[1].fits):equals(false)
    expect(comparison:totable().best):equals 'round_robin'
  end)
  it('show a method without an answer with its reason', function()
    local comparison = trinity.compare(heavy(3, 'p100x2'), { 'm_etf', 'm_topo' }, { quiet = true })
    expect(#comparison.rows[1].runs):equals(0)
    expect(comparison.rows[1].failures[1]):matches "operator 'op3' needs 10000000000 bytes, more than is free"
    expect(tostring(comparison)):matches '\nm_etf +%- '
    expect(tostring(comparison)):matches '\nm_topo [^\n]* no +%-' -- it asks no GPU's size
    expect(comparison:best()):equals(nil) -- nothing fits
  end)
end)

describe('budgets of a comparison', function()
  local names = library_methods()
  it('are kept by every method', function()
    with_torch()
    local comparison = trinity.compare(chain(), names, { evaluations = 13, quiet = true })
    for _, row in ipairs(comparison.rows) do
      expect(#row.runs):equals(1)
      expect(row.runs[1].evaluations >= 1 and row.runs[1].evaluations <= 13):truthy()
    end
  end)
  it('end by seconds, which limit alone where no evaluations are given', function()
    local methods = { 'random', 'annealing', 'local_search', 'mcmc', 'best' }
    local comparison = trinity.compare(chain(), methods, { seconds = 0.2, quiet = true })
    expect(comparison.evaluations):equals(trinity.search.unlimited)
    expect(tostring(comparison)):matches 'at most 0.2 s a method'
    for _, row in ipairs(comparison.rows) do
      expect(row.runs[1].seconds):below(2)
      expect(1):below(row.runs[1].evaluations)
    end
    local output = trinity_says('search --model vgg16 --method random --seconds 0.3 --seeds 1 --json', 0)
    expect(output):matches '"seconds":%s*0?%.3'
    expect(tonumber(output:match '"evaluations":%s*(%d+)') > 10):truthy()
  end)
  it('show a line of progress for every method that takes its time', function()
    local output = trinity_says('search --model vgg16 --method random,annealing,mcmc --seconds 1 --seeds 1', 0)
    for _, name in ipairs { 'random', 'annealing', 'mcmc' } do
      expect(output):matches(('\n?%s  step %%d+/%%S+  best [%%d.]+ s .-reward %%-?[%%d.]+  %%d+ evaluations/s'):format(name))
    end
  end)
end)

describe('a comparison that was broken off', function()
  local words = 'search --model vgg16 --cluster p100x2 --method random,annealing,local_search --evaluations 600 --seeds 2 --json'
  local function rows_of(output) return (output:match '"rows":.*':gsub('"seconds":%s*[%d.e+-]+', '')) end
  it('goes on in the folder of its run where Ctrl-C ended it, to the result of an unbroken one', function()
    local runs = temporary()
    -- Ctrl-C as soon as the first search is over.
    local output = output_of(([[cd '%s' && ('%s' %s --runs '%s' --run broken 2>/dev/null & p=$!
      while ! grep -q '"status": *"done"' '%s'/broken/searches/1/search.json 2>/dev/null && kill -0 $p; do sleep 0.01; done
      kill -INT $p; wait $p; echo "status=$?")]]):format(root, program, words, runs, runs))
    expect(output):matches 'status=130'
    expect(output):matches '"stopped":%s*true'
    local resumed = trinity_says(("%s --runs '%s' --run broken --resume 2>/dev/null"):format(words, runs), 0)
    local whole = trinity_says(("%s --runs '%s' --run whole 2>/dev/null"):format(words, runs), 0)
    expect(resumed):matches '"stopped":%s*false'
    expect(rows_of(resumed)):equals(rows_of(whole))
  end)
end)
