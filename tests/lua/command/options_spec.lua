-- Values on a command line: units, true and false as words, options that were renamed, clusters with and without a count.

local trinity = require 'trinity'
local core = require 'trinity.core'
local commands = require 'trinity.command.commands'
local units = require 'trinity.base.units'

local function values(declared, ...) return trinity.options(declared, { ... }) end

describe('a number on the command line', function()
  it('may have a factor, and a unit where it counts bytes', function()
    expect(units.number '2.5M'):equals(2.5e6)
    expect(units.number '4Ki'):equals(4096)
    expect(units.number '25GiB'):equals(nil)
    expect(units.number('25GiB', 'bytes')):equals(25 * 2 ^ 30)
    expect(units.number('80GB', 'bytes')):equals(80e9)
    expect(units.number('7B', 'bytes')):equals(7)
    expect(units.number('10Gbit', 'bytes')):equals(1.25e9)
    expect(units.number('10Gbit/s', 'bytes')):equals(nil)
    expect(units.number('10Gbit/s', 'bytes/s')):equals(1.25e9)
    expect(units.number('25GB/s', 'bytes/s')):equals(25e9)
    expect(units.number('1 GB', 'bytes/s')):equals(1e9)
    expect(units.number('3,200 Gbit/s', 'bytes/s')):equals(400e9)
    expect(units.number '12,345,678'):equals(12345678)
    for _, wrong in ipairs { 'GB', '1Gb', '1QB', '1GBx', '1  GB', '1e', '', '3,20', ',200', '3,2000', '1,000,20GB' } do
      expect(units.number(wrong, 'bytes/s')):equals(nil)
    end
  end)
  it('is refused with what was expected', function()
    local declared = { memory = { default = 0, unit = 'bytes' }, steps = { default = 1 } }
    expect(values(declared, '--memory', '1.5GiB').memory):equals(1.5 * 2 ^ 30)
    expect(function() values(declared, '--memory', '1Gb') end)
      :raises "option '%-%-memory': expected bytes %(500000, 80GB, 25GiB%), got '1Gb'"
    expect(function() values(declared, '--steps', '1GB') end):raises "option '%-%-steps': expected a number, got '1GB'"
    expect(function() values({ x = { default = 1, unit = 'byte' } }) end):raises "did you mean 'bytes'%?"
  end)
end)

describe('an option', function()
  it('that is true or false takes the next word if it is true or false', function()
    local declared = { training = { default = true }, model = { default = '', position = true } }
    expect(values(declared, '--training', 'false', 'alexnet').training):equals(false)
    expect(values(declared, '--training', 'false', 'alexnet').model):equals 'alexnet'
    expect(values(declared, '--training=false').training):equals(false)
    expect(values({ training = { default = false } }, '--training', 'true').training):equals(true)
    expect(values(declared, '--training', 'alexnet').model):equals 'alexnet'
  end)
  it('without a default is nil where it is not given', function()
    local declared = { steps = { type = 'number', min = 1 }, name = { type = 'string' } }
    expect(values(declared).steps):equals(nil)
    expect(values(declared, '--steps', '2').steps):equals(2)
    expect(function() values(declared, '--steps', '0') end):raises "option '%-%-steps': expected a number from 1, got 0"
    expect(function() values { x = {} } end):raises "expected a table with a default, or with type 'string' or 'number'"
  end)
  it('is shown with hyphens, and takes both', function()
    local _, whole = run_trinity 'plan --help-all'
    expect(whole):matches '\n  %-%-simulations +[^\n]+%(default: 96%)\n'
    expect(whole):matches '\n  %-%-quiet '
    expect(whole:find('--help-all', 1, true)):equals(nil)
    local _, help = run_trinity 'plan --help'
    expect(help:find('--simulations', 1, true)):equals(nil)
    local _, lines = help:gsub('\n', '')
    expect(lines <= 24):truthy() -- a screen
    expect(help):matches '\n  %-%-global%-batch +[^\n]+%(default: 256%)\n'
    expect(values({ global_batch = { default = 1 } }, '--global-batch', '3').global_batch):equals(3)
  end)
end)

