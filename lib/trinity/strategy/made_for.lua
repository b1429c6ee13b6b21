-- The problem that a strategy was made for, stored in its file (field made_for): how to rebuild its graph and cluster,
-- samples per micro-batch and step, simulation rules and custom costs. A file is only evaluated on another problem if
-- the user asks for it.

local check = require 'trinity.base.check'
local json = require 'trinity.base.json'
local model = require 'trinity.graph.model'
local parallelism = require 'trinity.strategy.parallelism'
local util = require 'trinity.base.util'

local made_for = {}

--- Fields and their types. model, options: of trinity.model; cluster, cluster_options: of trinity.cluster; cost: a CSV
--- file, cost_fingerprint identifies the times of any custom cost model.
local known = { model = 'string', options = 'table', micro_batch = 'number', global_batch = 'number',
  cluster = 'string', cluster_options = 'table', rules = 'string', cost = 'string', cost_fingerprint = 'string' }

--- Returns simulation rules as text: their name, or the deviations by name.
function made_for.rules_text(rules)
  if type(rules) == 'string' then return rules end
  local parts = {}
  for key, value in util.sorted_pairs(rules) do parts[#parts + 1] = key .. '=' .. tostring(value) end
  return table.concat(parts, ' ')
end

--- Flattens options to scalars by name, 'outer.inner' for nested tables; returns nil if a file cannot store them.
local function scalars(options)
  local flat = {}
  for name, value in util.sorted_pairs(options) do
    for inner, entry in util.sorted_pairs(type(value) == 'table' and value or { [''] = value }) do
      if type(entry) ~= 'number' and type(entry) ~= 'boolean' and type(entry) ~= 'string' then return nil end
      flat[inner == '' and name or ('%s.%s'):format(name, inner)] = entry
    end
  end
  return next(flat) ~= nil and flat or {}
end

--- Reverses scalars().
local function nested(flat)
  local options = {}
  for name, value in util.sorted_pairs(flat) do
    local outer, inner = name:match '^([^.]+)%.(.+)$'
    if outer then
      options[outer] = options[outer] or {}
      options[outer][inner] = value
    else
      options[name] = value
    end
  end
  return options
end

local function filled(options) return options and next(options) ~= nil and options or nil end

--- Returns the made_for fields of a plan of a problem.
function made_for.of(problem, plan)
  local parts = type(plan) == 'table' and plan or problem.default_schedule or {}
  local replicas = parallelism.is(plan) and plan.mesh.data or 1
  local graph, cluster = model.recipe(problem.graph), model.recipe(problem.cluster)
  local options = graph and scalars(graph.options)
  local micro_batch = problem.graph.batch_size > 0 and problem.graph.batch_size or nil
  return { model = options and graph.name, options = filled(options), micro_batch = micro_batch,
    global_batch = micro_batch and micro_batch * (parts.micro_batches or 1) * replicas,
    cluster = cluster and cluster.name, cluster_options = cluster and filled(scalars(cluster.options)),
    rules = made_for.rules_text(problem.rules),
    cost = type(problem.cost) == 'string' and problem.cost or nil,
    cost_fingerprint = problem.handle:cost_fingerprint() }
end

--- Reads the made_for fields of a file and its version (version 2 has none); `options` are options of trinity.model.
function made_for.read(path)
  local file = json.decode(util.read_file(path), path)
  if type(file) ~= 'table' or file.format ~= 'trinity-strategy' then
    local got = type(file) ~= 'table' and util.describe(file)
      or file.model_type ~= nil and 'a Hugging Face config'
      or file.format == nil and "a table without 'format'" or 'a table with format = ' .. util.describe(file.format)
    util.fail("%s: expected a strategy that trinity saved (field format = 'trinity-strategy'), got %s; "
      .. "'trinity plan ... --output FILE' writes one", path, got)
  end
  local fields, names = file.made_for, {}
  for _, part in ipairs { 'graph', 'cluster' } do
    local about = type(file[part]) == 'table' and file[part] or {}
    names[part] = type(about.name) == 'string' and about.name or nil
    names[part .. '_fingerprint'] = about.fingerprint
  end
  if fields == nil then return {}, file.version, names end
  check.fields(path .. ': made_for', check.argument(path, 'field', 'made_for', fields, 'table'), known)
  return util.merged(fields, { options = nested(fields.options or {}) }), file.version, names
end

--- Returns what load() returns: the network of a saved strategy, whose model is looked for from the working directory.
function made_for.network(path, name, load)
  local ok, result = pcall(load)
  if ok then return result end
  if util.unplaced(tostring(result)):find '^no model ' then
    util.fail('%s: it was made for model %s, which does not exist in this directory; give its path as --model, or '
      .. 'change the directory', util.shortened(path), util.quoted(name))
  end
  error(result, 0)
end

local function batch_text(fields)
  if not fields.micro_batch then return '' end
  return (', micro-batch %g of a global batch of %g'):format(fields.micro_batch, fields.global_batch)
end

--- Returns a text: 'gpt2, micro-batch 4 of a global batch of 32, on dgx_a100x1'.
function made_for.text(fields, graph_name, cluster_name)
  return ('%s%s, on %s'):format(fields.model or graph_name or 'a network', batch_text(fields),
    fields.cluster or cluster_name or 'a cluster')
end

--- Returns how a problem differs from the one that a file was made for, or nil if it does not. loaded: made_for,
--- version, notes, same_graph and same_cluster of problem.handle:from_json.
function made_for.difference(problem, loaded)
  local of, differ = loaded.made_for, {}
  local function note(same, what) if not same then differ[#differ + 1] = what end end
  local graph, batch = problem.graph, problem.graph.batch_size
  if of.micro_batch and batch > 0 and of.micro_batch ~= batch then
    note(false, ('a micro-batch of %g'):format(batch))
  else
    note(loaded.same_graph, ("another network ('%s')"):format(graph.name))
  end
  note(loaded.same_cluster, ("another cluster ('%s')"):format(problem.cluster.name))
  local rules = of.rules or loaded.notes.simulator_rules
  local here = made_for.rules_text(problem.rules)
  note(rules == nil or rules == here, ("rules '%s' instead of '%s'"):format(here, tostring(rules)))
  note(loaded.version < 3 or of.cost_fingerprint == problem.handle:cost_fingerprint(), 'other operator costs')
  return #differ > 0 and table.concat(differ, ' and ') or nil
end

--- Does the same for a file that the engine refuses for this problem, as far as it can be read.
function made_for.difference_of_file(problem, path)
  local ok, fields, _, names = pcall(made_for.read, path)
  if not ok then return nil end
  return made_for.difference(problem, { made_for = fields, version = 2, notes = {},
    same_graph = names.graph_fingerprint == problem.graph.fingerprint,
    same_cluster = names.cluster_fingerprint == model.handle_for(problem.graph, problem.cluster):fingerprint() })
end

--- Returns a text if this program simulates another step time than the file has, or nil.
function made_for.changed(loaded, step_time_s)
  local saved_s = tonumber(loaded.notes.step_time_s)
  if not saved_s or saved_s == step_time_s then return nil end
  return ('a version of trinity that predicts %.10g s instead of %.10g s for it'):format(step_time_s, saved_s)
end

return made_for
