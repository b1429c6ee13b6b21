-- trinity.learn: learners of policies on environments (trinity.env), each a page, over one interface of a policy
-- (actor_critic.lua). Names are those of CleanRL. In addition what learners are made of, and Trinity's policy.

local actor_critic = require 'trinity.learn.actor_critic'
local agent = require 'trinity.learn.agent'
local cloning = require 'trinity.learn.cloning'
local cross_entropy = require 'trinity.learn.cross_entropy'
local evolution = require 'trinity.learn.evolution'
local groups_of = require 'trinity.learn.groups'
local ppo = require 'trinity.learn.ppo'
local reinforce = require 'trinity.learn.reinforce'
local returns = require 'trinity.learn.returns'

--- Learners of policies on environments, by the names of CleanRL.
---@class trinity.LearnModule
---@since 0.1.0
local learn = {}

--- Discounted sums of the rewards of the rest of the episode; `next_value` [num_envs] is that of what follows the last
--- step (default 0).
---@param rewards trinity.TorchTensor [steps, num_envs]
---@param dones trinity.TorchTensor [steps, num_envs]
---@param gamma? number default 1
---@param next_value? trinity.TorchTensor [num_envs]
---@return trinity.TorchTensor returns [steps, num_envs]
function learn.returns(rewards, dones, gamma, next_value) return returns.returns(rewards, dones, gamma, next_value) end

--- Generalised advantage estimates (Schulman et al. 2016), and the returns that a critic learns.
---@param rewards trinity.TorchTensor [steps, num_envs]
---@param dones trinity.TorchTensor [steps, num_envs]
---@param values trinity.TorchTensor [steps, num_envs]: the critic's, before each step
---@param next_value trinity.TorchTensor [num_envs]: behind the last step
---@param options? trinity.GaeOptions
---@return trinity.TorchTensor advantages [steps, num_envs]
---@return trinity.TorchTensor returns [steps, num_envs]
function learn.gae(rewards, dones, values, next_value, options)
  return returns.gae(rewards, dones, values, next_value, options)
end

--- A policy whose network scores every action of an environment by itself: nodes on devices by the node's features and
--- the device's state, values of words by the words so far. Its weights fit environments of other problems.
---@param env trinity.Env
---@param options? trinity.ScorerOptions
---@return trinity.ActorCritic
function learn.scorer(env, options) return actor_critic.scorer(env, options) end

--- A policy of a network of one's own: network(observation) gives logits [num_envs, num_actions], of 'joint' actions
--- [num_envs, nodes, devices], and where it has a critic values [num_envs].
---@param network trinity.Module
---@return trinity.ActorCritic
function learn.policy(network) return actor_critic.new(network) end

--- Trains a policy by proximal policy optimisation (Schulman et al. 2017), with a critic where the policy has one.
---@param env trinity.Env
---@param policy trinity.ActorCritic
---@param options trinity.PpoOptions
---@return trinity.UpdateReport[]
function learn.ppo(env, policy, options) return ppo.run(env, policy, options) end

--- Trains a policy by REINFORCE (Williams 1992) with a baseline.
---@param env trinity.Env
---@param policy trinity.ActorCritic needs a value function for baseline 'value' only
---@param options trinity.ReinforceOptions
---@return trinity.UpdateReport[]
function learn.reinforce(env, policy, options) return reinforce.run(env, policy, options) end

--- Trains a policy by the cross-entropy method (Rubinstein 1999): raises the likelihood of the best.
---@param env trinity.Env
---@param policy trinity.ActorCritic needs no value function
---@param options trinity.CrossEntropyOptions
---@return trinity.UpdateReport[]
function learn.cross_entropy(env, policy, options) return cross_entropy.run(env, policy, options) end

--- Behaviour cloning: trains a policy to do as a teacher does. teacher(observation, env) gives the actions of all
--- environments.
---@param env trinity.Env
---@param policy trinity.ActorCritic
---@param teacher fun(observation: trinity.EnvObservation, env: trinity.Env): trinity.TorchTensor|integer[]
---@param options trinity.CloningOptions
---@return trinity.UpdateReport[]
function learn.clone(env, policy, teacher, options) return cloning(env, policy, teacher, options) end

--- Trains a policy by evolution strategies (Salimans et al. 2017).
---@param env trinity.Env
---@param policy trinity.ActorCritic of which act and parameters are asked alone
---@param options trinity.EvolutionOptions
---@return trinity.UpdateReport[]
function learn.evolution(env, policy, options) return evolution(env, policy, options) end

--- The group of every unit, from 1: contiguous parts of about equal work along the graph, none empty.
---@param problem trinity.Problem
---@param groups integer at most the number of units
---@return trinity.Placement an int32 array
function learn.contiguous_groups(problem, groups) return groups_of.contiguous(problem, groups) end

--- Trinity's own policy with its own PPO, in the engine on LibTorch (engine/learn/torch/agent.h).
---@param problem trinity.Problem
---@param options? trinity.AgentOptions without those of every method but the seed
---@return trinity.Agent
function learn.agent(problem, options) return agent(problem, options) end

return learn
