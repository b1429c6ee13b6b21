-- Attacks that once were not held, or are unlike others: names in commands of gnuplot, files nested without end, workers
-- and libraries without memory or stack.

local core = require 'trinity.core'

-- What a piece of shell prints in a new folder; T is the program.
local function shell(text, files)
  local folder = temporary()
  for name, content in require('trinity').sorted_pairs(files or {}) do core.write_file(folder .. '/' .. name, content) end
  return output_of(("mkdir -p '%s' && cd '%s' && unset TRINITY_RUNS; T='%s'; { %s\n} 2>&1"):format(folder, folder, program,
    text)), folder
end

describe('a name in a picture', function()
  local evil = "x'\nsystem \"touch PWNED\"\n`touch PWNED`#"
  it('starts no command, in a script and in a command', function()
    local output, folder = shell([["$T" s.lua --run none; echo status=$?]], { ['s.lua'] = ([[
      local trinity = require 'trinity'
      local evil = %q
      local points = { { 1, 2 } }
      trinity.plot.lines('a', { series = { { name = evil, points = points } }, x = evil, y = evil, title = evil })
      trinity.plot.bars('b', { groups = { evil }, series = { evil }, values = { { evil } }, y = evil, title = evil })
      trinity.plot.lines('|touch PWNED', { series = { { points = points } } })]]):format(evil) })
    expect(output):matches 'status=0\n$'
    expect(core.exists(folder .. '/PWNED') or core.exists(folder .. '/PWNED.svg')):equals(false)
    local builder = require('trinity').graph.new { name = evil }
    for i = 1, 3 do
      builder:add { name = 'o' .. i, type = 'Work', outputs = { { bytes = 8 } }, measured_time_s = 1 }
    end
    output, folder = shell([["$T" tradeoff --model m.json --evaluations 10 --seeds 1 --run none; echo status=$?]],
      { ['m.json'] = builder:build():to_json() })
    expect(output):matches 'status=0\n$'
    expect(core.exists(folder .. '/PWNED')):equals(false)
  end)
  it('stands in it whole, whatever quotes and brackets it has', function()
    local trinity = require 'trinity'
    if not trinity.plot.available() then skip 'gnuplot is not here' end
    local names = { ["'''"] = "'''", ["'a''' on '"] = "'a''' on '", [']]>"\\'] = ']] >"\\', ['a$\239\191\190'] = 'a$\239\191\189' }
    for name, shown in trinity.sorted_pairs(names) do
      local path = temporary() .. "/p'icture"
      local picture = trinity.plot.lines(path, { title = name, series = { { name = name, points = { { 1, 2 }, { 2, 3 } } } } })
      local text = core.read_file(picture):gsub('&(%w+);', { apos = "'", quot = '"', gt = '>', lt = '<', amp = '&' })
      expect(select(2, text:gsub('<text><tspan[^>]*>%s*' .. shown:gsub('%p', '%%%0'), '')) + select(2,
        text:gsub('<text>' .. shown:gsub('%p', '%%%0'), '')) > 1):equals(true)
    end
  end)
end)

describe('a name that commands a terminal', function()
  it('stands in the JSON that export prints as what it is', function()
    local evil = 'a\127\194\133\226\128\168\226\128\174b'
    local builder = require('trinity').graph.new { name = evil }
    builder:add { name = evil, type = 'Work', outputs = { { bytes = 8 } }, measured_time_s = 1, attributes = { of = evil } }
    local output = shell([["$T" export m.json --run none]], { ['m.json'] = builder:build():to_json() })
    expect(core.printable(output)):equals(output)
    local graph = require('trinity').json.decode(output)
    for _, name in ipairs { graph.name, graph.operators[1].name, graph.operators[1].attributes.of } do
      expect(name):equals(evil)
    end
  end)
end)

describe('a file that nests without end', function()
  local depth = 1e6
  local deep = ('['):rep(depth) .. (']'):rep(depth)
  local function weights(header)
    local size = {}
    for i = 0, 7 do size[i + 1] = string.char(math.floor(#header / 256 ^ i) % 256) end
    return table.concat(size) .. header
  end
  it('is refused as a strategy, a graph and weights', function()
    local output = shell([[for f in deep half; do "$T" simulate --model alexnet --strategy $f.json; echo status=$?
      "$T" info $f.json; echo status=$?; done
      for f in deep half; do "$T" policy show $f.safetensors; echo status=$?; done]],
      { ['deep.json'] = '{"format":' .. deep .. '}', ['half.json'] = '{"format":"trinity-strategy","x":' .. ('{"a":'):rep(depth),
        ['deep.safetensors'] = weights(deep), ['half.safetensors'] = weights('{"__metadata__":' .. ('['):rep(depth)) })
    expect(select(2, output:gsub('status=[12]\n', ''))):equals(6)
    expect(select(2, output:gsub('status=', ''))):equals(6)
    expect(output):matches 'nested more than 64 levels deep'
  end)
  it('or says a field twice is refused, too', function()
    expect((shell([["$T" simulate --model alexnet --strategy s.json]],
      { ['s.json'] = '{"format":"trinity-strategy","version":1,"version":2}' })))
      :matches 'the field "version" stands twice in its object'
  end)
end)

describe('what is short', function()
  it('of stack is told, or the stack is made larger', function()
    local text = "local function f(n) return n == 0 and 'x' or (('x'):gsub('x', function() return f(n - 1) end)) end "
      .. 'for n = 1, 240 do pcall(f, n) end print "held"'
    for _, size in ipairs { 64, 256, 1024, 2048 } do
      expect((shell(([[(ulimit -s %d; "$T" -e "$(cat s.lua)"; echo status=$?)]]):format(size), { ['s.lua'] = text })))
        :equals 'trinity: a stack of 4 MiB is needed (ulimit -s 4096)\nstatus=1\n'
      expect((shell(([[(ulimit -S -s %d; "$T" -e "$(cat s.lua)"; echo status=$?)]]):format(size), { ['s.lua'] = text })))
        :equals 'held\nstatus=0\n'
    end
  end)
  it('of address space is told before Clp is opened', function()
    local output = shell([[(ulimit -v 200000; timeout 20 "$T" search --model alexnet --method m_sct --run none; echo status=$?)]])
    expect(output):matches 'opening the solver Clp .* takes %d+ MiB of address space'
    expect(output):matches 'status=1\n$'
  end)
end)
