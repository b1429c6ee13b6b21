-- Checkpoints of searches outside of a run: in a file, after every step.

local checkpoints = require 'trinity.runs.checkpoints'
local core = require 'trinity.core'
local hooks = require 'trinity.base.hooks'

local kept = {}

local function none() end

--- A record for a search in place of the one of a run (lib/trinity/runs/search.lua).
function kept.record(path, resumes)
  local folder = { write = none, try = function(_, body, name)
    body(name)
    return true
  end }
  return { run = { folder = folder }, path = '', resume = resumes and path or nil, flush = none, step = none,
    learned = none, tell_resumed = none, checkpoint_path = function() return path end,
    write_checkpoint = function(_, text) core.write_file(path, text) end }
end

--- Returns what search() gives, whose checkpoints are at `path`. resumes: it begins with the one that is there.
function kept.search(path, search, resumes)
  local searches, least_s, share = hooks.searches, checkpoints.least_s, checkpoints.share
  checkpoints.least_s, checkpoints.share = 0, math.huge
  hooks.searches = setmetatable({ attach = function() return kept.record(path, resumes), none end },
    { __index = searches })
  local ok, found = pcall(search)
  hooks.searches, checkpoints.least_s, checkpoints.share = searches, least_s, share
  return ok and found or error(found, 0)
end

return kept
