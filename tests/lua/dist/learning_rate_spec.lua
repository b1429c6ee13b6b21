-- Learning rates by epoch, against values worked out by hand; trainings that follow them, and over a checkpoint.

local core = require 'trinity.core'
local learning_rate = require 'trinity.dist.learning_rate'
local trinity = require 'trinity'
local util = require 'trinity.base.util'

with_torch()

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

local rows = temporary() .. '.csv'
core.write_file(rows, ('1,2,0\n-1,0,1\n3,1,0\n0,2,1\n'):rep(3)) -- three steps an epoch

local function train(options)
  local graph = trinity.model('mlp', { inputs = 2, hidden = { 3 }, classes = 2, batch_size = 4, optimizer = 'momentum' })
  local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100' }
  return trinity.execute(problem, problem:placement(), util.merged({ data = rows, learning_rate = 0.8, quiet = true }, options))
end

local function expect_losses(found, expected, first)
  expect(#found > 0 and #expected - first + 1 == #found):equals(true)
  for i, loss in ipairs(found) do expect(loss):equals(expected[first - 1 + i]) end
end

describe('the learning rate', function()
  it('rises in even steps, and stays', function()
    expect((rates({ warmup_epochs = 3 }, constant(6)))):equals '0.2 0.4 0.6 0.8 0.8 0.8'
  end)
  it('halves when the loss has not fallen by 5 % for more than five epochs, as in the example code', function()
    -- Epoch 1 sets the best; 2 to 6 are bad, 7 is the sixth: halved from 8 on.
    expect((rates({ decay = 'plateau' }, constant(14)))):equals
      '0.8 0.8 0.8 0.8 0.8 0.8 0.8 0.4 0.4 0.4 0.4 0.4 0.4 0.2'
    -- 4 % less is no better; 6 % less than the best is, and the count begins again.
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
    -- 0.8 (1 + cos(pi k / 4)) / 2 for k = 0 to 3 after a warm-up of one epoch.
    expect((rates({ decay = 'cosine', epochs = 5, warmup_epochs = 1 }, constant(6)))):equals
      '0.4 0.8 0.68284 0.4 0.11716 0'
    expect((rates({ decay = 'cosine', epochs = 2, least_rate = 0.2 }, constant(3)))):equals '0.8 0.5 0.2'
    expect(function() learning_rate.new('execute', 1, { decay = 'cosine' }) end)
      :raises "execute: learning_rate: decay 'cosine' needs option 'epochs'"
  end)
  it('is what the steps of a training have', function()
    local whole, kept = train { epochs = 4, rate = { warmup_epochs = 1, decay = 'step', step_epochs = 1 } }, temporary()
    for epoch, rate in ipairs { 0.4, 0.8, 0.4, 0.2 } do -- each by itself, on the weights of the one before
      expect_losses(train { epochs = epoch, learning_rate = rate, checkpoint = kept }.losses, {
        unpack(whole.losses, 1, 3 * epoch) }, 3 * epoch - 2)
    end
  end)
  it('goes on from a checkpoint', function()
    local rate, kept = { decay = 'plateau', patience = 0, threshold = 1 }, temporary() -- halves in every epoch but one
    local whole = train { epochs = 6, rate = rate }
    train { epochs = 3, rate = rate, checkpoint = kept }
    expect_losses(train { epochs = 6, rate = rate, checkpoint = kept }.losses, whole.losses, 10)
    local other = train { epochs = 6, rate = util.merged(rate, { factor = 0.9 }) }
    expect(other.losses[18] == whole.losses[18]):equals(false)
  end)
  it('refuses what it cannot follow', function()
    expect(function() train { epochs = 1, rate = { factor = 0 } } end):raises 'a number above 0 to 1'
  end)
end)
