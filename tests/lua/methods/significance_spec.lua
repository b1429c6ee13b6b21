-- trinity.compare over several seeds: mean, standard deviation, a paired test; the table in other formats.

local statistics = require 'trinity.base.statistics'
local text = require 'trinity.base.text'
local trinity = require 'trinity'

describe('the signed-rank test', function()
  local function p(...) return statistics.signed_rank({ ... }).p end
  it('gives what R gives for the example of Hollander and Wolfe', function()
    local x = { 1.83, 0.50, 1.62, 2.48, 1.68, 1.88, 1.55, 3.06, 1.30 }
    local y = { 0.878, 0.647, 0.598, 2.05, 1.06, 1.29, 1.06, 3.14, 1.29 }
    local differences = {}
    for i = 1, #x do differences[i] = x[i] - y[i] end
    expect(p(unpack(differences))):near(0.0390625, 1e-12) -- V = 40
    for i = 1, #x do differences[i] = -differences[i] end
    expect(p(unpack(differences))):near(0.0390625, 1e-12)
  end)
  it('counts all signs, with ties, zeros and what is infinite', function()
    expect(p(1, 2, 3, 4, 5)):equals(0.0625)
    expect(p(1, 1, 1, 1, -1)):equals(0.375)
    expect(p(0, 0, 0)):equals(1)
    expect(p(0, 3, 0)):equals(1)
    expect(p(math.huge, math.huge, 1, 2, 3, 4)):equals(2 / 64)
    expect(p(-math.huge, 1, 2)):equals(p(-9, 1, 2))
    expect(statistics.signed_rank({ 1, 2, 3 }).least_p):equals(0.25)
    local below, all = 0, 2 ^ 7 -- every sign of 1, 2, 2, 3, 5, 5, 8 by hand
    local ranks, sizes = { 1, 2.5, 2.5, 4, 5.5, 5.5, 7 }, { 1, -2, 2, 3, 5, -5, 8 }
    for signs = 0, all - 1 do
      local sum = 0
      for i = 1, 7 do if math.floor(signs / 2 ^ (i - 1)) % 2 == 1 then sum = sum + ranks[i] end end
      if sum <= 8 then below = below + 1 end
    end
    expect(p(unpack(sizes))):near(2 * below / all, 1e-12)
  end)
  it('goes on with the normal distribution beyond a hundred', function()
    local list = {}
    for i = 1, 100 do list[i] = i % 3 == 0 and -i or i end
    local exact = statistics.signed_rank(list)
    list[101] = 1e-3
    local normal = statistics.signed_rank(list)
    expect(exact.exact):equals(true)
    expect(normal.exact):equals(false)
    expect(normal.p):near(exact.p, 0.05 * exact.p)
  end)
  it('is printed with mean and standard deviation', function()
    expect(statistics.mean { 1, 2, 6 }):equals(3)
    expect(statistics.deviation { 1, 2, 6 }):near(math.sqrt(7), 1e-12)
    expect(statistics.deviation { 0.1, 0.1, 0.1, 0.1, 0.1, 0.1 }):equals(0)
    expect(statistics.deviation { 1 }):equals(nil)
  end)
end)

