-- trinity runs report: pages of every kind, read by headless Chromium, which clicks, zooms and types in them.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local report = require 'trinity.report'
local run_folders = dofile(root .. '/tests/lua/support/run_folders.lua')
local trinity = require 'trinity'

local folder = temporary()

-- Options of headless Chromium that need no display, no network and no services of a desktop. The console goes to its
-- standard error.
local browser = 'chromium --headless --no-sandbox --disable-gpu --disable-extensions --no-first-run '
  .. '--disable-background-networking --window-size=1300,900 --enable-logging=stderr --remote-debugging-port=0'

local function has(command) return os.execute(('command -v %s >/dev/null 2>&1'):format(command)) == 0 end

--- A copy of a page that reports errors and what its self-test saw.
local function instrument(name, page)
  local errors = ([[<script>var reportErrors = [], reportName = '%s';
addEventListener('error', function (e) { reportErrors.push(String(e.message)); });
addEventListener('securitypolicyviolation', function (e) { reportErrors.push('policy: ' + e.violatedDirective); });
console.error = console.warn = function () { reportErrors.push(Array.prototype.join.call(arguments, ' ')); };</script>]])
    :format(name)
  local test = '<script>' .. core.read_file(root .. '/tests/lua/support/report_selftest.js') .. '</script></body>'
  local function plain(text) return (text:gsub('%%', '%%%%')) end
  local copy, heads = page:gsub('<title>', plain(errors .. '<title>'), 1)
  local whole, ends = copy:gsub('</body>%s*</html>%s*$', plain(test))
  expect(heads + ends):equals(2)
  core.write_file(('%s/%s.html'):format(folder, name), whole)
end

