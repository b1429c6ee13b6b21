-- Published simulators: the step times that their authors' code gives (../shared/data/placeto-sim, doppler), and by hand.

local cli = require 'trinity.command.cli'
local json = require 'trinity.base.json'

local function problem_of(path, rules, devices)
  return cli.problem { model = path, rules = rules, devices = devices, set = {} }
end

local function evaluate(problem, digits) return problem:evaluate(cli.read_placement(problem, (digits:gsub('.', '%0,')))) end

describe("Placeto's rules", function()
  it('pause after every operator, and transfers overlap with work', function()
    local profile = root .. '/tests/data/profiles/small.graph.txt'
    -- Eight operators of 73.5 ms in all, with 5.7 us between them.
    local metrics = evaluate(problem_of(profile, 'placeto', 1), '00000000')
    expect(metrics.transfers):equals(0)
    expect(metrics.step_time_s):near(73539.9e-6, 1e-9)
    -- In halves the 4 MB of the fourth take the place of a pause (whole nanoseconds); the 2 MB of the second hide.
    metrics = evaluate(problem_of(profile, 'placeto', 2), '00001111')
    expect(metrics.transfers):equals(2)
    expect(metrics.step_time_s * 1e6):near(73500 + 6 * 5.7 + 4e6 / 7600, 1e-3)
  end)
  it_shared("give the published simulator's step times on real profiles", function()
    local compared = 0
    for _, name in ipairs { 'alexnet', 'vgg16', 'gnmt', 'resnet50', 'inception_v3', 'nasnetamobile' } do
      local problems = {}
      for _, case in ipairs(json.read(shared(('placeto-sim/%s.expected.json'):format(name))).cases) do
        problems[case.devices] = problems[case.devices]
          or problem_of(shared(('pipedream/%s.graph.txt'):format(name)), 'placeto', case.devices)
        local metrics = evaluate(problems[case.devices], case.placement)
        expect(metrics.step_time_s * 1e6):near(case.makespan_us, 1e-6 * case.makespan_us) -- whole nanoseconds here
        expect(metrics.transfers):equals(case.transfers)
        for d = 1, case.devices do
          expect(metrics:compute_busy_s(d) * 1e6):near(case.busy_us[d], 1e-5 * case.busy_us[d])
        end
        compared = compared + 1
      end
    end
    expect(compared):equals(128)
  end)
end)

describe("Doppler's rules", function()
  it_shared("give the makespans of its authors' simulator", function()
    local compared = 0
    for name, facts in pairs(json.read(shared 'doppler/expected.json').graphs) do -- in any order
      local problem = problem_of(shared(('doppler/%s.txt'):format(name)), 'doppler', facts.devices)
      local function nanoseconds(time_s) return math.floor(time_s * 1e9 + 0.5) end
      expect(problem.graph.operators):equals(facts.nodes)
      expect(problem.graph.edges):equals(facts.edges)
      local bounds = problem:bounds()
      expect(nanoseconds(bounds.critical_path_s)):equals(facts.critical_path)
      expect(nanoseconds(bounds.step_time_s) >= facts.bound):truthy()
      expect(nanoseconds(bounds.step_time_s) <= facts.best_known):truthy()
      for _, case in ipairs(facts.cases) do
        expect(nanoseconds(evaluate(problem, case.placement).step_time_s)):equals(case.makespan)
        compared = compared + 1
      end
    end
    expect(compared):equals(96)
  end)
end)