-- The message of a script's usage error for words.
local function answer(name, ...)
  local words, path = { ... }, ('%s/scripts/%s.lua'):format(root, name)
  local chunk = assert(loadstring((core.read_file(path):gsub('^#![^\n]*', '')), '@' .. path))
  local read, own = trinity.options, rawget(_G, 'arg')
  rawset(_G, 'arg', { [0] = path })
  rawset(trinity, 'options', function(spec)
    read(spec, words)
    error('taken', 0)
  end)
  local _, message = pcall(setfenv(chunk, setmetatable({ arg = {} }, { __index = _G })))
  rawset(trinity, 'options', read)
  rawset(_G, 'arg', own)
  return tostring(message)
end

describe('an earlier word', function()
  it('is refused with the one that replaces it', function()
    local renamed = require 'trinity.base.renamed'
    local names = {}
    for _, name in ipairs(commands.names()) do names[name] = true end
    local count = 0
    for old, now in trinity.system.sorted_pairs(renamed) do
      local command, option = old:match '^(%S+) %-%-(%S+)$'
      if option then
        count = count + 1
        expect(answer(command, '--' .. option:gsub('_', '-'), '1')):equals(
          ("option '--%s' was replaced; use %s"):format(option:gsub('_', '-'), now))
        local new = now:match '^%-%-([%w-]+)'
        if new then expect(commands.about(command).options[new:gsub('-', '_')] ~= nil or now):equals(true) end
      elseif old:find '^trinity%.[%w_]+$' then
        expect(function() return trinity[old:match '%.(.*)$'] end):raises(old .. ' was replaced; use ' .. now:gsub('%p', '%%%0'))
      elseif not names[old] and not old:find('.', 1, true) then
        expect(tostring(select(2, pcall(commands.refuse, old)))):equals(("command '%s' was replaced; use 'trinity %s'"):format(old, now))
        expect(names[now:match '^%S+'] or now):equals(true)
      end
    end
    expect(count > 20):equals(true)
    local problem = trinity.problem { graph = trinity.model 'alexnet', cluster = trinity.cluster 'p100x2' }
    expect(function() trinity.compare(problem, { 'heft' }, { out = 'kept' }) end):raises(
      "trinity.compare: option 'out' was replaced; use a run %(%-%-run NAME%), in whose folder a comparison goes on")
    trinity_says('reference trinity.model', 2, "^trinity: command 'reference' was replaced; use 'trinity help %-%-markdown'\n$")
    trinity_says('help reproduce', 2, "'trinity study papers'")
    trinity_says('pipeline --file x', 2, "^trinity: option '%-%-file' was replaced; use %-%-model\n$")
  end)
end)

