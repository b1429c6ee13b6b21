-- Graphs from files of other programs: ONNX, PyTorch's exported programs, and research formats. Warnings
-- about a file go to standard error.

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local graph = require 'trinity.graph'
local hooks = require 'trinity.base.hooks'
local progress = require 'trinity.base.progress'
local util = require 'trinity.base.util'

local model_files = {}

--- File name endings of model files, as a text.
model_files.endings = '.lua, .onnx, .pt2 (torch.export.save), .et (Chakra), .json (own, dnn-partitioning, Piper, '
  .. 'config.json of decoders), .txt (PipeDream, DAPPLE profile, Doppler)'

local warned = {} -- warnings that were printed: a search may read a file once per micro-batch size

--- Prints warnings about a file to standard error, each once.
function model_files.warn(path, warnings)
  for _, warning in ipairs(warnings) do
    local text = ('%s: %s'):format(path, warning)
    if not warned[text] then progress.warn(text) end
    warned[text] = true
  end
end

-- Returns an engine's graph and what is known about its file.
local function read_onnx(path, rest, shared)
  local made, about = core.read_onnx(path, { open_dimension = rest.batch_size or 1,
    dimensions = shared.dimensions or {}, copy_shared_vectors = shared.copy_shared_vectors })
  about.format, about.whole_step = 'ONNX', false
  return made, about
end

local function read_other(path)
  local reader, made = require('trinity.graph.instances').read(path)
  reader = reader or { format = 'trinity graph', whole_step = false }
  return made or core.read_graph(path), { format = reader.format, whole_step = reader.whole_step, warnings = {},
    unknown_types = {} }
end

--- Returns the graph of a file of another program; batch_size and dimensions set the symbolic sizes of an ONNX file.
--- Prints warnings to standard error.
function model_files.import(name, rest, shared)
  check.fields(('trinity.model: model file %s'):format(name), rest, { batch_size = { 'integer', 1, 2 ^ 40 } })
  local ok, graph_handle, about = pcall(name:find '%.onnx$' and read_onnx or read_other, name, rest, shared)
  if not ok and tostring(graph_handle):find("got 'trinity-strategy'", 1, true) then
    util.fail("%s: expected a model, got a strategy ('trinity-strategy'); use --strategy %s", util.shortened(name),
      name)
  end
  if not ok then util.fail_as(graph_handle) end
  model_files.warn(name, about.warnings)
  local imported = graph.wrap(graph_handle)
  imported.source = about
  if rest.batch_size and imported.batch_size ~= rest.batch_size and not shared.is_default_batch then
    util.fail("trinity.model: option 'batch_size': %s has fixed sizes (%s), got %d; omit the option", name,
      imported.batch_size > 0 and 'batch ' .. imported.batch_size or 'no batch is stated', rest.batch_size)
  end
  return imported
end

--- Returns the graph of a program that PyTorch exported.
function model_files.exported(path, rest)
  check.fields(('trinity.model: model file %s'):format(path), rest, {})
  local made = require('trinity.graph.exported').graph(path, graph.new)
  model_files.warn(path, made.source.warnings)
  return made
end

--- Returns the graph of Chakra traces of all ranks.
function model_files.chakra(path, rest)
  check.fields(('trinity.model: model file %s'):format(path), rest, {})
  return hooks.read_chakra(path, graph.new)
end

return model_files
