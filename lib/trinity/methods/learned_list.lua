-- A placement that learned weights build in one pass, priced once (lib/trinity/search/schedulers.lua).

local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local schedulers = require 'trinity.search.schedulers'
local search = require 'trinity.search'
local util = require 'trinity.base.util'

local function check_weights(owner, place, name, value)
  if type(value) == 'string' or util.class_of(value) == 'scheduler' then return end
  check.wrong(owner, place, name, value, 'a file of weights or what trinity.schedulers makes')
end

local declared = options_of.declare('trinity.LearnedListOptions', { extends = search.declared,
  help = 'Settings of methods.learned_list.',
  { 'weights', 'any', late = true, check = check_weights, as = 'string|trinity.Scheduler',
    otherwise = 'those that come with trinity', help = 'a file, or what trinity.schedulers makes' },
})

local function learned_list(problem, options)
  options = search.options('learned_list', declared, options)
  local scheduler = options.weights or schedulers.shipped
  if type(scheduler) == 'string' then scheduler = schedulers.load(scheduler) end
  return (scheduler:construct(problem))
end

return function(methods)
  methods.register('learned_list', learned_list, { help = 'list scheduling by learned weights, without a simulation',
    deterministic = true, options = declared })
end
