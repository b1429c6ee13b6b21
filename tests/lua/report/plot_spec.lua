-- trinity.plot: pictures, fronts and CSV.

local core = require 'trinity.core'
local processes = require 'support.processes'
local trinity = require 'trinity'

local plot = trinity.plot
local spec = { title = "it's 100 %", x = 'step time', y = 'memory', series = {
  { name = 'a_b', points = { { 1, 4 }, { 2, 2 }, { 3, 3 } } }, { points = { { 4, 1 }, { 5, 5 } } } } }

--- Plots; the SVG's text, where gnuplot is.
local function drawn(kind, of, ending, stem)
  local path = temporary() .. (stem or '')
  local svg, reason = plot[kind](path .. (ending or ''), of)
  if not plot.available() then
    expect(reason):matches 'gnuplot is not installed'
    skip(reason)
  end
  expect(svg):equals(path .. '.svg')
  expect(core.read_file(path .. '.png'):sub(2, 4)):equals 'PNG'
  return core.read_file(svg)
end

describe('trinity.plot', function()
  it('draws lines, points and a front', function()
    local lines, scatter = drawn('lines', spec), drawn('scatter', spec, '.svg')
    local pareto = drawn('pareto', spec)
    for _, svg in ipairs { lines, scatter, pareto } do
      expect(svg):matches "it's 100 %%"
      expect(svg):matches 'a_b'
      expect(svg):matches 'step time'
    end
    expect(pareto):matches 'Pareto front'
    expect(lines:find('Pareto', 1, true)):equals(nil)
    expect(lines ~= scatter):equals(true)
    expect(#drawn('lines', merged(spec, { log_x = true, log_y = true, width = 300, height = 200 })) > 1000):equals(true)
  end)
  it('plots points of one value without warnings', function()
    if not plot.available() then skip 'gnuplot is not installed' end
    local script = processes.write_script(([[local plot = require('trinity').plot
      for _, y in ipairs { 0, 3 } do print(plot.scatter('%s', { series = { { points = { { 2, y } } } } })) end]])
      :format(temporary()))
    local status, said = processes.shell('"$T" ' .. script)
    expect(status):equals(0)
    expect(said):matches '^[^\n]+%.svg\n[^\n]+%.svg\n$'
    processes.clean()
  end)
  it('prints names whole, whatever quotes and brackets they have, and starts no command of one', function()
    local evil = "x'\nsystem \"touch PWNED\"\n`touch PWNED`#"
    local folder = temporary()
    core.write_file(folder .. '/s.lua', ([[local plot, evil, points = require('trinity').plot, %q, { { 1, 2 } }
      plot.lines('a', { series = { { name = evil, points = points } }, x = evil, y = evil, title = evil })
      plot.bars('b', { groups = { evil }, series = { evil }, values = { { evil } }, y = evil, title = evil })
      plot.lines('|touch PWNED', { series = { { points = points } } })]]):format(evil))
    expect(output_of(("cd '%s' && '%s' s.lua --run none 2>&1; echo status=$?"):format(folder, program))):matches 'status=0\n$'
    expect(core.exists(folder .. '/PWNED') or core.exists(folder .. '/PWNED.svg')):equals(false)
    local names = { ["'''"] = "'''", ["'a''' on '"] = "'a''' on '", [']]>"\\'] = ']] >"\\', ['a$\239\191\190'] = 'a$\239\191\189' }
    for name, shown in trinity.system.sorted_pairs(names) do
      local svg = drawn('lines', { title = name, series = { { name = name, points = { { 1, 2 }, { 2, 3 } } } } }, nil, "p'icture")
      local text, pattern = svg:gsub('&(%w+);', { apos = "'", quot = '"', gt = '>', lt = '<', amp = '&' }), shown:gsub('%p', '%%%0')
      expect(select(2, text:gsub('<text><tspan[^>]*>%s*' .. pattern, '')) + select(2, text:gsub('<text>' .. pattern, '')) > 1)
        :equals(true)
    end
  end)
  it('plots bars', function()
    local svg = drawn('bars', { groups = { 'gnmt', 'vgg_16' }, series = { 'best', 'heft' }, values = { { 1, 2 }, { 0.5, 'OOM' } }, y = 's' })
    for _, word in ipairs { 'gnmt', 'vgg_16', 'best', 'heft', 'OOM' } do expect(svg):matches(word) end
  end)
  it('finds the front, of the points themselves', function()
    local points = { { 3, 3 }, { 1, 4, name = 'first' }, { 2, 2 }, { 2, 2 }, { 4, 1 }, { 5, 1 }, { 1, 5 } }
    local front = plot.front(points)
    expect(#front):equals(3)
    expect(front[1]):equals(points[2])
    expect(front[2]):equals(points[3])
    expect(front[3]):equals(points[5])
    expect(#plot.front {}):equals(0)
  end)
  it('writes numbers with all their digits', function()
    local path = temporary '.csv'
    plot.csv(path, { 'name', 'x', 'flag' }, { { 'a,"b"', 1 / 3, true }, { 'c', 2 ^ 53 }, { 'd', 0.1 } })
    local csv = core.read_file(path)
    expect(csv):matches '^name,x,flag\n"a,""b""",0%.333333333333333%d*,true\nc,9007199254740992,\nd,0%.1,\n$'
    expect(tonumber(csv:match '(0%.3%d+)')):equals(1 / 3)
  end)
  it('says what is wrong', function()
    local function lines(of) return function() plot.lines('x', of) end end
    expect(lines {}):raises "plot.lines: option 'series' is missing"
    expect(lines { series = {} }):raises "option 'series': expected at least one entry"
    expect(lines { series = { { points = { { 1 } } } } }):raises 'entry 1: point 1: expected { x, y }, two finite numbers, got { 1, nil }'
    expect(lines { series = { { points = { { 1, 0 / 0 } } } } }):raises 'two finite numbers'
    expect(lines { series = { { name = 1, points = { { 1, 1 } } } } }):raises "entry 1: field 'name': expected a string, got number 1"
    expect(lines { series = { { points = {} } } }):raises "field 'points': expected a list of { x, y }, got an empty one"
    expect(lines { log_y = true, series = { { points = { { 1, 0 } } } } }):raises 'expected a number above 0 %(log_y%), got 0'
    expect(function() plot.bars('x', { groups = { 'a' }, series = { 'b' }, values = { {} } }) end)
      :raises "option 'values': group 1, series 1: expected a number from 0 or a text, got nil"
    expect(function() plot.csv('x', { 'a' }, { { {} } }) end):raises 'row 1, column 1: expected a number or a text, got table'
    expect(function() plot.csv('x', { 'a' }, { { a = 1 } }) end):raises 'row 1: expected a list of 1 values, got a table'
    expect(function() plot.csv('x', { 'a' }, { 1 }) end):raises "plot.csv: argument 3 %('rows'%): .*entry 1"
    expect(function() plot.front { { 1 } } end):raises 'point 1: expected { x, y }'
  end)
  it('plots for safe scripts, where they may write', function()
    if not plot.available() then skip 'gnuplot is not installed' end
    local folder = temporary '.folder'
    os.execute(("mkdir '%s'"):format(folder))
    local status, output = run_script(("--safe --write '%s' SCRIPT '%s/x'"):format(folder, folder), [[
      local trinity = require 'trinity'
      print(trinity.plot.lines(arg[1], { series = { { points = { { 1, 2 }, { 2, 3 } } } } }))
      print(pcall(trinity.plot.lines, 'outside', { series = { { points = { { 1, 2 } } } } }))]])
    expect(status == 0 and output):matches '^[^\n]+/x%.svg\nfalse\t[^\n]*outside%.gp: cannot write: Permission denied %(%-%-safe'
    expect(core.read_file(folder .. '/x.png'):sub(2, 4)):equals 'PNG'
  end)
end)
