-- Returns and advantages of a rollout, as CleanRL computes them. Tensors are float32 [steps, num_envs]; done[t] says
-- that step t ended an episode, so that what follows belongs to another one.

local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local tensor = require 'trinity.nn.tensor'

local returns = {}

local gae_options = options_of.declare('trinity.GaeOptions', { help = 'What learn.gae takes.',
  { 'gamma', 'number', 1, least = 0, most = 1, help = 'discount per step' },
  { 'gae_lambda', 'number', 0.95, least = 0, most = 1, help = 'weight of longer estimates' },
})

local function check_rows(owner, place, name, value, shape)
  if not tensor.is(value) or value:dim() ~= 2 or shape and (value:size(1) ~= shape[1] or value:size(2) ~= shape[2]) then
    check.wrong(owner, place, name, value, shape and ('a tensor [%d x %d]'):format(shape[1], shape[2])
      or 'a tensor [steps x num_envs]')
  end
  return value:size()
end

--- Discounted sums of the rewards of the rest of the episode; `next_value` [num_envs] is the value after the last
--- step (default 0). Example: `trinity.learn.returns(steps, dones, 0.99)`
---@param rewards trinity.TorchTensor [steps, num_envs]
---@param dones trinity.TorchTensor [steps, num_envs]
---@param gamma? number default 1
---@param next_value? trinity.TorchTensor [num_envs]
---@return trinity.TorchTensor returns [steps, num_envs]
function returns.returns(rewards, dones, gamma, next_value)
  local shape = check_rows('learn.returns', 1, 'rewards', rewards)
  check_rows('learn.returns', 2, 'dones', dones, shape)
  gamma = gamma == nil and 1 or check.number('learn.returns', 3, 'gamma', gamma, 0, 1)
  if next_value ~= nil and not tensor.is(next_value) then
    check.wrong('learn.returns', 4, 'next_value', next_value, 'a tensor [num_envs]')
  end
  local rows, following = {}, next_value or tensor.zeros { shape[2] }
  for t = shape[1], 1, -1 do
    following = rewards:select(1, t) + (1 - dones:select(1, t)) * following * gamma
    rows[t] = following
  end
  return tensor.stack(rows)
end

--- Generalised advantage estimates (Schulman et al. 2016), and the returns that a critic learns.
--- Example: `trinity.learn.gae(steps, dones, steps, last)`
---@param rewards trinity.TorchTensor [steps, num_envs]
---@param dones trinity.TorchTensor [steps, num_envs]
---@param values trinity.TorchTensor [steps, num_envs]: the critic's, before each step
---@param next_value trinity.TorchTensor [num_envs]: after the last step
---@param options? trinity.GaeOptions
---@return trinity.TorchTensor advantages [steps, num_envs]
---@return trinity.TorchTensor returns [steps, num_envs]
function returns.gae(rewards, dones, values, next_value, options)
  local shape = check_rows('learn.gae', 1, 'rewards', rewards)
  check_rows('learn.gae', 2, 'dones', dones, shape)
  check_rows('learn.gae', 3, 'values', values, shape)
  if not tensor.is(next_value) then check.wrong('learn.gae', 4, 'next_value', next_value, 'a tensor [num_envs]') end
  local o = gae_options:read('learn.gae', 5, 'options', options)
  local rows, last, following = {}, tensor.zeros { shape[2] }, next_value
  for t = shape[1], 1, -1 do
    local goes_on = 1 - dones:select(1, t)
    local delta = rewards:select(1, t) + following * goes_on * o.gamma - values:select(1, t)
    last = delta + last * goes_on * (o.gamma * o.gae_lambda)
    rows[t], following = last, values:select(1, t)
  end
  local advantages = tensor.stack(rows)
  return advantages, advantages + values
end

return returns