describe('--cluster', function()
  local family = file_with([[return function(count)
    local spec = { devices = {}, links = {} }
    for i = 1, count do
      spec.devices[i] = { name = 'd' .. i, type = 'p100' }
      if i > 1 then spec.links[i - 1] = { from = 'd1', to = 'd' .. i, bandwidth_bytes_per_s = 1e9 } end
    end
    return spec
  end]], '.lua')
  it('may give a count to a file', function()
    expect(#trinity.cluster(family).devices):equals(1)
    local four = trinity.cluster(family .. 'x4')
    expect(#four.devices):equals(4)
    expect(four.name):matches '^lua_%d+x4$'
    expect(function() trinity.cluster(family .. 'x0') end):raises 'expected a count from 1 to 131072, got 0'
    local fixed = file_with("return { devices = { { name = 'a', type = 'p100' } } }", '.lua')
    expect(function() trinity.cluster(fixed .. 'x2') end):raises 'takes no count'
    expect(function() trinity.cluster 'not_there.luax2' end):raises 'no cluster file not_there%.lua'
    trinity_says(("simulate --model alexnet --cluster '%sx3' --run none"):format(family), 0, '3 devices')
  end)
  it('takes the count wherever devices follow it', function()
    for _, cluster in ipairs { 'p100', 'p100x2', family, family .. 'x2' } do
      trinity_says(("execute --model alexnet --batch_size 1 --devices cpu:0,cpu:0 --steps 1 --run none --cluster '%s'")
        :format(cluster), 0, 'simulated on [%w_]+x2: ')
    end
    for _, words in ipairs { '--cluster p100 --devices 2', '--cluster p100x2' } do
      trinity_says(("study placement --folder '%s/tests/data/profiles' --only small --methods single_device --run none %s")
        :format(core.home, words), 0, '\nsmall +2 ')
    end
    local _, output = run_trinity 'pipeline alexnet --cluster dgx_a100x2 --devices 16 --method max_load_dp --run none'
    expect(output):matches '^alexnet %(model%) by max_load_dp: max load'
  end)
end)

-- Directories that scripts hand all of their options to.
-- The commands, and studies by their files.
local scripts = commands.names()
for _, study in ipairs(core.list_folder(root .. '/scripts/studies')) do
  local name = ('studies/%s/study'):format(study)
  if core.exists(('%s/scripts/%s.lua'):format(root, name)) then scripts[#scripts + 1] = name end
end

-- The text of a script and of the modules that it requires.
local function text_of(name)
  local parts = { core.read_file(('%s/scripts/%s.lua'):format(root, name)) }
  for module in parts[1]:gmatch "require[ (]'([%w_]+%.[%w_.]+)'" do
    local stem = ('%s/%s/%s'):format(root, module:find '^studies' and 'scripts' or 'lib', (module:gsub('%.', '/')))
    for _, ending in ipairs { '.lua', '/init.lua' } do
      if core.exists(stem .. ending) then parts[#parts + 1] = core.read_file(stem .. ending) end
    end
  end
  local folder = name:match '^studies/.*/' -- of a study, whose modules read its options, too
  for _, file in ipairs(folder and core.list_folder(('%s/scripts/%s'):format(root, folder)) or {}) do
    if file:find '%.lua$' then parts[#parts + 1] = core.read_file(('%s/scripts/%s%s'):format(root, folder, file)) end
  end
  return table.concat(parts, '\n')
end

describe('a command', function()
  it('reads every option that it declares', function()
    local count, unread = 0, {}
    for _, name in ipairs(scripts) do
      local text = text_of(name)
      for option, declared in trinity.system.sorted_pairs(commands.about(name).options) do
        count = count + (declared.common and 0 or 1)
        if not declared.common and not declared.of_cluster and not text:find('%.' .. option .. '%f[^%w_]') and not text:find("'" .. option .. "'", 1, true) then
          unread[#unread + 1] = ('%s --%s'):format(name, option)
        end
      end
    end
    expect(table.concat(unread, ', ')):equals('')
    expect(150):below(count)
  end)
  it('refuses an unknown option, and words that it has no place for', function()
    local count = 0
    for _, name in ipairs(scripts) do
      local about, list = commands.about(name), false
      for _, option in trinity.system.sorted_pairs(about.options) do list = list or option.position and option.type == 'table' end
      count = count + 1
      expect(answer(name, '--no_such_option', '1')):matches "^unknown option '%-%-no_such_option'"
      if not list then expect(answer(name, 'one', 'more')):matches "unexpected argument '%w+'" end
    end
    expect(10):below(count)
  end)
  it('that keeps no run takes --run none alone', function()
    trinity_says('info alexnet --run mine', 2, "option '%-%-run': this command keeps no run")
    trinity_says('help --resume', 2, "option '%-%-resume': this command keeps no run")
    local _, help = run_trinity 'info --help'
    expect(help:find('--run ', 1, true)):equals(nil)
  end)
  it('that makes no search keeps what it simulates in the run that --run names', function()
    local folder = temporary '.runs'
    trinity_says(("simulate --model alexnet --runs '%s' --run mine --quiet"):format(folder), 0)
    expect(core.read_file(folder .. '/mine/results/simulation.json')):matches '"step_time_s"'
    trinity_says(("runs report mine --runs '%s' --run none"):format(folder), 0, 'mine/report.html')
  end)
end)
