local trinity = require 'trinity'

describe('a cluster', function()
  it('prices collectives', function()
    local cluster = trinity.cluster 'p100x4'
    local cost = cluster:collective { kind = 'all_reduce', algorithm = 'ring', devices = { 1, 2 }, bytes = 1e6 }
    expect(cost.time_s):equals(cost.latency_s + cost.transfer_s)
    expect(cost.latency_s > 0 and cost.transfer_s > 0 and cost.algorithm == 'ring'):equals(true)
    expect(cost.sent_bytes):equals(1e6)
    local function fails(spec, pattern) expect(function() cluster:collective(spec) end):raises(pattern) end
    fails({ kind = 'all_reduce', devices = { 1, 5 }, bytes = 1 }, "field 'devices': expected 1 to 4, got 5")
    for name in pairs { kind = 1, devices = 1, bytes = 1 } do -- in any order
      local spec = { kind = 'all_reduce', devices = { 1, 2 }, bytes = 1 }
      spec[name] = nil
      fails(spec, ("field '%s' is missing"):format(name))
    end
  end)
end)

describe('a graph', function()
  local function builder()
    local b = trinity.graph.new { name = 'g' }
    b:add { name = 'x', type = 'Work', flops = 1, workspace_bytes = 64, outputs = { { bytes = 8 } } }
    b:add { name = 'y', type = 'Work', flops = 1, outputs = { { bytes = 8 } } }
    return b
  end
  it('has collectives and workspaces', function()
    local b = builder()
    b:collective { name = 'sum', kind = 'all_reduce', bytes = 8, members = { 'x', 'y' } }
    local graph = b:build()
    expect(graph:operator(1).collective):equals 'sum'
    expect(graph:operator(2).collective):equals 'sum'
    expect(graph:operator(1).workspace_bytes):equals(64)
  end)
  it('refuses broken collectives', function()
    local function fails(spec, pattern)
      expect(function() builder():collective(spec) end):raises(pattern)
    end
    fails({ name = 's', kind = 'all_reduce', bytes = 8, members = { 'x', 'yy' } },
      "collective 's': no operator 'yy', did you mean '%a'%?")
    fails({ name = 's', kind = 'sum', bytes = 8, members = { 'x' } }, "unknown collective 'sum'")
    fails({ name = 's', kind = 'all_reduce', members = { 'x' } }, "collective 's': field 'bytes' is missing")
    fails({ name = 's', kind = 'all_reduce', bytes = 8 }, "field 'members' is missing")
    fails({ name = 's', kind = 'all_reduce', bytes = 8, members = { 1 } }, "member 1: expected an operator's name, got 1")
  end)
  it('shares buckets between operators of one device', function()
    local array = require 'trinity.base.array'
    local graph = trinity.model('inception_v3', { batch_size = 1 })
    local placement = array.int32(graph.operators)
    for i = 1, graph.operators do placement[i] = 1 end
    local double, origin = graph:replicate { replicas = 2, placement = placement }
    local members = 0
    for i = 1, #origin do if origin[i] == 0 then members = members + 1 end end
    -- 95 MB of gradients in buckets of at most 25 MB, which do not fill up; two members each.
    expect(members):equals(2 * 5)
    expect(function() graph:replicate { replicas = 2, placement = array.int32(3) } end):raises 'needs %d+ entries, got 3'
    expect(function() graph:replicate { replicas = 2, placement = { 1 } } end):raises 'expected a list of %d+ devices, one per operator, got 1 entries'
    expect(function() graph:replicate { replicas = 2, placement = array.int32(graph.operators) } end)
      :raises 'a placement names device 0, expected 1 or more'
    expect(double.parameters):equals(2 * graph.parameters)
  end)
end)
