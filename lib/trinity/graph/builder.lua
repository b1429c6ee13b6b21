-- Graph builders: operators and the tensors between them, added in any order.

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local fields = require 'trinity.base.fields'
local printed = require 'trinity.base.printed'
local util = require 'trinity.base.util'

local tensor = printed.as('tensor', function(self)
  return ('%s [%s]'):format(self.dtype, table.concat(self.shape or {}, ', '))
end)

local function output_tensor(number, about)
  local made = tensor { number = number, shape = about.shape, dtype = about.dtype or 'float32' }
  return fields.result('trinity.Tensor', made)
end

return function(wrap)
  ---@class trinity.Builder
  local Builder = { __name = 'graph builder' }
  Builder.__index = Builder

  --- Adds an operator and returns its output tensors. Raises an error for a wrong field or a name that exists already.
  --- Example: `local y = builder:add { name = 'y', type = 'Relu', inputs = { x }, outputs = { { shape = { 4 } } } }`
  ---@param spec trinity.OperatorSpec
  ---@return trinity.Tensor ...
  function Builder:add(spec)
    check.argument('builder:add', 1, 'spec', spec, 'table')
    local first = self.handle:add_operator(spec)
    if not first then return end
    if not spec.outputs[2] then return output_tensor(first, spec.outputs[1]) end
    return unpack(util.map(spec.outputs, function(about, i) return output_tensor(first + i - 1, about) end))
  end

  --- Adds an operator with a given time to a graph made by hand. Returns its name, for add_edge(). Example:
  --- `builder:add_operator { name = 'c', time_s = 1e-3 }`
  ---@param spec trinity.HandOperatorSpec
  ---@return string name
  function Builder:add_operator(spec)
    check.argument('builder:add_operator', 1, 'spec', spec, 'table')
    self.handle:add_operator(spec, true)
    return spec.name
  end

  -- Converts an end of an edge for the engine: an operator's name, or a tensor's number.
  local function edge_end(place, name, value)
    if type(value) == 'string' then return value end
    if type(value) == 'table' and type(value.number) == 'number' then return value.number end
    check.wrong('builder:add_edge', place, name, value, "an operator's name or a tensor")
  end

  --- Makes operator `to` read a new output of operator `from` with `size_bytes`. If `from` is a tensor (returned by
  --- add() or add_edge()), `to` reads that tensor. Readers that share a tensor get it in one transfer per device.
  --- Example: `builder:add_edge('a', 'b', 4096)`
  ---@param from string|trinity.Tensor
  ---@param to string|trinity.Tensor
  ---@param size_bytes? number bytes; optional if `from` is a tensor
  ---@return trinity.Tensor
  function Builder:add_edge(from, to, size_bytes)
    local tail, head = edge_end(1, 'from', from), edge_end(2, 'to', to)
    local number = self.handle:add_edge(tail, head, size_bytes)
    return type(from) == 'table' and from or { number = number, dtype = 'float32' }
  end

  --- Joins operators into a collective, which they run together without occupying their devices. Kinds and algorithms:
  --- see cluster:collective. Example: `builder:collective { name = 'all', kind = 'all_reduce', bytes = 8, members = {
  --- 'sum' } }`
  ---@param spec trinity.CollectiveSpec
  function Builder:collective(spec)
    check.argument('builder:collective', 1, 'spec', spec, 'table')
    self.handle:collective(spec)
  end

  --- Returns the finished graph; the builder is empty afterwards. Raises an error if the graph has a cycle. Example:
  --- `local graph = builder:build()`
  ---@return trinity.Graph
  function Builder:build() return wrap(self.handle:build()) end

  check.methods(Builder, 'trinity.Builder', '', 'builder')

  -- trinity.graph.layers has layers, which are built on this class.
  return function(options)
    check.argument('trinity.graph.new', 1, 'options', options, 'table')
    check.fields('trinity.graph.new', options, { name = 'string' })
    check.argument('trinity.graph.new', 'option', 'name', options.name, 'string')
    return setmetatable({ handle = core.graph_builder(options.name) }, Builder)
  end
end
