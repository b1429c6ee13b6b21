-- What predictions of Sailor's plans rest on beside its profiles, for each kind of machine: constants with bounds and
-- where the fit starts; values are those of sailor_fitted.lua, which `trinity fidelity sailor --fit --save` writes.
-- `spread` is the deviation of the logarithm that costs the fit as much as a plan that is a twentieth off.

local util = require 'trinity.base.util'

local constants = { families = { 'gh200', 'mixed' } }

local shared = {
  { name = 'network_share', unit = '1', start = 0.65, least = 0.4, most = 1, spread = 0.2,
    meaning = 'what sends between stages and all-reduces reach of a network card' },
  { name = 'slot_s', unit = 's', start = 2e-3, least = 0.2e-3, most = 10e-3, spread = 0.7,
    meaning = 'what the pipeline engine costs a forward and backward pass of a stage, beside its layers' },
  { name = 'state_bytes', unit = 'B', start = 20, least = 16, most = 24, spread = 0.05,
    meaning = 'a weight: float32 with gradient and Adam 16, and a buffer that gradients are reduced in' },
  { name = 'activation_share', unit = '1', start = 1.1, least = 1, most = 1.3, spread = 0.1,
    meaning = 'activations in memory, of those that layers keep (allocator, gradients of activations)' },
  { name = 'logits_share', unit = '1', start = 0.5, least = 0.05, most = 1.5, spread = 0.5,
    meaning = 'room for gradients of logits while the last layer runs, of what it keeps' },
  { name = 'context_bytes', unit = 'B', start = 4.3e9, least = 1e9, most = 6e9, spread = 0.3,
    meaning = "what driver, libraries and workspaces take of a GPU's memory" },
}

--- Where the fit for unlike machines with one card a node starts otherwise: links are as Sailor measured them.
local own = { mixed = { network_share = { start = 0.95, spread = 0.05 }, context_bytes = { start = 3e9 } } }

--- Constants of a family of machines, for trinity.fidelity.fit.
---@param family 'gh200'|'mixed'
---@return table[]
function constants.list(family)
  return util.map(shared, function(one) return util.merged(one, (own[family] or {})[one.name]) end)
end

--- Fitted values by family and name, and the plans that they were fitted to.
function constants.fitted() return require 'trinity.fidelity.sailor_fitted' end

return constants