describe('a comparison over seeds', function()
  local problem = trinity.problem { graph = trinity.model('alexnet', { batch_size = 8 }), cluster = trinity.cluster 'p100x2' }
  local given = problem:strategy(problem:placement(), { method = 'mine' })
  local list = { 'single_device', 'random', 'annealing', given }
  local comparison = trinity.compare(problem, list, { evaluations = 30, seeds = 6, quiet = true })
  local function line(pattern, words) return tostring(comparison:table(words)):match('\n(' .. pattern .. '[^\n]*)') end
  it('calls rows as the table does', function()
    local labelled = trinity.compare(problem, { 'random', 'annealing' }, { evaluations = 30, seeds = 2, quiet = true,
      labels = { random = 'by chance', annealing = 'cooled' } })
    expect(tostring(labelled)):matches '\np against cooled: by chance 0%.5 %('
  end)
  it('tests every row against the best one', function()
    expect(comparison:best().method):equals 'annealing'
    local test = comparison:significance('random', 'annealing')
    expect(test.pairs):equals(6)
    expect(test.p):equals(2 / 64) -- random is worse for each seed
    expect(test.exact):equals(true)
    expect(comparison:significance('annealing', 'random').p):equals(test.p)
    expect(comparison:significance('single_device', 'mine')):equals(nil)
    expect(comparison:significance('single_device', 'random').pairs):equals(6)
    expect(function() comparison:significance('rndom', 'annealing') end)
      :raises "comparison:significance: argument 1 %('name'%): no row 'rndom', did you mean 'random'%?"
    expect(tostring(comparison)):matches('\np against annealing: single_device [%d.]+, random 0%.0313, mine [%d.]+ %(Wilcoxon signed%-rank, '
      .. 'two%-sided, exact, 6 seeds in pairs, never below 0%.0313, not corrected for 3 tests%)\n')
    local data = comparison:totable()
    expect(data.rows[2].against_best.p):equals(test.p)
    expect(data.rows[3].against_best):equals(nil)
    local times = {}
    for i, found in ipairs(comparison.rows[2].runs) do times[i] = found.metrics.step_time_s end
    table.sort(times)
    expect(data.rows[2].mean_step_time_s):equals(statistics.mean(times))
    expect(data.rows[2].deviation_step_time_s):equals(statistics.deviation(times))
  end)
  it('says nothing of chance with one seed', function()
    local one = trinity.compare(problem, { 'random', 'annealing' }, { evaluations = 20, quiet = true })
    expect(tostring(one):find('Wilcoxon', 1, true)):equals(nil)
    expect(tostring(one)):matches '^method +step time +over bound'
  end)
  it('has the same columns for every number of seeds above one, in at most 120 characters', function()
    local whole = tostring(comparison)
    expect(whole):matches '^method +step time +mean +deviation [^\n]* p +seconds\n'
    expect(whole):matches 'seeds 1 to 6 %(medians%)'
    for row in whole:match '^(.-)\n\n':gmatch '[^\n]+' do expect(#row):below(121) end
    local short = trinity.compare(problem, { 'single_device', given }, { seeds = 2, quiet = true })
    expect(tostring(short)):matches '^method +step time +mean +deviation [^\n]* p +seconds\n'
  end)
  it('shows chosen columns, with ranges where they are wanted', function()
    expect(line('random', { columns = { 'method', 'runs', 'feasible' } })):matches '^random +6 +yes$'
    expect(line('random', { columns = { 'method', 'reward' }, ranges = true })):matches '^random +%-[%d.]+ %[%-[%d.]+ %- %-[%d.]+%]$'
    expect(function() comparison:table { columns = { 'stp_time' } } end)
      :raises "option 'columns': entry 1: unknown column 'stp_time', did you mean 'step_time'%?"
    expect(function() comparison:table { columns = {} } end):raises 'expected at least one column'
    expect(function() comparison:table { format = 'html' } end):raises "unknown value 'html' %(known: csv, latex, markdown, text%)"
  end)
  it('is Markdown, LaTeX and CSV', function()
    local words = { columns = { 'method', 'step_time', 'p' } }
    expect(line('| random', merged(words, { format = 'markdown' }))):matches '^| random | [%d.]+ s | 0%.0313 |$'
    expect(comparison:table(merged(words, { format = 'latex' }))):matches(
      '^\\begin{tabular}{lrr} [^\n]*booktabs}\n\\toprule\nmethod & step time & p \\\\\n\\midrule\nsingle\\_device & ')
    local csv = comparison:table(merged(words, { format = 'csv' }))
    expect(csv):matches '^method,step_time_s,p\nsingle_device,'
    local time = tonumber(csv:match '\nsingle_device,([^,]+),')
    expect(time):equals(comparison.rows[1].best.metrics.step_time_s) -- every digit
  end)
  it('has the same on the command line, where words are refused before anything is computed', function()
    local compare = 'search --model alexnet --batch_size 8 --method single_device,random --seeds 2 --evaluations 8 --run none --quiet '
    trinity_says(compare .. '--columns method,runs,reward_mean', 0,
      '^method +runs +mean reward\n[^\n]+\n[^\n]+\n[^\n]+\n\nsimulated; lower bounds')
    local status, output = run_trinity(compare .. '--format csv --columns method,runs')
    expect(status == 0 and output):equals 'method,runs\nsingle_device,1\nrandom,2\n'
    trinity_says(compare .. '--columns runs,rward', 2,
      "^trinity: option '%-%-columns': unknown column 'rward', did you mean 'reward'%?")
    trinity_says(compare .. '--format tex', 2, "^trinity: option '%-%-format': unknown format 'tex'")
  end)
end)

describe('formats of tables', function()
  it('escape what would be read otherwise', function()
    expect(text.markdown({ 'a', 'b' }, { { 'x|y', '1' } })):equals '| a | b |\n|---|--:|\n| x\\|y | 1 |'
    expect(text.latex({ 'a' }, { { '50 % & a_b^c\\d~ #$' } }))
      :matches '50 \\%% \\& a\\_b\\textasciicircum{}c\\textbackslash{}d\\textasciitilde{} \\#\\%$'
    expect(text.csv({ 'a', 'b' }, { { 'x,"y"', '1' } })):equals 'a,b\n"x,""y""",1'
  end)
  it('write numbers with as few digits as read back', function()
    for _, number in ipairs { 0.1, 1 / 3, 2 ^ 53, 0.140977351, 1e-300, math.pi * 1e10 } do
      expect(tonumber(text.digits(number))):equals(number)
    end
    expect(text.digits(0.140977351)):equals '0.140977351'
  end)
end)

describe('what sees every strategy', function()
  local graph, cluster = trinity.model('alexnet', { batch_size = 4 }), trinity.cluster 'p100x2'
  local function problem(spec) return trinity.problem(merged({ graph = graph, cluster = cluster }, spec)) end
  it('is a reward of two arguments, which gets the strategy', function()
    local start = problem({}):placement()
    local function moved(strategy)
      local count = 0
      for op = 1, #start do if strategy.placement[op] ~= start[op] then count = count + 1 end end
      return count
    end
    local costly = problem { reward = function(m, strategy) return -m.step_time_s - moved(strategy) end }
    local found = trinity.methods.annealing(costly, { evaluations = 60, quiet = true })
    expect(found.reward):equals(-found.metrics.step_time_s - moved(found))
    expect(moved(found)):equals(0)
    local p = costly:placement()
    p[1] = 2
    expect(costly:score(costly:evaluate(p), p)):equals(-costly:evaluate(p).step_time_s - 1)
    expect(costly:strategy({ placement = p, schedule = 'critical_path' }).reward):equals(costly:score(costly:evaluate {
      placement = p, schedule = 'critical_path' }, p))
    expect(function() costly:score(costly:evaluate(p)) end)
      :raises "problem:score: argument 2 %('plan'%): expected the plan of these metrics, which the reward at .*significance_spec%.lua:%d+ takes"
  end)
  it('has schedule and splits in it, and no reward yet', function()
    local seen
    local one = problem { reward = function(m, strategy) seen = strategy return -m.step_time_s end }
    one:strategy { placement = one:placement(), schedule = 'critical_path', micro_batches = 2 }
    expect(seen.schedule):equals 'critical_path'
    expect(seen.micro_batches):equals(2)
    expect(seen.reward):equals(nil)
    expect(tostring(seen)):matches '^strategy: step [%d.]+ s, memory'
    expect(seen.problem):equals(one)
  end)
  it('costs rewards of one argument nothing', function()
    local given
    local plain = problem { reward = function(...) given = select('#', ...) return -(...).step_time_s end }
    plain:score(plain:evaluate(plain:placement()))
    local one = problem { reward = function(m) return -m.step_time_s end }
    expect(one:score(one:evaluate(one:placement()))):below(0)
    expect(given):equals(2) -- '...' may use it, where there is a plan
    local made, of = 0, require 'trinity.strategy.strategy'
    local unrewarded = of.unrewarded
    of.unrewarded = function(...) made = made + 1 return unrewarded(...) end
    local ok, why = pcall(trinity.methods.random, one, { evaluations = 20, quiet = true })
    of.unrewarded = unrewarded
    expect(ok or why):equals(true)
    expect(made):equals(0)
  end)
  it('is on_evaluated, which may keep what it sees', function()
    local seen = {}
    local archived = problem { on_evaluated = function(metrics, strategy) seen[#seen + 1] = { metrics = metrics, strategy = strategy } end }
    local found = trinity.methods.random(archived, { evaluations = 40, quiet = true })
    expect(#seen):equals(40)
    local best, different = seen[1], false
    for _, entry in ipairs(seen) do
      expect(archived:evaluate(entry.strategy).step_time_s):equals(entry.metrics.step_time_s)
      expect(entry.strategy.reward):equals(-entry.metrics.step_time_s)
      if entry.strategy.reward > best.strategy.reward then best = entry end
      different = different or entry.metrics.step_time_s ~= seen[1].metrics.step_time_s
    end
    expect(different):equals(true)
    expect(best.strategy.reward):equals(found.reward)
    for op = 1, graph.operators do expect(best.strategy.placement[op]):equals(found.placement[op]) end
    seen = {}
    trinity.methods.annealing(archived, { evaluations = 40, quiet = true })
    for _, entry in ipairs(seen) do expect(entry.metrics.rejected):equals(false) end
    expect(30):below(#seen)
    seen = {}
    trinity.methods.metis(archived)
    expect(#seen):equals(1)
  end)
  it('ends the search where it fails, at its own line', function()
    local failing = problem { on_evaluated = function() error 'no room' end }
    expect(function() trinity.methods.random(failing, { evaluations = 5, quiet = true }) end):raises 'significance_spec%.lua:%d+: no room'
    expect(function() problem { on_evaluated = 3 } end):raises "option 'on_evaluated': expected a function, got number 3"
  end)
end)
