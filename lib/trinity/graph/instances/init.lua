-- Research formats: networks with measured times, in the files of other projects.
--
-- A reader is a module: `format`, the name; `whole_step`, whether a file holds a whole step; and read(content, name,
-- place), which returns an engine's graph called `name` and, where a pipeline planner can cut the network, a function
-- that returns what trinity.pipeline needs: the table of core.pipeline_network and what the file says about it.
-- `content` is a text, or the value of a JSON file. A reader raises errors without a position; the file's name and,
-- where it keeps `place.line` up to date, the line are added here.

local core = require 'trinity.core'
local dnn_partitioning = require 'trinity.graph.instances.dnn_partitioning'
local doppler = require 'trinity.graph.instances.doppler'
local json = require 'trinity.base.json'
local pipedream = require 'trinity.graph.instances.pipedream'
local piper = require 'trinity.graph.instances.piper'
local util = require 'trinity.base.util'

local instances = {}

-- Fields of a JSON file that only files of these readers have.
local marks = { maxFPGAs = dnn_partitioning, maxSizePerFPGA = dnn_partitioning, maxDevices = piper,
  maxMemoryPerDevice = piper, mbsInBatch = piper }

-- Returns the reader of a JSON text and its value, or nil where the file is a graph of trinity.
local function reader_of_json(text, path)
  local marked = util.find(util.sorted_keys(marks), function(mark) return text:find(mark, 1, true) ~= nil end)
  if not marked and text:find('"format"', 1, true) then return nil end
  local ok, value = pcall(json.decode, text, path)
  if not ok then util.fail_as(value) end
  if type(value) == 'table' and value.format ~= nil then return nil end
  for mark, reader in util.sorted_pairs(marks) do
    if type(value) == 'table' and value[mark] ~= nil then return reader, value end
  end
  util.fail('%s: unknown JSON format: expected "format": "trinity.graph", a dnn-partitioning instance (maxFPGAs) or a '
    .. 'Piper instance (maxMemoryPerDevice)', util.shortened(path))
end

-- By the ending of a file: a function of text and path that returns the reader and the content for it.
local choose = {
  json = reader_of_json,
  txt = function(text) return doppler.is(text) and doppler or pipedream, text end,
}

--- Returns whether there are readers for files of an ending.
function instances.reads(ending) return choose[ending] ~= nil end

--- Reads the text of a file. Returns the reader, the engine's graph and the function of the network to be cut, or nil
--- for a graph of trinity. Raises one error for a text that it cannot read: file, line or field, expected and given
--- value.
function instances.parse(text, path)
  local reader, content = choose[path:match '%.(%w+)$'](text, path)
  if not reader then return nil end
  local place, name = {}, path:match '[^/]*$':match '^[^.]*'
  local ok, made, network = pcall(reader.read, content, name, place)
  if ok then return reader, made, network end
  if core.stop_requested() then error(made, 0) end
  util.fail('%s%s: %s', util.shortened(path), place.line and ':' .. place.line or '',
    (util.plain(made):gsub('^builder:[%w_]+: ', '')))
end

--- The same for a file.
function instances.read(path) return instances.parse(util.read_file(path), path) end

return instances
