-- Every script prints its golden text (support/golden.lua), at a size that takes seconds; the main job does what README.md
-- says.

local core = require 'trinity.core'
local util = require 'trinity.base.util'
local masked = setfenv(loadfile(root .. '/tests/lua/support/script_masks.lua'), getfenv())()

--- A folder of runs with one that has ended.
local function example_runs()
  local folder = temporary '.runs'
  core.write_file(folder .. '/example/run.json', core.to_json { kind = 'trinity run 1', name = 'example',
    status = 'done', script = 'example.lua', model = 'vgg16', cluster = 'p100x2', started = '2026-01-02T03:04:05Z' })
  return folder
end

local smoke = {
  commands = {
    info = 'resnet50 --batch_size 1 --json',
    simulate = '--model vgg16 --json',
    plan = 'gpt2 --set layers=4,hidden=256,heads=4,fused=false,dropout=0 --cluster dgx_a100:2 --global_batch 8 --sequence 64 '
      .. '--micro_batch 1 --simulations 10 --json',
    pipeline = ("'%s/tests/data/profiles/small.graph.txt' --method pipedream --devices 2"):format(root),
    search = '--model vgg16 --method annealing --evaluations 20',
    execute = '--model alexnet --batch_size 1 --devices cpu:0,cpu:1 --steps 2',
    export = 'resnet50 --batch_size 1 --format placement --device cuda',
    check = ("'%s/tests/data/jobs/pretrain.sh' --json"):format(root),
    expect = ("'%s/tests/data/jobs/pretrain.sh' --measured 20ms"):format(root),
    memory = ("'%s/tests/data/jobs/pretrain.sh'"):format(root),
    serve = '--schema',
    replay = ("'%s/tests/data/traces/operations.csv'"):format(root),
    runs = '--sort name --runs ' .. example_runs(),
    help = '',
  },
  examples = {
    quickstart = '--steps 2 --samples 4 --seeds 2 --output ' .. temporary(),
    own_reward = '--model vgg16 --evaluations 20',
    own_heuristic = '--model vgg16',
    own_path = '--model vgg16',
    own_baseline = '--model vgg16 --evaluations 64',
    custom_policy = '--model vgg16 --evaluations 16 --groups 8',
    train = '--graphs vgg16:8 --clusters p100x2 --hidden 4 --rounds 5 --output ' .. temporary '.safetensors',
  },
}

-- Further forms of commands, by the names of their golden texts.
local forms = {
  timeline = 'simulate --batch_size 1 --cluster p100x4 --method contiguous --trace ' .. temporary(),
  profile = 'execute --model alexnet --batch_size 1 --devices cpu:0,cpu:1 --steps 1 --warm_up 0 --copies 1 '
    .. '--largest_copy 65536 --profile ' .. temporary(),
  compare = 'search --model vgg16 --method single_device,metis,random --evaluations 20 --seeds 2',
  report = ("runs report '%s/tests/data/run' --output %s"):format(root, temporary()),
  watch = 'runs watch --once --runs ' .. example_runs(),
}

--- The program's words for a script of a group.
local function script_word(group, name)
  local path = ('scripts/examples/%s.lua'):format(name)
  return group == 'examples' and core.exists(root .. '/' .. path) and path or name
end

--- The standard output of a script, which ends with status 0.
local function printed(name, arguments)
  local errors = temporary()
  local text, status = output_of(("cd '%s' && timeout -k 5 300 '%s' %s %s 2>'%s'; echo \"status=$?\""):format(root, program,
    name, arguments, errors)):match '^(.*)status=(%d+)\n$'
  expect(status == '0' or text .. core.read_file(errors)):equals(true)
  return text
end

describe('scripts', function()
  for group, names in util.sorted_pairs(smoke) do
    for name, arguments in util.sorted_pairs(names) do
      it_golden(('scripts/%s/%s'):format(group, name), function()
        return masked(name, printed(script_word(group, name), arguments))
      end)
    end
  end
  for name, words in util.sorted_pairs(forms) do
    it_golden('scripts/commands/' .. name, function() return masked(name, printed(words, '')) end)
  end
  it('of every command and example have a golden text', function()
    for _, folder in ipairs { 'scripts', 'scripts/examples' } do
      for _, file in ipairs(core.list_folder(root .. '/' .. folder)) do
        local name = file:match '^(.*)%.lua$'
        local small = name and (name == 'study' or smoke.commands[name] or smoke.examples[name])
        expect(small and true or file:find('%.lua$') == nil or 'no small arguments for ' .. file):equals(true)
      end
    end
  end)
end)

describe('the examples of own parts', function()
  it('have fewer than 40 lines each', function()
    for _, name in ipairs { 'own_reward', 'own_heuristic', 'own_path', 'own_baseline' } do
      local lines = 0
      for _ in io.lines(('%s/scripts/examples/%s.lua'):format(root, name)) do lines = lines + 1 end
      expect(lines):below(40)
    end
  end)
  it('custom_policy: trained in Lua it gains what the built-in policy gains over one device', function()
    with_torch()
    local text = trinity_says('scripts/examples/custom_policy.lua --batch_size 32 --evaluations 320', 0)
    local function reward(method) return tonumber((text:match('\n' .. method .. ' [^\n]- yes +(%-?[%d.]+) '))) end
    local base = reward 'single_device'
    expect(base + 0.1):below(reward 'trinity')
    expect(0.98 * (reward 'trinity' - base)):below(reward 'my_policy' - base)
  end)
end)

describe('simulate --trace', function()
  local output = temporary()
  local function run(arguments) return trinity_says(('simulate --trace %s %s'):format(output, arguments), 0) end
  it('takes a saved strategy with its schedule, or another one', function()
    local trinity = require 'trinity'
    local problem = trinity.problem { graph = trinity.model('inception_v3', { batch_size = 64 }), cluster = trinity.cluster 'p100x4' }
    local saved = problem:strategy({ placement = problem:placement(), schedule = 'lifo', micro_batches = 3 }):save(temporary())
    expect(run('--strategy ' .. saved)):matches('\nlifo, 3 micro%-batches: %d+ tasks, ')
    expect(select(2, run_trinity('simulate --schedule gpipe --strategy ' .. saved))):matches 'was made for .lifo. and 3 micro%-batches; use %-%-reevaluate'
    expect(run('--schedule critical_path --reevaluate --strategy ' .. saved)):matches('\ncritical_path, 3 micro%-batches: ')
    expect(run('--micro_batches 1 --reevaluate --strategy ' .. saved)):matches('\nlifo, 1 micro%-batch: ')
  end)
  it('takes any method', function()
    expect(run '--method round_robin'):matches 'inception_v3 on p100x2: .*\nfifo, 1 micro%-batch: '
    expect(run '--method random --evaluations 8'):matches '\nfifo, '
    trinity_says('simulate --method rondom', 2, "no method 'rondom', did you mean 'random'%?")
    trinity_says('simulate --rules queue=rout', 1, "unknown queue model 'rout', did you mean 'route'%?")
  end)
end)
