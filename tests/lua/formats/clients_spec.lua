-- Files for other programs are byte-identical to the files that these programs accepted: tests/clients has the scripts that asked
-- them, tests/data/clients what they answered.

local core = require 'trinity.core'
local trinity = require 'trinity'
local cases = dofile(core.home .. '/tests/clients/cases.lua')

local folder = core.home .. '/tests/data/clients/'

local function adler32(text)
  local a, b = 1, 0
  for i = 1, #text do
    a = (a + text:byte(i)) % 65521
    b = (b + a) % 65521
  end
  return b * 65536 + a
end

local records = {}

local function record_of(format)
  records[format] = records[format] or trinity.files.json.decode(trinity.files.read(folder .. format .. '.json'))
  return records[format]
end

--- Where two programs take a format, `record` names the answers of the other one.
local function check_case(strategy, case, format, record)
  local taken = record_of(record or format).cases[case.name]
  if not taken then error(('no client took case %s of %s'):format(case.name, format), 0) end
  local files, seen = cases.files(strategy, format), 0
  for _, file in ipairs(files) do
    local known = taken.files[file.name]
    seen = seen + 1
    if type(known) == 'table' then
      expect(#file.text):equals(known.bytes)
      expect(adler32(file.text)):equals(known.adler32)
    else
      expect(file.text):equals(known)
    end
  end
  local count = 0
  for _ in trinity.system.sorted_pairs(taken.files) do count = count + 1 end
  expect(count):equals(seen)
end

describe('files that clients took', function()
  for _, case in ipairs(cases.list) do
    it(('are what trinity writes: %s'):format(case.name), function()
      local strategy = cases.strategy(case)
      for format in trinity.system.sorted_pairs(case.formats) do
        check_case(strategy, case, format)
        if format == 'chakra' then check_case(strategy, case, format, 'astra_sim') end
      end
    end)
  end
  it('run in ASTRA-sim until every rank has finished', function()
    for name, case in trinity.system.sorted_pairs(record_of('astra_sim').cases) do
      local ranks = record_of('chakra').cases[name].answer.ranks
      expect(#case.answer.ranks):equals(#ranks)
      for rank, computed in ipairs(ranks) do -- not before what it computes is over, which it does one after the other
        expect(case.answer.ranks[rank].cycles >= 1000 * computed.computation_micros):equals(true)
      end
    end
  end)
  it('are of every format, each by a named client', function()
    for _, format in ipairs(trinity.formats.names()) do
      local record = record_of(format)
      expect(#record.client > 0 and #(record.version .. record.commit) > 0):equals(true)
      expect(next(record.cases) ~= nil):equals(true)
    end
  end)
end)

describe('what clients made of them', function()
  it('is the plan: Megatron-LM builds these layers on these ranks', function()
    for _, case in ipairs(cases.list) do
      local answer = case.formats.megatron and record_of('megatron').cases[case.name].answer
      if answer and answer.ranks then
        local outline = require('trinity.formats.outline').of(cases.strategy(case))
        for s, stage in ipairs(outline.stages) do
          local units, layers = answer.ranks[stage.rank + 1][math.ceil(s / outline.pipeline)], 0
          for _, unit in ipairs(units) do layers = layers + (unit == 'decoder' and 1 or 0) end
          expect(layers):equals(stage.last - stage.first + 1)
          expect(units[1] == 'embedding'):equals(stage.embedding)
          expect(units[#units] == 'loss'):equals(stage.head)
        end
      end
    end
  end)
  it('is the step: torchtitan cuts its models as the plan does and runs them to the losses of the whole', function()
    local models = {}
    for _, case in ipairs(cases.list) do
      local plan = case.formats.torchtitan and require('trinity.formats.outline').of(cases.strategy(case))
      if plan and plan.pipeline > 1 then
        local answer = record_of('torchtitan').cases[case.name].answer
        expect(#answer.weights_of_stages):equals(#plan.stages, case.name)
        expect(#answer.losses):equals(plan.micro_batches, case.name)
        expect(answer.largest_relative_difference_of_gradients):below(1e-4)
        local numbers = {}
        for _, list in ipairs(answer.ranks) do for at, s in ipairs(list) do numbers[s] = at end end
        for s, stage in ipairs(plan.stages) do
          expect(answer.ranks[stage.rank + 1][numbers[s - 1]]):equals(s - 1, case.name)
        end
        models[case.model] = true
      end
    end
    expect(models.llama and models.deepseek_v3):equals(true)
  end)
  it('is the step: PyTorch runs every schedule to the losses of no pipeline', function()
    for name, case in trinity.system.sorted_pairs(record_of('pytorch_schedule').cases) do
      expect(#case.answer.losses):equals(case.answer.micro_batches, name)
      expect(case.answer.largest_difference_of_gradients):below(1e-6)
    end
  end)
end)
