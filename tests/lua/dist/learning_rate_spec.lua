-- Learning rates of trainers by epoch, against values worked out by hand, and over a checkpoint.

with_torch()

local learning_rate = require 'trinity.dist.learning_rate'
local trinity = require 'trinity'

-- Rates of the epochs on these losses, as text.
local function rates(options, losses)
  local schedule, list = learning_rate.new('test', 0.8, options), {}
  for e, loss in ipairs(losses) do
    list[e] = ('%.5g'):format(schedule:rate())
    schedule:after_epoch(loss)
  end
  return table.concat(list, ' '), schedule
end

local function constant(count)
  local list = {}
  for i = 1, count do list[i] = 1 end
  return list
end

local function trainer(options)
  local net = trinity.nn.linear { inputs = 2, outputs = 1, seed = 1 }
  return trinity.dist.trainer(trinity.dist.init(), { module = net, learning_rate = options,
    optimiser = trinity.nn.sgd { parameters = net:parameters(), learning_rate = 0.8, momentum = 0.9 } })
end

local function train(made)
  made:epoch(2, function() return made.module(trinity.tensor.ones { 1, 2 }):abs():sum() end)
  return made.optimiser.learning_rate
end

describe('the learning rate', function()
  it('rises in even steps, and stays', function()
    expect((rates({ warmup_epochs = 3 }, constant(6)))):equals '0.2 0.4 0.6 0.8 0.8 0.8'
  end)
  it('halves when the loss has not fallen by 5 % for more than five epochs, as in the example code', function()
    -- Epoch 1 sets the best; 2 to 6 are bad, 7 is the sixth: halved from 8 on.
    expect((rates({ decay = 'plateau' }, constant(14)))):equals
      '0.8 0.8 0.8 0.8 0.8 0.8 0.8 0.4 0.4 0.4 0.4 0.4 0.4 0.2'
    -- 4 % less is no better; 6 % less than the best is, and the count begins anew.
    expect((rates({ decay = 'plateau', patience = 1 }, { 1, 0.96, 0.94, 0.93, 0.93, 0.93 }))):equals
      '0.8 0.8 0.8 0.8 0.8 0.4'
  end)
  it('watches no plateau while it rises, and goes no lower than the least', function()
    expect((rates({ decay = 'plateau', patience = 0, warmup_epochs = 3, factor = 0.25, least_rate = 0.1 }, constant(8))))
      :equals '0.2 0.4 0.6 0.8 0.8 0.2 0.1 0.1'
  end)
  it('takes steps', function()
    expect((rates({ decay = 'step', step_epochs = 2, factor = 0.5, warmup_epochs = 1 }, constant(7)))):equals
      '0.4 0.8 0.8 0.4 0.4 0.2 0.2'
  end)
  it('falls along a cosine', function()
    -- 0.8 (1 + cos(pi k / 4)) / 2 for k = 0 to 3 behind a warm-up of one epoch.
    expect((rates({ decay = 'cosine', epochs = 5, warmup_epochs = 1 }, constant(6)))):equals
      '0.4 0.8 0.68284 0.4 0.11716 0'
    expect((rates({ decay = 'cosine', epochs = 2, least_rate = 0.2 }, constant(3)))):equals '0.8 0.5 0.2'
    expect(function() learning_rate.new('dist.trainer', 1, { decay = 'cosine' }) end)
      :raises "dist.trainer: learning_rate: decay 'cosine' needs option 'epochs'"
  end)
  it('is what the optimiser of a trainer has', function()
    local made = trainer { warmup_epochs = 1, decay = 'step', step_epochs = 1 }
    expect(made.optimiser.learning_rate):equals(0.4)
    expect(train(made)):equals(0.8)
    expect(train(made)):equals(0.4)
    expect(train(trainer())):equals(0.8)
  end)
  it('goes on from a checkpoint', function()
    local options, folder = { decay = 'plateau', patience = 1, threshold = 1 }, temporary '.checkpoint'
    local whole, first = trainer(options), trainer(options)
    local expected = {}
    for e = 1, 6 do expected[e] = train(whole) end
    for _ = 1, 2 do train(first) end
    first:save(folder)
    local second, found = trainer(options), {}
    expect(second:load(folder)):equals(true)
    for e = 3, 6 do found[e - 2] = train(second) end
    expect(table.concat(found, ' ')):equals(table.concat(expected, ' ', 3))
    expect(found[4] < 0.8):equals(true)
  end)
  it('refuses what it cannot follow', function()
    expect(function() trainer { decay = 'cosin' } end):raises "did you mean 'cosine'"
    expect(function() trainer { factor = 0 } end):raises 'a number above 0 to 1'
    expect(function() trainer { warmup_epoch = 3 } end):raises "did you mean 'warmup_epochs'"
  end)
end)