--- Reads what a browser's console says until `count` pages have reported what they saw, and ends the browser.
local function listen(count)
  local pipe = io.popen(("echo $$; exec timeout -k 2 90 %s --user-data-dir='%s/profile' 'file://%s/all.html' 2>&1")
    :format(browser, folder, folder))
  local pid, by_name, rest = pipe:read '*l', {}, {}
  for line in pipe:lines() do
    local text = line:match 'SEEN (%S+) END'
    if text then
      local seen = json.decode((text:gsub('%%(%x%x)', function(hex) return string.char(tonumber(hex, 16)) end)))
      by_name[seen.name], count = seen, count - 1
      if count == 0 then break end
    else
      rest[#rest + 1] = line
    end
  end
  os.execute(('kill %d 2>/dev/null'):format(tonumber(pid)))
  pipe:close()
  return by_name, table.concat(rest, '\n')
end

--- Reports of the self-tests in pages { name = page }, each in a frame of its width, all in one browser.
local function look(pages, widths)
  local frames, count = {}, 0
  for name, page in trinity.system.sorted_pairs(pages) do
    instrument(name, page)
    count = count + 1
    frames[count] = ('<iframe src="%s.html" style="position:absolute;top:0;left:0;border:0;width:%dpx;height:850px">'
      .. '</iframe>'):format(name, widths[name] or 1250)
  end
  core.write_file(folder .. '/all.html', '<!doctype html><meta charset="utf-8">' .. table.concat(frames))
  local by_name, log = listen(count)
  for name in trinity.system.sorted_pairs(pages) do
    if not by_name[name] then error(('page %s reported nothing: %s'):format(name, log:sub(-1500)), 0) end
  end
  return by_name
end

--- The name of a search as a chart says it, and where its best changes and it ends, from the file of its curve.
local function changes(path, id)
  local about = json.decode(core.read_file(('%s/searches/%d/search.json'):format(path, id)))
  local name = about.method == 'single_device' and about.method or ('%s, seed %d'):format(about.method, about.seed)
  local x, y, last = {}, {}, nil
  for evaluations, step in core.read_file(('%s/searches/%d/curve.csv'):format(path, id)):gmatch '\n(%d+),[^,]*,[^,]*,([^,\n]+)' do
    last = { tonumber(evaluations), tonumber(step) }
    if last[2] ~= y[#y] then x[#x + 1], y[#y + 1] = last[1], last[2] end
  end
  if last[1] ~= x[#x] then x[#x + 1], y[#y + 1] = last[1], last[2] end
  return { name = name, x = x, y = y }
end

local function page_of(paths) return report.page(report.data(paths)) end

--- The record of `trinity plan` for a plan of two stages; passes: by stage.
local function drawn_plan(text, passes)
  local plan = { text = text, step_time_s = 0.01, lower_bound_s = 0.009, capacity_bytes = 8e9, expert = 1,
    axes = { { name = 'pipeline', size = 2 }, { name = 'data', size = 3 }, { name = 'tensor', size = 2 } }, stages = {} }
  for stage = 1, 2 do
    plan.stages[stage] = { device = 6 * stage - 5, layers = { { 4 * stage - 3, 4 * stage } }, busy_s = 0.005,
      peak_bytes = { weights = 1e9, optimizer = 2e9, gradients = 1e9, activations = 1.5e9 / stage, framework = 0.5e9 }, passes = passes[stage] }
  end
  return plan
end

local function spans_by_stage(spans)
  local passes, phases = { {}, {} }, { [0] = 'forward', 'backward' }
  for _, span in ipairs(spans) do
    table.insert(passes[span.device + 1], { micro_batch = span.micro_batch, phase = phases[span.phase],
      start_s = span.start_ns / 1e9, end_s = span.end_ns / 1e9, busy_s = span.busy_ns / 1e9 })
  end
  return passes
end

local function experiments()
  local spans = {}
  for stage = 0, 1 do
    for part = 1, 3 do
      for phase = 0, 1 do
        local start = (stage + part + 4 * phase) * 1e6
        spans[#spans + 1] = { device = stage, micro_batch = part, phase = phase, start_ns = start, end_ns = start + 1e6,
          busy_ns = 9e5 }
      end
    end
  end
  return {
    pase = { kind = 'pase', label = 'pase', summary = 'Splits.', data = { networks = { { network = 'alexnet', devices = 8,
      cost = 1.5e9, optimal = true, seconds = 0.2, over_best = { data_parallel = 1.7, expert = 1.1 },
      steps = { { cluster = 'gtx1080ti_ib', speed_up = { best = 1.9, expert = 1.5 }, fits = { best = true, expert = false },
        measured = { best = 1.75, expert = 1.56 } } },
      strategy = { { layers = 'conv1 <b>', type = 'Conv', dimensions = 'b c h w n r s', factors = '8 1 1 1 1 1 1' },
        { layers = 'fc1', type = 'Gemm', dimensions = 'b n c', factors = '1 4 2' } } } } } },
    daso = { kind = 'daso', label = 'daso', summary = 'Replicas.', data = { networks = { { network = 'resnet50',
      batch_size = 256, epochs = 90,
      gpus = { keys = { 'gpus', 'bucketed_hours', 'daso_hours' }, rows = { { 4, 10.5, 9.5 }, { 16, 3.5, 3.1 } } },
      bandwidth = { keys = { 'gb_s', 'bucketed_ms', 'daso_ms' }, rows = { { 24, 300, 290 }, { 3, 410, 300 } } },
      schedule = { { epoch = 1, phase = 'warm-up', global_skips = 0, local_skips = 0, wait = 0 },
        { epoch = 5, phase = 'cycling', global_skips = 4, local_skips = 1, wait = 1 } } } } } },
    measured = { kind = 'measured', label = 'measured', data = { model = 'alexnet', devices = { 'cpu:0', 'cpu:1' },
      step_time_s = 0.12, simulated_step_time_s = 0.1, transferred_bytes = 2e6, peak_memory_bytes = { 1e8, 2e8 },
      busy_s = { 0.05, 0.07 }, losses = { 2.3, 2.2, 2.1 },
      simulated_transferred_bytes = 2e6, simulated_memory_bytes = { 1.1e8, 1.9e8 }, simulated_busy_s = { 0.04, 0.06 },
      types = { { type = 'Conv', operators = 5, measured_s = 0.1, simulated_s = 0.08 } } } },
    pipeline = { kind = 'pipeline', label = 'pipeline', summary = 'Stages.', data = { network = 'vgg16', method = 'max_load_annealing',
      unit = 's', max_load = 0.3, feasible = true, stages = { { nodes = 3, devices = 1, load = 0.2, first = 'a', last = 'c' },
        { nodes = 2, devices = 1, load = 0.3, first = 'd', last = 'e' } } } },
    plan = { kind = 'plan', label = 'plan', summary = 'Plans.', data = { plans = {
      { step_time_s = 0.5, pipeline = 2, memory_bytes = 5e9, shown = drawn_plan('<b>plan</b>', spans_by_stage(spans)) },
      { step_time_s = 0.6, pipeline = 1, memory_bytes = 5e9, shown = drawn_plan('another', {}) } } } },
    ['table'] = { kind = 'table', label = 'table', summary = 'A table.', data = { head = { 'model', 'step' },
      rows = { { '<i>x</i>', 0.5 }, { 'y', 1.25 } } } },
  }
end

it('integers are packed in groups of seven bits', function()
  local pack = require 'trinity.report.pack'
  expect(pack.integers {}):equals ''
  -- 0, 2, 3, 602 and 2 ^ 41 - 600: 00 02 03 da04 a8fbffffff3f.
  expect(pack.integers { 0, 1, -1, 300, 2 ^ 40 }):equals 'AAID2gSo+////z8='
end)

--- A small GPT that has learnt the bytes of a text, executed as users do: what the run keeps of it; nil without LibTorch.
local function learnt()
  if not core.has_torch() then return nil end
  if not require('trinity.base.util').exists(folder .. '/learnt') then
    core.write_file(folder .. '/text.txt', ('the quick brown fox jumps over the lazy dog. '):rep(40))
    local status, output = run_trinity(("execute --model gpt2 --batch_size 4 --set sequence=16,layers=1,hidden=16,heads=2,"
      .. "vocabulary=256,positions=16,fused=false,dropout=0,optimizer=adam --data '%s/text.txt' --steps 40 "
      .. "--learning_rate 0.02 --runs '%s' --run learnt"):format(folder, folder))
    if status ~= 0 then error(output, 0) end
  end
  return json.decode(core.read_file(folder .. '/learnt/results/measured.json')).data
end

--- The log of `trinity train` over six rounds: rows of metrics.jsonl.
local function logged_rounds()
  if not require('trinity.base.util').exists(folder .. '/rounds') then
    local status, output = run_trinity(("train --graphs alexnet:8 --clusters p100x2 --hidden 4 --rounds 6 --output '%s/w' "
      .. "--runs '%s' --run rounds"):format(folder, folder))
    if status ~= 0 then error(output, 0) end
  end
  local rows = {}
  for _, row in ipairs(require('trinity.runs.metrics').read(folder .. '/rounds/metrics.jsonl')) do
    if not row.search then rows[#rows + 1] = row end -- the others are heuristics that gave starts
  end
  return rows
end

describe('a report', function()
  local seen, pages
  local function pages_of()
    if pages then return pages end
    local problem = trinity.problem { graph = trinity.model('vgg16', { batch_size = 4 }), cluster = trinity.cluster 'p100x4' }
    run_folders.comparison(folder .. '/one', problem, 'vgg16', { 'single_device', 'random', 'annealing' },
      {}, 400)
    run_folders.comparison(folder .. '/two', problem, 'vgg16', { 'm_etf', 'random' }, { options = { seeds = 3 } })
    run_folders.comparison(folder .. '/hostile', run_folders.hostile_problem(), '</script><b>x', { 'random' },
      { error = '<script>pwned=1</script>', name = '</title><b>', status = 'failed' })
    run_folders.results(folder .. '/kinds', experiments())
    for name, step_s in trinity.system.sorted_pairs { free = 0.01, tp8 = 0.0125 } do
      run_folders.results(folder .. '/' .. name, { { kind = 'plan', label = 'plan', summary = 'A plan.', data = {
        plans = { { step_time_s = step_s, lower_bound_s = 0.009, tensor = name == 'tp8' and 8 or 1 } } } } })
    end
    pages = { one = page_of { folder .. '/one' }, phone = page_of { folder .. '/one' },
      pair = page_of { folder .. '/one', folder .. '/two' }, hostile = page_of { folder .. '/hostile' },
      kinds = page_of { folder .. '/kinds' }, plans = page_of { folder .. '/free', folder .. '/tp8' } }
    if #logged_rounds() > 0 then pages.rounds = page_of { folder .. '/rounds' } end
    if learnt() then pages.learnt = page_of { folder .. '/learnt' } end
    return pages
  end
  local function page(name)
    if not has 'chromium' then skip 'chromium is not installed' end
    if seen == nil then
      seen = false -- a browser that fails once is not asked again
      seen = look(pages_of(), { phone = 360, kinds = 360 })
    end
    if not seen then skip 'the browser failed above' end
    return seen[name]
  end

  it('is one file that asks for nothing outside', function()
    for _, text in trinity.system.sorted_pairs(pages_of()) do
      expect(text):matches "default%-src 'none'"
      expect(text:find '<script src' or text:find '<link' or text:find '@import' or text:find 'url%(http'):equals(nil)
      expect(#text):below(3e6)
    end
  end)
  it('raises no error in the browser', function()
    for _, name in ipairs { 'one', 'phone', 'pair', 'hostile', 'kinds' } do
      expect(table.concat(page(name).errors, '\n')):equals ''
      expect(#page(name).outside):equals(0)
      expect(page(name).unnamed):equals(0)
      expect(page(name).emptyCharts):equals(0)
      expect(page(name).undrawnAfterLoad):equals(0)
    end
  end)
  it('says what was found, and marks the best in words', function()
    expect(page('one').lead):equals 'What vgg16 gave.'
    expect(table.concat(page('one').best, ', ')):matches '^[^,]*★ best[^,]*$'
    expect(page('one').chartNames[1]):equals 'Best step time over evaluations of annealing, random, single_device'
    expect(table.concat(page('one').sections, ' ')):equals 'summary comparison placement timeline devices'
  end)
  it('plots every change of the best of every search where it happened', function()
    local drawn, points = {}, 0
    for _, line in ipairs(page('one').curves) do drawn[line.name] = line end
    for id = 1, 5 do
      local expected = changes(folder .. '/one', id)
      local line = drawn[expected.name] or error('no line of ' .. expected.name)
      expect(#line.x):equals(#expected.x)
      points = points + #line.x
      expect(select(2, line.path:gsub('[MLHV]', ''))):equals(2 * #line.x - 1) -- across, then down
      local last = #line.x
      for i = 1, last do
        expect(line.x[i]):equals(expected.x[i])
        expect(line.y[i] / line.y[1]):near(expected.y[i] / expected.y[1], 1e-12)
        if last > 1 then
          local share = math.log(line.x[i] / line.x[1]) / math.log(line.x[last] / line.x[1]) -- a logarithmic axis
          expect(line.px[i]):near(line.px[1] + share * (line.px[last] - line.px[1]), 0.01)
        end
      end
    end
    expect(drawn['annealing, seed 1'] and #drawn['annealing, seed 1'].x > 5):equals(true)
    for _, name in ipairs { 'annealing (2 seeds)', 'random (2 seeds)' } do points = points + #drawn[name].x end
    expect(page('one').curvePoints):equals(points)
    expect(#page('one').curves):equals(7)
  end)
  it('zooms, opens layers and goes back, shows a timeline that zooms and speaks, and changes its theme', function()
    local one = page 'one'
    expect(('%d layers, %d opened, %d again, %s'):format(one.layers, one.opened, one.layersAgain, tostring(one.focusBack)))
      :equals '42 layers, 1 opened, 42 again, true'
    expect(one.openedLabel):matches 'image'
    expect(one.wheelZoom > 1.2 and one.boxes > 40 and one.painted > 0.05):equals(true)
    for _, zoom in ipairs { { one.fitAgain, 1 }, { one.timelineZoom, 1.5 }, { one.timelineAll, 1 } } do
      expect(zoom[1]):near(zoom[2], 0.01)
    end
    expect(one.chosen):matches '.'
    expect(one.tip):matches 'forward'
    expect(one.theme[1] ~= one.theme[2]):equals(true)
  end)
  it('fits a phone', function()
    expect(page('phone').sideways + page('kinds').sideways):equals(0)
    expect(page('phone').canvasFits):equals(true)
  end)
  it('shows names as text, whatever they say', function()
    local hostile = page 'hostile'
    expect(hostile.injected):equals(0)
    expect(hostile.text):matches '</script><b>x'
    expect(hostile.text):matches '<script>pwned=1</script>'
  end)
  it('puts two runs side by side', function()
    local pair = page 'pair'
    expect(pair.title):equals 'one and two'
    expect(pair.sections[1]):equals 'together'
    expect(pair.text):matches '%-%-seeds.*23'
    expect(pair.text):matches 'all runs'
  end)
  it('puts the plans of two runs side by side, whichever options made them', function()
    local plans = page 'plans'
    expect(plans.text):matches 'free, plan 1 and tp8, plan 1'
    expect(plans.text:find('different problems', 1, true)):equals(nil)
  end)
  it('shows splits, replicas, measurements, pipelines and tables', function()
    local kinds = page 'kinds'
    expect(table.concat(kinds.sections, ' ')):equals(
      'summary result-plan result-pase result-daso result-measured result-pipeline result-table')
    expect(kinds.injected):equals(0)
    for _, text in ipairs { 'proved optimal', 'conv1 <b>', 'When replicas synchronise', 'Measured and simulated',
      'Stages of vgg16', '<i>x</i>' } do
      expect(kinds.text:find(text, 1, true) ~= nil):equals(true)
    end
    expect(kinds.charts):equals(14)
  end)
  it('draws the loss of every step of a training, which falls as a text is learnt', function()
    if not learnt() then skip 'there is no LibTorch' end
    local kept, drawn = learnt(), page('learnt').losses
    expect(#kept.losses):equals(40)
    expect(kept.losses[40] < 0.6 * kept.losses[1]):equals(true)
    expect(#drawn):equals(1)
    expect(#drawn[1].x):equals(40)
    for i, loss in ipairs(kept.losses) do
      expect(drawn[1].x[i]):equals(i)
      expect(drawn[1].y[i]):near(loss, 1e-12)
    end
    expect(drawn[1].py[40] > drawn[1].py[1]):equals(true) -- further down
    expect(page('one').losses[1]):equals(nil)
  end)
  it('plots what a training logged of every round, a line for imitation and one for PPO', function()
    local rows, seen_rounds, drawn = logged_rounds(), page 'rounds', {}
    expect(#rows):equals(6)
    expect(table.concat(seen_rounds.sections, ' ')):matches '^summary logged '
    expect(table.concat(seen_rounds.chartNames, ', ', 1, 4)):equals(
      'best share by round, entropy by round, improving share by round, loss by round')
    expect(seen_rounds.lead):matches 'This run logged best share, entropy, improving share, loss%.'
    expect(table.concat(seen_rounds.errors, '\n')):equals ''
    expect(seen_rounds.undrawnAfterLoad):equals(0)
    for _, line in ipairs(seen_rounds.logged) do drawn[line.name] = line end
    expect(rows[4].entropy):equals(nil) -- imitation chooses nothing
    for kind, range in trinity.system.sorted_pairs { imitate = { 1, 4 }, ppo = { 5, 6 } } do
      local first, last = range[1], range[2]
      expect(#drawn[kind].x):equals(last - first + 1)
      for r = first, last do
        expect(drawn[kind].x[r - first + 1]):equals(r)
        expect(drawn[kind].y[r - first + 1]):near(rows[r].loss, 1e-12)
        expect(rows[r].kind):equals(kind)
      end
    end
    expect(table.concat(seen_rounds.axes, ', ')):matches 'round, loss'
    expect(page('one').logged[1]):equals(nil)
  end)
  it('thins long lines, the same way each time, and leaves rows of searches to their own', function()
    local curves, lines = require 'trinity.report.curves', {}
    for i = 1, 4999 do lines[i] = ('{"step":%d,"seconds":1,"b":%d,"a":0.5}'):format(i, i) end
    lines[5000] = '{"step":1,"search":"1","loss":3}'
    lines[5001] = '{"loss":3}'
    core.write_file(folder .. '/long/metrics.jsonl', table.concat(lines, '\n'))
    local charts = curves.logged { path = folder .. '/long' }
    expect(#charts):equals(2)
    expect(charts[1].name .. charts[2].name .. charts[1].over):equals 'abstep'
    local x = charts[2].series[1].x
    expect(#x <= 2000 and #x > 1500):equals(true)
    expect(x[1]):equals(1)
    expect(x[#x]):equals(4999)
    expect(charts[2].series[1].y[7]):equals(x[7])
    expect(json.encode(curves.logged { path = folder .. '/long' })):equals(json.encode(charts))
  end)
  it('shows of searches that found nothing that fits the one with the least excess first', function()
    local function search(method, over_bytes)
      return { problem = '1', method = method, fits = false, best_step_time_s = over_bytes / 1e9,
        best_reward = over_bytes, infeasibility = { over_bytes = over_bytes } }
    end
    local run = { folder = folder .. '/nothing', notes = {}, problem_ids = { '1' }, problems = { ['1'] = {} },
      search_ids = { '1', '2', '3' },
      searches = { ['1'] = search('random', 9), ['2'] = search('random', 4), ['3'] = search('mcmc', 6) } }
    local shown = require('trinity.report.problems').of({ bytes = 0 }, run)[1].strategies
    expect(#shown):equals(2)
    expect(shown[1].search):equals '2'
    expect(shown[2].search):equals '3'
  end)
end)

describe('the picture of a plan', function()
  local picture = require 'trinity.report.plan_picture'
  local spans = { { micro_batch = 1, phase = 'forward', start_s = 0, end_s = 0.004, busy_s = 0.004 },
    { micro_batch = 1, phase = 'backward', start_s = 0.004, end_s = 0.01, busy_s = 0.006 } }
  local function count(text, what) return select(2, text:gsub(what, '')) end

  it('has every device, pass and kind of memory where it belongs', function()
    local svg = picture.svg(drawn_plan('a & b', { spans, { spans[1] } }))
    expect(svg):matches 'a &#38; b'
    expect(svg):matches 'pipeline 2 x data 3 x tensor 2'
    expect(count(svg, '<title>replica %d, part %d</title>')):equals(12)
    expect(count(svg, 'of micro%-batch 1')):equals(3)
    expect(svg):matches '1: 1%-4'
    expect(svg):matches '2: 5%-8'
    local forward = tonumber(svg:match 'width="([%d.]+)" height="20" fill="#0072B2"')
    local backward = tonumber(svg:match 'width="([%d.]+)" height="20" fill="#E69F00"')
    expect(backward / forward):near(1.5, 1e-3) -- as long as they take
    local used = tonumber(svg:match 'width="([%d.]+)" height="20.0" fill="#%x+"><title>weights: ')
    expect(used / 180):near(1 / 8, 1e-3) -- of what the device holds
  end)
  it('leaves out what is no plan', function()
    local data = { plans = { { shown = { axes = 1, stages = { 1 } } }, { shown = 'no' }, 7 } }
    picture.add_to(data)
    expect(data.plans[1].picture):equals(nil)
    expect(data.plans[1].shown):equals(nil)
    expect(data.plans[3]):equals(7)
  end)
end)

describe('the map of a graph', function()
  it('has at most 200 layers, which hold every operator', function()
    local layers = require 'trinity.report.layers'
    local graph = trinity.model('nasnet_large', { batch_size = 1 })
    local names, layer_of, edges = layers.collapse(graph)
    expect(#names > 50 and #names <= 200):equals(true)
    expect(#layer_of):equals(graph.operators)
    for _, layer in ipairs(layer_of) do expect(names[layer] ~= nil):equals(true) end
    expect(#edges.from > #names / 2):equals(true)
  end)
  it('stands in ranks where dot is not there', function()
    local picture = require('trinity.report.layout').by_ranks(4, { from = { 1, 1, 2, 3, 4 }, to = { 2, 3, 4, 4, 1 } })
    expect(table.concat(picture.y, ' ')):equals '29 87 87 145' -- nodes of 34, with gaps of 24
    expect(picture.x[2] < picture.x[3]):equals(true)
  end)
end)

describe('a wrong report', function()
  it('names the run that is not there', function()
    trinity_says(("runs report nothing_of_this_name --runs '%s'"):format(folder), 2, "no run 'nothing_of_this_name'")
    expect((run_trinity 'report')):equals(2)
  end)
  it('is written where --output says', function()
    local out = folder .. '/page.html'
    run_folders.results(folder .. '/written', experiments())
    trinity_says(("runs report '%s/written' --output '%s'"):format(folder, out), 0, 'page.html')
    expect(core.read_file(out)):equals(page_of { folder .. '/written' })
  end)
  it('goes on without what is broken', function()
    run_folders.results(folder .. '/broken', experiments())
    core.write_file(folder .. '/broken/results/pase.json', '{"kind": "pase", "data": ')
    core.write_file(folder .. '/broken/searches/1/search.json', '[')
    expect(page_of { folder .. '/broken' }):matches 'searches/1/search.json:.*not valid JSON'
    core.write_file(folder .. '/broken/run.json', '{}')
    local status, output = run_trinity(("runs report '%s/broken'"):format(folder))
    expect(status == 0):equals(false)
    expect(output):matches "expected a 'trinity run 1'"
  end)
end)
