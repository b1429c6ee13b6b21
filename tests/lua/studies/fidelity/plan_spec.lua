-- trinity study fidelity plan: published plans compared with the best of their space.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local plan = require 'studies.fidelity.plan'

local head = 'id,model,parameters_b,hidden,layers,heads,kv_heads,ffn,vocab,experts,experts_per_token,sequence,global_batch,'
  .. 'micro_batch,gpus,gpu,tp,pp,vpp,dp,cp,ep,zero,recompute,precision,value,unit,source,note'

local function table_of(...)
  local path = temporary '.csv'
  core.write_file(path, table.concat({ head, ... }, '\n') .. '\n')
  return path
end

--- A GPT of 8 layers on one machine: tensor, pipeline, data parallelism. fields: of others.
local function row(id, tensor, pipeline, data, fields)
  local with = merged({ chunks = '1', zero = '1', note = '' }, fields)
  return ('%s,GPT,,1024,8,16,,4096,51200,,,512,64,1,8,A100-80GB,%s,%s,%s,%s,1,,%s,none,bf16,,,,%s'):format(id, tensor,
    pipeline, with.chunks, data, with.zero, with.note)
end

describe('published plans compared with the best', function()
  it('are at 1 where they are the best of their space, and above it where not, with what differs', function()
    local path = table_of(row('good', 1, 1, 8), row('bad', 8, 1, 1), row('again', 8, 1, 1), row('open', '', 1, 8))
    local found = json.decode(trinity_says(("study fidelity plan --json --quiet --rows '%s'"):format(path), 0))
    expect(#found.rows):equals(2)
    expect(found.compared):equals(3)
    local by = {}
    for _, one in ipairs(found.rows) do by[one.id] = one end
    expect(by.bad.ids[2]):equals 'again'
    expect(by.good.ratio >= 1):truthy()
    expect(by.bad.ratio > by.good.ratio):truthy()
    expect(by.good.best_s):equals(by.bad.best_s)
    expect(by.bad.ratio):near(by.bad.published_s / by.bad.best_s, 1e-12)
    expect(by.bad.differs[1]):matches '^tensor %d for 8$'
    expect(found.within):equals((by.good.ratio <= 1.05 and 1 or 0) + (by.bad.ratio <= 1.05 and 2 or 0))
  end)

  it('leaves out rows whose source does not state their plan', function()
    local assumed = row('assumed', 1, 1, 8, { note = 'the table does not state tp: recipe assumed' })
    expect(#plan.rows(table_of(row('whole', 1, 1, 8), assumed))):equals(1)
  end)

  it('takes the fastest number of chunks where a row states none, and none that its framework could not run', function()
    local found = json.decode(trinity_says(("study fidelity plan --json --quiet --rows '%s'"):format(table_of(row('one', 1, 4, 2),
      row('open', 1, 4, 2, { chunks = '' }), row('zero', 1, 1, 8, { zero = '3' }))), 0))
    local one, open, zero = found.rows[1], found.rows[2], found.rows[3]
    expect(open.id):equals 'open'
    expect(open.published):matches 'interleaved v 2' -- 8 layers, 4 stages
    expect(open.published_s < one.published_s):truthy()
    expect(one.published):matches '1f1b'
    expect(one.best_s):equals(open.best_s)
    expect(one.best:find 'uneven'):equals(nil)
    expect(zero.best:find 'tensor' or zero.best:find 'pipeline'):equals(nil)
  end)

end)
