-- The modules of Megatron-LM's selective recomputation (--recompute-modules), as operators of model 'decoder'.

local util = require 'trinity.base.util'

local recomputes = {}

--- Returns whether an operator belongs to modules, given as a text: core_attn moe_act layernorm ...
function recomputes.of(modules)
  local function any(op, ...)
    for _, pattern in ipairs { ... } do if op.name:find(pattern) then return true end end
  end
  local of = {
    layernorm = function(op) return any(op, '/norm_[12]$') end,
    moe = function(op) return any(op, '/experts/', '/router/', '/shared/', '/dispatch', '/combine') end,
    shared_experts = function(op) return any(op, '/shared/') end,
    moe_act = function(op) return any(op, '/experts/activation') end,
    mla_up_proj = function(op) return any(op, 'query_norm', 'latent_norm', 'query_up', 'key_value', '_rotary') end,
    mlp = function(op) return any(op, '/feed_forward/[giua]', '/feed_forward/down/input') end,
    core_attn = function(op)
      return op.type == 'Attention' or any(op, '/scores$', '/softmax', '/context', '/dropout$')
    end,
  }
  local chosen = util.map(util.words(modules, '[%w_]+'), function(name)
    return of[name] or util.fail('unknown recomputed module %s', util.unknown(name, util.sorted_keys(of)))
  end)
  return function(op)
    for _, holds in ipairs(chosen) do if holds(op) then return true end end
  end
end

--- Returns whether an operator's activations are on the host with --fine-grained-activation-offloading: all operators
--- of layers except shared experts, routers and latent projections. Offloading frees the same memory as recomputation.
function recomputes.offloaded(op)
  return op.name:find '^layer_' and not (op.name:find '/shared/' or op.name:find '/router/'
    or op.name:find 'query_down' or op.name:find '/attention/latent$' or op.name:find '/attention/key$') or nil
end

return recomputes
