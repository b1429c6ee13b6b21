-- Tables about methods that learn: the number of updates, and a name for methods that made none.

local trinity = require 'trinity'

local function problem()
  return trinity.problem { graph = trinity.model('alexnet', { batch_size = 8 }), cluster = trinity.cluster 'p100x2' }
end

-- The placements in each stretch of batches that method post learns from by cross-entropy.
local function stretches(p, options)
  local cross_entropy = require 'trinity.learn.cross_entropy'
  local sizes, new = {}, cross_entropy.new
  function cross_entropy.new(...)
    local made = new(...)
    local learn = made.learn
    function made.learn(batch, ...)
      sizes[#sizes + 1] = batch.rewards:numel()
      return learn(batch, ...)
    end
    return made
  end
  trinity.methods.post(p, options)
  cross_entropy.new = new
  return table.concat(sizes, ' ')
end

describe('updates of a policy', function()
  it('are counted, and fewer than a batch are none', function()
    local p = problem()
    local found = trinity.methods.trinity(p, { evaluations = 200, samples = 10, refine = false, warm_start = false,
      quiet = true })
    expect(found.updates):equals(20)
    expect(found:found_by()):equals 'trinity'
    local none = trinity.methods.trinity(p, { evaluations = 30, samples = 16, quiet = true })
    expect(none.updates):equals(0)
    expect(none:found_by()):matches '^warm start %+ '
    expect(trinity.methods.best(p, { evaluations = 30, quiet = true }).updates):equals(nil)
  end)

  it('stand in the table of a comparison, under the name of what was done', function()
    local p = problem()
    local few = trinity.compare(p, { 'single_device', 'trinity' }, { evaluations = 30, quiet = true })
    expect(few:table { columns = { 'method', 'updates' } }):matches 'warm start %+ [^\n]* 0'
    expect(tostring(few)):matches 'what trinity came to, whose policy had no update in this budget'
    expect(few:totable().rows[2].runs[1].updates):equals(0)
    local plain = trinity.compare(p, { 'single_device', 'best' }, { evaluations = 30, quiet = true })
    expect(plain:table():find('updates', 1, true)):equals(nil)
  end)

  it('are kept by checkpoints and files', function()
    local p, path = problem(), os.tmpname()
    local found = trinity.methods.trinity(p, { evaluations = 200, samples = 10, refine = false, warm_start = false,
      quiet = true })
    found:save(path)
    expect(tonumber(p:load(path).saved.updates)):equals(20)
  end)

  it('are counted by learners with networks', function()
    with_torch()
    local p = problem()
    for _, name in ipairs { 'post', 'hierarchical', 'colocrl' } do
      expect(trinity.methods[name](p, { evaluations = 48, samples = 16, quiet = true }).updates):equals(3)
    end
    expect(stretches(p, { elite_every = 2, evaluations = 80, samples = 16, quiet = true })):equals '32 32'
    expect(trinity.methods.doppler(p, { evaluations = 10, quiet = true }).updates):equals(3) -- of 4, 4 and 2
    expect(trinity.methods.doppler(p, { evaluations = 10, learn = false, quiet = true }):found_by()):equals 'doppler, untrained'
    expect(trinity.methods.placeto(p, { evaluations = 2, quiet = true }):found_by()):equals 'placeto, untrained'
  end)
end)

describe('labels of a comparison', function()
  it('are what its table calls methods', function()
    local found = trinity.compare(problem(), { 'single_device', 'heuristics' }, { evaluations = 30, quiet = true,
      labels = { heuristics = 'best heuristic' } })
    expect(found:table()):matches 'best heuristic'
    expect(found:find 'heuristics'):truthy()
  end)

  it('are refused for what is no method', function()
    expect(function() trinity.compare(problem(), { 'best' }, { labels = { bets = 'x' } }) end):raises 'best'
  end)
end)
