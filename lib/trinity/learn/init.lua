-- trinity.learn: learners of policies on environments (trinity.env), each a page, over one interface of a policy
-- (actor_critic.lua), with CleanRL's names. In addition, building blocks of learners, and Trinity's policy.

local actor_critic = require 'trinity.learn.actor_critic'
local cross_entropy = require 'trinity.learn.cross_entropy'
local ppo = require 'trinity.learn.ppo'
local reinforce = require 'trinity.learn.reinforce'
local returns = require 'trinity.learn.returns'

--- Learners of policies on environments, by the names of CleanRL.
---@class trinity.LearnModule
local learn = {
  agent = require 'trinity.learn.agent',
  clone = require 'trinity.learn.cloning',
  cross_entropy = cross_entropy.run,
  evolution = require 'trinity.learn.evolution',
  features = require 'trinity.learn.features',
  gae = returns.gae, returns = returns.returns,
  policy = actor_critic.new, scorer = actor_critic.scorer,
  ppo = ppo.run,
  reinforce = reinforce.run,
}

return learn
