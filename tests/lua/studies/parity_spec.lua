-- Whether DASO ends with the loss of training in step: real jobs over several seeds, and a tolerance from the spread of
-- those in step alone (scripts/studies/papers/daso_parity.lua). The page `trinity study papers daso` has the larger size.

with_torch()
all_only()

local jobs = require 'studies.papers.daso_jobs'
local parity = require 'studies.papers.daso_parity'

local function train(changes)
  local given = merged({ task = 'images', method = 'bsp', epochs = 6, batches = 10, batch_size = 16, seeds = 4,
    link_mbit_s = 0, link_ms = 0, lr_warmup = 1, lr_decay = 'plateau' }, changes)
  return jobs.values(jobs.train(4, given), given.method, 'loss')
end

describe('the loss of DASO', function()
  local found
  local function bsp()
    found = found or train {}
    return found
  end
  it('agrees with synchronous training, within two standard deviations of a difference of means', function()
    local daso = train { method = 'daso' }
    expect(#bsp() == 4 and #daso == 4):equals(true)
    expect(bsp()[1] ~= bsp()[2]):equals(true)
    expect(table.concat(bsp(), ' ') ~= table.concat(daso, ' ')):equals(true) -- nodes did skip
    local agrees, difference, tolerance = parity.compare(bsp(), daso)
    if not agrees then error(('means differ by %g, tolerance %g'):format(difference, tolerance), 0) end
    expect(math.abs(difference) <= tolerance):equals(true)
  end)
  it('is distinguished from training half as long', function()
    local agrees = parity.compare(bsp(), train { epochs = 3 })
    expect(agrees):equals(false)
  end)
  it('has a tolerance that follows from the spread in step', function()
    -- Standard deviation 0.1 around 1: 2 * 0.1 * sqrt(2 / 3); no spread: 1 % of the mean.
    expect(parity.tolerance { 0.9, 1, 1.1 }):near(0.163299, 1e-6)
    expect(parity.tolerance { 2, 2, 2 }):near(0.02, 1e-12)
    local agrees, difference = parity.compare({ 0.9, 1, 1.1 }, { 1.1, 1.2, 1.2 })
    expect(difference):near(0.166667, 1e-6)
    expect(agrees):equals(false)
    expect((parity.compare({ 0.9, 1, 1.1 }, { 1.1, 1.1, 1.2 }))):equals(true)
  end)
end)
