-- trinity.files, trinity.files.json, trinity.system.stoppable and what else scripts ask of the program itself.

local trinity = require 'trinity'

describe('trinity.files', function()
  it('gives back what was written, in a folder that it makes', function()
    local folder = temporary()
    trinity.files.write(folder .. '/deep/b', 'one\0two')
    trinity.files.write(folder .. '/deep/a', '')
    trinity.files.write(folder .. '/deep/.hidden', 'x')
    expect(trinity.files.read(folder .. '/deep/b')):equals 'one\0two'
    expect(table.concat(trinity.files.list(folder .. '/deep'), ' ')):equals 'a b'
    os.execute(("rm -r '%s'"):format(folder))
  end)
  it('says which file or folder it cannot read or write', function()
    expect(function() trinity.files.read '/nowhere/x' end):raises '_spec%.lua:%d+: files%.read: /nowhere/x: cannot read'
    expect(function() trinity.files.write('/proc/nowhere/x', '') end):raises '_spec%.lua:%d+: files%.write: /proc/nowhere/x: cannot'
    expect(function() trinity.files.list '/nowhere' end):raises '_spec%.lua:%d+: files%.list: /nowhere: no such folder'
    expect(function() trinity.files.list(root .. '/README.md') end):raises 'README%.md: no such folder'
  end)
end)

describe('trinity.files.json', function()
  it('reads back what it writes', function()
    local value = { name = 'a "b"', list = { 1, 2.5, { deep = true } }, empty = {} }
    local text = trinity.files.json.encode(value)
    expect(text):equals(trinity.files.json.encode(trinity.files.json.decode(text)))
    expect(text):matches '^{\n  "empty": %[%],\n  "list": %['
    expect(trinity.files.json.encode { 1 / 0, 0 / 0 }):equals '[\n  null,\n  null\n]'
    local back = trinity.files.json.read(file_with(text))
    expect(back.name):equals 'a "b"'
    expect(back.list[3].deep):equals(true)
  end)
  it('says what is wrong, and where', function()
    expect(function() trinity.files.json.encode(print) end):raises "_spec%.lua:%d+: files.json.encode: argument 1 %('value'%): JSON cannot represent a function"
    expect(function() trinity.files.json.encode { 1, a = 2 } end):raises 'json%.encode: .*both a list and named fields'
    expect(function() trinity.files.json.decode '{' end):raises '_spec%.lua:%d+: files%.json%.decode: JSON:1:1: not valid JSON'
    expect(function() trinity.files.json.read(root .. '/README.md') end):raises 'json%.read: .*README%.md:1:1: not valid JSON'
    expect(function() trinity.files.json.read '/nowhere' end):raises 'json%.read: /nowhere: cannot read'
  end)
end)

describe('trinity.system.stoppable', function()
  it('says that nobody asked to stop, and hands on an error as it is', function()
    expect(trinity.system.stoppable(function() end)):equals(false)
    local problem = {}
    local ok, message = pcall(trinity.system.stoppable, function() error(problem) end)
    expect(not ok and message):equals(problem)
  end)
  it('lets a loop end by itself on Ctrl-C; the script goes on', function()
    script_says(130, '^true\ttrue\tfalse\ttrue\n$', 'SCRIPT', [[
      local trinity = require 'trinity'
      local rounds = 0
      local stopped = trinity.system.stoppable(function(stop_requested)
        os.execute '(sleep 0.1; kill -INT $PPID) &'
        local start_s = trinity.system.clock_s()
        while not stop_requested() do
          rounds = rounds + 1
          if trinity.system.clock_s() - start_s > 60 then error 'nobody stopped it' end
        end
      end)
      print(stopped, rounds > 1, trinity.system.stop_requested(), trinity.system.was_interrupted())
    ]])
  end)
end)

describe('what scripts ask of the program', function()
  it('has the names that trinity gives it', function()
    expect(trinity.system.home):equals(root)
    local before_s = trinity.system.clock_s()
    expect(before_s <= trinity.system.clock_s()):equals(true)
    local machine = trinity.system.describe_machine()
    expect(0):below(machine.cores)
    expect(0):below(machine.memory_bytes)
    expect(#machine.processor > 0):equals(true)
  end)
  it('goes through a table by numbers as such, then by texts', function()
    local keys = {}
    for key in trinity.system.sorted_pairs { b = 1, a = 1, ['10'] = 1, [10] = 1, [2] = 1, [1] = 1, [true] = 1 } do keys[#keys + 1] = tostring(key) end
    expect(table.concat(keys, ' ')):equals '1 2 10 10 a b true'
  end)
end)

it('no command takes an empty name for what it writes', function()
  for _, words in ipairs { 'study whole_loop --output', 'simulate --trace',
    'study papers trinity --output', 'execute --profile', 'quickstart --output', 'train --output' } do
    trinity_says(words .. " ''", 2, "option '%-%-[a-z]+': expected the name of a file or folder, got ''")
  end
end)
