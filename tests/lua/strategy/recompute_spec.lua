-- Recomputation of modules by Megatron-LM's names, and of the first layers of every stage: what they cost, in files and
-- exports. (Plans under a memory budget: tests/lua/plan/plan_spec.lua.)

local trinity = require 'trinity'

local sizes = { layers = 4, sequence = 256, hidden = 256, heads = 8, vocabulary = 512, feed_forward = 1024,
  dtype = 'bfloat16' }

local function with(changes) return trinity.model('decoder', merged(sizes, changes)) end

local function problem_of(changes)
  return trinity.problem { graph = with(changes), cluster = trinity.cluster 'dgx_h100' }
end

local dense = problem_of()

local function step(problem, recompute) return problem:evaluate { mesh = { data = 2 }, recompute = recompute } end

describe('recomputed modules', function()
  it('free memory for time, more of them more of both, and less than whole layers', function()
    local none, full = step(dense, 'none'), step(dense, 'full')
    local one, two = step(dense, 'layernorm'), step(dense, 'layernorm+mlp')
    local times, bytes = { none, one, two, full }, {}
    for i, metrics in ipairs(times) do bytes[i] = metrics.peak_memory_bytes end
    for i = 2, 4 do
      expect(times[i - 1].step_time_s):below(times[i].step_time_s)
      expect(bytes[i]):below(bytes[i - 1])
    end
  end)
  it('are the operators of these names', function()
    local by_name = step(dense, function(op) return op.name:find '/norm_[12]$' ~= nil end)
    local by_word = step(dense, 'layernorm')
    expect(by_word.step_time_s):equals(by_name.step_time_s)
    expect(by_word.peak_memory_bytes):equals(by_name.peak_memory_bytes)
    local experts = problem_of { experts = 4, experts_per_token = 2, expert_feed_forward = 512 }
    local function moe(word) return step(experts, word) end
    expect(moe('moe').peak_memory_bytes):below(moe('moe_act').peak_memory_bytes)
    expect(moe('moe_act').peak_memory_bytes):below(moe('none').peak_memory_bytes)
    expect(moe('core_attn').step_time_s):equals(moe('selective').step_time_s)
    local latent = problem_of { kv_lora_rank = 64, q_lora_rank = 64, qk_nope_head_dim = 32, qk_rope_head_dim = 16, v_head_dim = 32 }
    expect(step(latent, 'mla_up_proj').peak_memory_bytes):below(step(latent, 'none').peak_memory_bytes)
  end)
  it('cost the same where few layers stand for all', function()
    local many = problem_of { layers = 24 }
    local strategy = { mesh = { pipeline = 2, data = 2 }, micro_batches = 4, recompute = 'layernorm+mlp' }
    local metrics = many:evaluate(strategy)
    strategy.recompute = function(op)
      return op.name:find '/norm_[12]$' ~= nil or op.name:find '/feed_forward/[giua]' ~= nil
    end
    expect(metrics.step_time_s):equals(many:evaluate(strategy).step_time_s)
  end)
  it('are read back from a file and written for Megatron-LM', function()
    local found = dense:strategy { mesh = { data = 2 }, recompute = 'mlp+layernorm' }
    local again = dense:load(found:save(temporary '.json'))
    expect(again.recompute):equals 'layernorm+mlp'
    expect(again.metrics.step_time_s):equals(found.metrics.step_time_s)
    local text = again:export { format = 'megatron', lossless = true }
    expect(text):matches '%-%-recompute%-granularity selective'
    expect(text):matches '%-%-recompute%-modules layernorm mlp'
  end)
  it('are refused by the nearest word, and where the network has none', function()
    local function refused(word, message) expect(function() step(dense, word) end):raises(message) end
    refused('layernorm+full', "recompute: 'full' cannot be combined with other modules")
    refused('moe', "recompute: graph 'decoder' has no operators of module 'moe'")
    expect(function() step(problem_of { qk_norm = true }, 'mla_up_proj') end):raises "no operators of module 'mla_up_proj'"
  end)
end)

describe('the first layers of every stage', function()
  local function rules(count, problem, layers)
    local list = {}
    for i = 1, problem.graph.operators do
      local op = problem.graph:operator(i)
      local layer = tonumber(op.name:match '^layer_(%d+)/')
      if op.phase == 'forward' and layer and (layer - 1) % layers >= count then list[op.name] = { recompute = false } end
    end
    return list
  end
  it("are Megatron-LM's method block", function()
    local found = dense:strategy { mesh = { pipeline = 2 }, micro_batches = 2, recompute = 'full',
      operators = rules(1, dense, 2) }
    local text = found:export { format = 'megatron', lossless = true }
    expect(text):matches '%-%-recompute%-method block'
    expect(text):matches '%-%-recompute%-num%-layers 1'
    local operators = rules(1, dense, 2)
    operators['layer_3/norm_1'] = { recompute = false }
    local other = dense:strategy { mesh = { pipeline = 2 }, micro_batches = 2, recompute = 'full', operators = operators }
    expect(function() other:export { format = 'megatron', lossless = true } end):raises 'settings of single operators'
  end)
end)
