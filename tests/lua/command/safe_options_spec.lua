-- What safe scripts are told on the command line, and what a safe run goes on with.

local core = require 'trinity.core'

describe('options of a safe script', function()
  local script = [[
    local trinity = require 'trinity'
    local options = trinity.options { 'x', seed = { default = 1, help = 's' }, name = { default = 'none', help = 'n' } }
    print(options.seed, options.name, arg[1], (...)) ]]
  it('arrive, wherever --safe stands', function()
    for _, line in ipairs { '--safe SCRIPT --seed 3', '--threads 2 --safe SCRIPT --seed 3', '--safe -- SCRIPT --seed 3' } do
      expect(select(2, run_script(line, script))):equals '3\tnone\t--seed\t--seed\n'
    end
    expect(select(2, run_script('--safe --threads 2 SCRIPT --name x --seed=4', script))):equals '4\tx\t--name\t--name\n'
  end)
  it('are checked', function()
    script_says(2, "^trinity: unknown option '%-%-sede', did you mean 'seed'%? %(%-%-help lists them%)\n$", '--safe SCRIPT --sede 3', script)
    local status, output = run_script('SCRIPT --seed 3 --safe', script) -- behind the script it is the script's
    expect(output):matches "^trinity: unknown option '%-%-safe'"
    expect(status):equals(2)
    script_says(0, '%-%-seed', '--safe SCRIPT --help', script)
  end)
  it('reach scripts of trinity', function()
    local status, output = run_trinity '--safe simulate --model alexnet --cluster p100x3'
    expect(output):matches 'alexnet'
    expect(output):matches 'p100x3'
    expect(status):equals(0)
  end)
end)

it('a safe run goes on as a safe one, with its options', function()
  local folder = temporary()
  os.execute(("rm '%s'; mkdir '%s'"):format(folder, folder))
  core.write_file(folder .. '/script.lua', [[
    local trinity = require 'trinity'
    local options = trinity.options { 'x', seed = { default = 1, help = 's' } }
    trinity.run:result('before', { 1 })
    print(options.seed, io == nil)
    error 'stopped here' ]])
  local function shell(words)
    local output = output_of(("cd '%s' && '%s' %s --runs runs 2>&1"):format(folder, program, words))
    return output
  end
  expect(shell '--safe --no-strict script.lua --seed 5 --run first'):matches '5\ttrue\n.*stopped here'
  expect(shell 'runs resume first'):matches '5\ttrue\n.*stopped here'
end)
