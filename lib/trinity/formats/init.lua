-- Plans as files of other programs, and those files read: one table of formats, one room a format.
--
-- A format is a table: `name`; `writes` and `reads`, what it is in words where it does; `of`, the program and version
-- whose files these are; `write(outline, options)`, which returns a list of files { name =, text = } and a list of what
-- they do not say. Files of other programs that are read into graphs stand in `readers`.

local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local outline = require 'trinity.formats.outline'
local progress = require 'trinity.base.progress'
local util = require 'trinity.base.util'

---@class trinity.FormatsModule
---@since 0.1.0
local formats = {}

---@class trinity.ExportedFile
---@field name string of the file
---@field text string

local writers = {}
for _, name in ipairs { 'accelerate', 'autoparallel', 'chakra', 'deepspeed', 'megatron', 'pytorch_schedule',
  'torchtitan' } do
  writers[name] = require('trinity.formats.' .. name)
end

-- What networks and problems are read from: by the ending of a file and what stands in it (trinity.model and others).
local readers = {
  { 'onnx', 'a network, .onnx', 'ONNX opset 1 to 17, later ones with shapes' },
  { 'pt2', 'an exported program, .pt2', 'PyTorch 2.13.0 (schema 8)' },
  { 'config.json', "a decoder, its config.json", 'transformers 5.23.0' },
  { 'json', "trinity's graph, .json", 'trinity' },
  { 'dnn-partitioning', 'a network with times, .json', 'dnn-partitioning' },
  { 'piper', 'a network with times, .json', 'Piper' },
  { 'pipedream', 'a network with times, .txt', 'PipeDream, DAPPLE' },
  { 'doppler', 'a network with times, .txt', 'Doppler' },
  { 'kineto', "the profiler's trace of a step, .json and .json.gz (trinity.profile.trace)",
    'PyTorch 2.13.0, on a CPU' },
  { 'execution_trace', 'the same step without times, .json and .json.gz (with a kineto trace)', 'PyTorch 2.13.0' },
  { 'iopddl', 'a selection problem, .json and .json.gz (trinity study select)', 'IOPDDL contest' },
  { 'autoparallel', 'its integer program, .json and .json.gz (trinity study select)', 'AutoParallel a54c252' },
}

--- Names of the formats that plans are written in, sorted.
---@return string[]
function formats.names() return util.sorted_keys(writers) end

local words = options_of.words('trinity.ExportFormat', util.sorted_keys(writers))

local declared = options_of.declare('trinity.ExportOptions', { help = 'How a plan is written for another program.',
  { 'format', words, needed = true, help = "whose file ('trinity help formats' lists them)" },
  { 'folder', 'string', help = 'where the files go; otherwise a single one is returned as text' },
  { 'lossless', 'boolean', false, help = 'refuse what cannot be said, instead of naming it on standard error' },
  { 'cut_blocks', 'boolean', false, help = 'accelerate: layers may be on several devices' },
  { 'device_names', 'table', as = 'string[]', otherwise = 'numbers from 0',
    help = 'accelerate: what devices are called' },
  { 'nodes', 'string', help = 'autoparallel: the file of get_json(), whose nodes get placements' },
})

local function make_files(owner, strategy, options)
  check.object(owner, 1, 'strategy', strategy, 'strategy')
  local given = declared:read(owner, 2, 'options', options)
  local files, unspoken = writers[given.format].write(outline.of(strategy), given)
  if given.lossless and #unspoken > 0 then
    util.fail('export: %s: cannot say %s (lossless)', given.format, table.concat(unspoken, '; '))
  end
  return files, unspoken
end

--- The files of a plan in a format, and what they do not say. Nothing is written.
---@param strategy trinity.Strategy
---@param options trinity.ExportOptions
---@return trinity.ExportedFile[] files
---@return string[] unsaid
function formats.files(strategy, options) return make_files('formats.files', strategy, options) end

local function write_files(folder, files)
  local paths = {}
  for i, file in ipairs(files) do
    paths[i] = folder:gsub('/*$', '/') .. file.name
    util.write_file('strategy:export', paths[i], file.text)
  end
  return paths
end

--- Writes a plan as a file of another program: returns its text, or, with `folder`, the paths of the files that were
--- written there, and what they do not say, which is told on standard error, too.
---@param strategy trinity.Strategy
---@param options trinity.ExportOptions
---@return string|string[] text_or_paths
---@return string[] unsaid
function formats.export(strategy, options)
  local files, unspoken = make_files('strategy:export', strategy, options)
  if not options.folder and #files > 1 then
    util.fail('export: %s: %d files (%s and others), expected a folder for them (folder, or --out of a command)',
      options.format, #files, files[1].name)
  end
  for _, text in ipairs(unspoken) do
    progress.warn(('export: %s does not say %s'):format(options.format, text))
  end
  if not options.folder then return files[1].text, unspoken end
  return write_files(options.folder, files), unspoken
end

--- Rows { name, what is read or written, whose it is } of all formats: those that are written, and those read.
---@return string[][] written
---@return string[][] read
function formats.table()
  local written, read = {}, {}
  for _, name in ipairs(formats.names()) do
    local format = writers[name]
    written[#written + 1] = { name, format.writes, format.of }
    if format.reads then read[#read + 1] = { name, format.reads, format.of } end
  end
  for _, row in ipairs(readers) do read[#read + 1] = row end
  return written, read
end

return formats
