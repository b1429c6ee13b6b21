-- A light start: LibTorch and protobuf are opened by what needs them, and by nothing else.

local core = require 'trinity.core'
local trinity = require 'trinity'

--- The first of the large libraries that a command opened, in all of its processes, by the dynamic linker's log.
local function opened(words, by)
  local log = temporary '.log'
  local output = output_of(("LD_DEBUG=files LD_DEBUG_OUTPUT='%s' %s %s 2>&1 || echo failed"):format(log,
    by or ("'%s'"):format(program), words))
  if output:find 'failed\n$' then error(words .. ': ' .. output, 0) end
  local text = output_of(("cat '%s'.* && rm '%s'.*"):format(log, log))
  expect(text):matches 'calling init: [^\n]*trinity[^\n]*so'
  for _, library in ipairs { 'libtorch', 'protobuf' } do -- LibTorch brings others along
    if text:find('calling init: [^\n]*' .. library) then return library end
  end
  return 'none'
end

local build = program:match '^(.*)/[^/]*$'
local folder = temporary '.runs'
local problem = '--model alexnet --cluster p100x2'

describe('opened are', function()
  local function cases(wanted, list)
    for _, words in ipairs(list) do
      it(wanted .. ' by ' .. words:match '^%S+ ?[%w_]*', function()
        expect(opened((words:gsub('PROBLEM', problem):gsub('RUNS', folder):gsub('OUT', folder .. '.out')))):equals(wanted)
      end)
    end
  end
  cases('none', { "-e 'print(1)'", 'help', 'help simulate', 'help methods', 'help clusters', 'info alexnet --run none',
    'help trinity.model --run none', 'search PROBLEM --method annealing --evaluations 20 --output_dir OUT --runs RUNS --run first',
    'simulate PROBLEM --strategy OUT/strategy.json --run none', 'study select tests/data/selection/example.json --run none',
    'search PROBLEM --method random,local_search,metis,heft --evaluations 20 --seeds 1 --runs RUNS --run second',
    'search PROBLEM --method best --evaluations 20 --run none', 'pipeline alexnet --cluster p100 --devices 2 --run none',
    'quickstart --model alexnet --steps 2 --samples 4 --run none --output OUT/quickstart.json',
    'study papers pase --only table2 --models alexnet --run none',
    'runs --runs RUNS', 'runs show first --runs RUNS', 'runs compare first second --runs RUNS',
    'runs report RUNS/first' })
  cases('protobuf', { "info '" .. root .. "/tests/data/onnx/lstm.onnx' --run none" })
  it('none by a stock luajit', function()
    local luajit = ("LUA_PATH='%s/lib/?.lua;%s/lib/?/init.lua;;' LUA_CPATH='%s/lua/?.so;;' luajit"):format(root, root, build)
    expect(opened([[-e "print(require('trinity').model('alexnet').operators)"]], luajit)):equals 'none'
  end)
  cases('libtorch', { "-e 'print(require(\"trinity\").tensor.new { 1, 2 }:sum():item())'" })
end)

describe('what depends on LibTorch', function()
  it('is found in trinity.core before it is open by the names that it adds', function()
    with_torch()
    local status, output = run_script('SCRIPT', [[
      local core, before, added = require 'trinity.core', {}, {}
      for name in pairs(core) do before[name] = true end
      local _ = core.describe_torch
      for name in pairs(core) do if not before[name] then added[#added + 1] = name end end
      table.sort(added)
      print(table.concat(added, ' '))]])
    expect(status):equals(0)
    local names = {}
    for name in core.read_file(root .. '/engine/lua/bind/bind_late.cpp'):match 'kTorchNames(.-);':gmatch '"([%w_]+)"' do
      names[#names + 1] = name
    end
    table.sort(names)
    expect(output):equals(table.concat(names, ' ') .. '\n')
  end)
end)

describe('a part that is missing', function()
  local copy = temporary '.build'
  local function run(code)
    local output, status = output_of(("mkdir -p '%s' && cp -P '%s' '%s'/libtrinity.so* '%s' && TRINITY_HOME='%s' '%s'/trinity -e '%s' 2>&1; echo $?")
      :format(copy, program, build, copy, root, copy, code)):match '^(.-)(%d+)\n$'
    return status, output
  end
  it('is named by the first call that needs it, with what to install', function()
    for code, needs in trinity.system.sorted_pairs {
      ['require("trinity").tensor.new { 1 }'] = 'LibTorch %(Debian\'s package libtorch%-dev%)',
      ['require("trinity").model("tests/data/onnx/lstm.onnx")'] = "ONNX's and protobuf's libraries %(Debian's package libonnx%-dev%)" } do
      local status, output = run(code)
      expect(output):matches('^trinity: %(command line%):1: [^\n]*this needs ' .. needs .. ', [^\n]*\n$')
      expect(status):equals '1'
    end
  end)
end)
