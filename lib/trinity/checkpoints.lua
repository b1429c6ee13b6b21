-- Checkpoints of searches: strategies as problem:load() reads them, whose notes hold what the search goes on from.
-- A checkpoint replaces the one before as a whole, so that a crash at any moment leaves one that is good.

local check = require 'trinity.check'
local core = require 'trinity.core'
local simulator = require 'trinity.simulator'
local util = require 'trinity.util'

local checkpoints = {}

local kind = 'trinity search checkpoint 1'

--- Numbers as text without loss.
function checkpoints.pack(list, count)
  local parts = {}
  for i = 1, count or #list do parts[i] = ('%.17g'):format(list[i]) end
  return table.concat(parts, ' ')
end

--- What pack() made, as a list.
function checkpoints.unpack(text)
  local list = {}
  for word in (text or ''):gmatch '%S+' do list[#list + 1] = tonumber(word) end
  return list
end

local point = { 'evaluations', 'mean_reward', 'best_reward', 'best_step_time_s' }

local function pack_curve(curve)
  local values = {}
  for _, entry in ipairs(curve) do
    for _, name in ipairs(point) do values[#values + 1] = entry[name] end
  end
  return checkpoints.pack(values)
end

local function unpack_curve(text)
  local curve, values = {}, checkpoints.unpack(text)
  for first = 1, #values, #point do
    local entry = {}
    for i, name in ipairs(point) do entry[name] = values[first + i - 1] end
    curve[#curve + 1] = entry
  end
  return curve
end

-- Options that may differ between a run and the run that goes on from it.
local free = { quiet = true, rescue = true, checkpoint = true, checkpoint_every = true, resume = true, seconds = true }

local function option_text(value)
  if type(value) ~= 'table' then return tostring(value) end
  local parts = {}
  for key, entry in util.sorted_pairs(value) do
    local text = type(entry) == 'cdata' and checkpoints.pack(entry) or tostring(entry)
    parts[#parts + 1] = ('%s=%s'):format(key, text)
  end
  return table.concat(parts, ' ')
end

local function option_texts(options)
  local texts = {}
  for key, value in util.sorted_pairs(options) do
    if not free[key] then texts[key] = option_text(value) end
  end
  return texts
end

--- Writes the search `self` with its best so far to `path`; `notes` are the method's own, text or numbers.
function checkpoints.write(path, self, notes)
  local all = { kind = kind, method = self.method, evaluations_so_far = self.evaluations, step = self.step,
    curve = pack_curve(self.curve) }
  for key, value in util.sorted_pairs(notes) do all['at_' .. key] = value end
  for key, text in util.sorted_pairs(option_texts(self.options)) do all['option_' .. key] = 'is ' .. text end
  core.write_file(path, self.problem:to_json(self.placement, all))
end

local function refuse(owner, path, message, ...)
  check.refuse(owner, 'option', 'resume', '%s: %s', path, message:format(...))
end

local function check_options(owner, path, options, notes)
  for key, text in util.sorted_pairs(option_texts(options)) do
    local was = (notes['option_' .. key] or 'is ?'):sub(4)
    if was ~= text then
      refuse(owner, path, "written with option '%s' = %s, this search has %s", key, util.shortened(was, 60),
        util.shortened(text, 60))
    end
  end
end

local function whole(text) return text and tonumber(text) and tonumber(text) >= 0 and tonumber(text) % 1 == 0 end

--- Brings the search `self` to where the checkpoint at `path` was written; returns the method's own notes as text.
function checkpoints.restore(owner, self, path)
  local problem, placement = self.problem, self.placement
  local ok, loaded = pcall(problem.handle.from_json, problem.handle, core.read_file(path), path, placement)
  if not ok then util.fail('%s: %s', owner, util.unplaced(tostring(loaded))) end
  local notes = loaded.notes
  if notes.kind ~= kind then refuse(owner, path, 'no checkpoint of a search') end
  if notes.method ~= self.method then refuse(owner, path, 'of method %s', util.quoted(notes.method or '?')) end
  if not loaded.same_graph or not loaded.same_cluster then
    refuse(owner, path, 'written for another %s', loaded.same_graph and 'cluster' or 'graph')
  end
  check_options(owner, path, self.options, notes)
  if not whole(notes.evaluations_so_far) or not whole(notes.step) then refuse(owner, path, 'counts are missing') end
  local metrics = simulator.run_batch(owner, problem.simulator, { placement })[1]
  self.best = { metrics = metrics, reward = problem:score(metrics) }
  self.evaluations, self.step = tonumber(notes.evaluations_so_far), tonumber(notes.step)
  self.curve = unpack_curve(notes.curve)
  local own = {}
  for key, value in util.sorted_pairs(notes) do
    local name = key:match '^at_(.*)$'
    if name then own[name] = value end
  end
  return own
end

return checkpoints
