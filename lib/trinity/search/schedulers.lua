-- Learned list schedulers: weights that build a placement of a problem in one pass through its operators, without a
-- simulation (engine/search/construct/learned_list.h).

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local util = require 'trinity.base.util'

--- Learned list schedulers: weights that build placements without a price.
---@class trinity.SchedulersModule
---@since 0.1.0
---@field shipped string the file of weights that method learned_list takes by default
---@field terms string[] what speaks against a device for a unit, by name (engine/search/construct/learned_list.h)
---@field circumstances string[] what the weight of a term depends on, by name
local schedulers = {}

schedulers.shipped = core.home .. '/models/policies/schedulers.safetensors'
schedulers.terms, schedulers.circumstances = core.list_terms()

--- Weights that build placements: members, of which the one whose own schedule is the shortest counts.
---@class trinity.Scheduler
---@since 0.1.0
---@field notes table<string, string> of the file that it was loaded from: what it was trained on, and by which command
---@field members integer how many
local Scheduler = { __name = 'scheduler' }
Scheduler.__index = Scheduler

local function wrapped(handle, notes)
  return setmetatable({ handle = handle, notes = notes, members = #handle:members() }, Scheduler)
end

local bound = setmetatable({}, { __mode = 'k' }) -- by problem: the engine's

--- Builds a placement of a problem. Nothing is simulated: among members counts the schedule that is the shortest by its
--- own count, one device alone among them. Returns the placement and the seconds of that schedule.
---@param problem trinity.Problem
---@param member? integer of that one alone, from 1
---@return trinity.Placement
---@return number own_step_time_s
function Scheduler:construct(problem, member)
  check.object('scheduler:construct', 1, 'problem', problem, 'problem')
  if member ~= nil then check.integer('scheduler:construct', 2, 'member', member, 1, self.members) end
  bound[problem] = bound[problem] or core.list_scheduler(problem.handle)
  local placement = problem:placement()
  local own_step_time_s = bound[problem]:build(self.handle, member or 0, placement)
  return placement, own_step_time_s
end

--- The weights: a list a member, of every term those of its circumstances.
---@return number[][]
function Scheduler:weights() return self.handle:members() end

--- Writes the weights as safetensors, with notes: texts by name.
---@param path string
---@param notes? table<string, string>
function Scheduler:save(path, notes)
  check.argument('scheduler:save', 1, 'path', path, 'string')
  if notes ~= nil then check.argument('scheduler:save', 2, 'notes', notes, 'table') end
  self.handle:save(path, notes or self.notes)
end

--- Weights from a file, which `trinity train --learns schedulers` or scheduler:save wrote.
---@param path string
---@return trinity.Scheduler
function schedulers.load(path)
  check.argument('schedulers.load', 1, 'path', path, 'string')
  return wrapped(core.load_list_policy(path))
end

--- Weights of one's own: a list a member, of schedulers.terms in turn those of schedulers.circumstances. One member
--- with weight 1 on start and time, always, is scheduling by the earliest finish.
---@param members number[][]
---@return trinity.Scheduler
function schedulers.new(members)
  check.argument('schedulers.new', 1, 'members', members, 'table')
  for i, member in ipairs(members) do
    if type(member) ~= 'table' then
      check.refuse('schedulers.new', 1, 'members', 'member %d: expected a list of %d weights, got %s', i,
        #schedulers.terms * #schedulers.circumstances, util.describe(member))
    end
  end
  return wrapped(core.list_policy(members), {})
end

check.methods(Scheduler, 'trinity.Scheduler')
return schedulers
