-- Exports plans to files of other programs and reads such files: a table of formats, with one module per format.
--
-- A format is a table: `name`; `writes` and `reads`, texts about the files if it can; `of`, the program and its
-- version; `write(outline, options)`, which returns a list of files { name =, text = } and a list of settings that they
-- cannot represent. `readers` has files of other programs that are read as graphs.

local check = require 'trinity.base.check'
local options_of = require 'trinity.base.options'
local outline = require 'trinity.formats.outline'
local progress = require 'trinity.base.progress'
local util = require 'trinity.base.util'

---@class trinity.FormatsModule
local formats = {}

---@class trinity.ExportedFile
---@field name string file name
---@field text string

local writers = {}
for _, name in ipairs { 'accelerate', 'chakra', 'deepspeed', 'megatron', 'pytorch_schedule', 'rank_file',
  'torchtitan' } do
  writers[name] = require('trinity.formats.' .. name)
end

-- Files from which networks and problems are read, recognized by ending and content (trinity.model and others).
local readers = {
  { 'onnx', 'a network, .onnx', 'ONNX opset 1 to 17, later ones with shapes' },
  { 'pt2', 'an exported program, .pt2', 'PyTorch 2.13.0 (schema 8)' },
  { 'config.json', "a decoder, its config.json", 'transformers 5.23.0' },
  { 'json', "trinity's graph, .json", 'trinity' },
  { 'dnn-partitioning', 'a network with times, .json', 'dnn-partitioning' },
  { 'piper', 'a network with times, .json', 'Piper' },
  { 'pipedream', 'a network with times, .txt', 'PipeDream, DAPPLE' },
  { 'doppler', 'a network with times, .txt', 'Doppler' },
}

--- Returns the names of the export formats, sorted. Example: `trinity.formats.names()[1]`
---@return string[]
function formats.names() return util.sorted_keys(writers) end

local words = options_of.words('trinity.ExportFormat', util.sorted_keys(writers))

local declared = options_of.declare('trinity.ExportOptions', { help = 'Options of strategy:export.',
  { 'format', words, needed = true, help = "name of the format ('trinity help formats' lists them)" },
  { 'folder', 'string', help = 'write the files to this folder; otherwise a single file is returned as text' },
  { 'lossless', 'boolean', false, help = 'raise an error if the format cannot represent the whole strategy, instead '
    .. 'of a warning' },
  { 'device_names', 'table', as = 'string[]', otherwise = 'numbers from 0',
    help = 'accelerate: names of devices' },
})

local function make_files(owner, strategy, options)
  check.object(owner, 1, 'strategy', strategy, 'strategy')
  local given = declared:read(owner, 2, 'options', options)
  local files, unspoken = writers[given.format].write(outline.of(strategy), given)
  if given.lossless and #unspoken > 0 then
    util.fail('export: %s cannot represent: %s (required by lossless)', given.format, table.concat(unspoken, '; '))
  end
  return files, unspoken
end

--- Returns the files of a strategy in a format, without writing them, and the settings that they cannot represent.
--- Example: `trinity.formats.files(strategy, { format = 'megatron' })[1].text`
---@param strategy trinity.Strategy
---@param options trinity.ExportOptions
---@return trinity.ExportedFile[] files
---@return string[] lost
function formats.files(strategy, options) return make_files('formats.files', strategy, options) end

local function write_files(folder, files)
  local paths = {}
  for i, file in ipairs(files) do
    paths[i] = folder:gsub('/*$', '/') .. file.name
    util.write_file('strategy:export', paths[i], file.text)
  end
  return paths
end

--- Exports a strategy to the format of another program. Returns the text or, with `folder`, the paths of the written
--- files, and the settings that the format cannot represent, about which it also warns. Example:
--- `trinity.formats.export(strategy, { format = 'megatron' })`
---@param strategy trinity.Strategy
---@param options trinity.ExportOptions
---@return string|string[] text_or_paths
---@return string[] lost
function formats.export(strategy, options)
  local files, unspoken = make_files('strategy:export', strategy, options)
  if not options.folder and #files > 1 then
    util.fail('export: %s: expected a folder for the %d files (%s and others), got none; use option folder '
      .. '(--output-dir)',
      options.format, #files, files[1].name)
  end
  for _, text in ipairs(unspoken) do
    progress.warn(('export: %s cannot represent %s'):format(options.format, text))
  end
  if not options.folder then return files[1].text, unspoken end
  return write_files(options.folder, files), unspoken
end

--- Returns rows { name, content, program } of all formats: written ones, and read ones. Example: `local written, read =
--- trinity.formats.table()`
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
