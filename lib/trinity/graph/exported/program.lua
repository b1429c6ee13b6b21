-- The graph in an archive of torch.export.save (PyTorch 2.9 and later, torch/_export/serde/schema.py, schema version
-- 8): its file model.json, in the folder models, has tensors, nodes and the roles of inputs.

local archive = require 'trinity.graph.exported.archive'
local json = require 'trinity.base.json'
local util = require 'trinity.base.util'

local program = {}

local major_version = 8

-- torch/_export/serde/schema.py, ScalarType.
local dtypes = { 'uint8', 'int8', 'int16', 'int32', 'int64', 'float16', 'float32', 'float64', [12] = 'bool',
  [13] = 'bfloat16', [28] = 'int16' }

local function fail(path, ...)
  util.fail('%s: models/model.json: %s', util.shortened(path), (...):format(select(2, ...)))
end

local function table_in(path, where, value)
  if type(value) ~= 'table' then fail(path, '%s: expected an object, got %s', where, util.describe(value)) end
  return value
end

local function list_in(path, where, value)
  if type(value) ~= 'table' or #value == 0 and next(value) ~= nil then
    fail(path, '%s: expected a list, got %s', where, type(value) == 'table' and 'an object' or util.describe(value))
  end
  return value
end

--- Returns a size: a number, or the example value of a symbolic size.
local function size_of(path, name, size)
  local value = type(size) == 'table' and (size.as_int
    or type(size.as_expr) == 'table' and type(size.as_expr.hint) == 'table' and size.as_expr.hint.as_int)
  if type(value) ~= 'number' or value < 0 or value % 1 ~= 0 or value > 2 ^ 40 then
    fail(path, "tensor '%s': expected sizes that are numbers or have an example, got %s", name,
      util.describe(value or size))
  end
  return value
end

local function tensor_of(path, name, meta)
  table_in(path, ("tensor '%s'"):format(name), meta)
  local shape = util.map(list_in(path, ("tensor '%s': field 'sizes'"):format(name), meta.sizes), function(size)
    return size_of(path, name, size)
  end)
  if type(meta.dtype) ~= 'number' then
    fail(path, "tensor '%s': field 'dtype': expected a number, got %s", name, util.describe(meta.dtype))
  end
  return { name = name, shape = shape, dtype = dtypes[meta.dtype] or 'float32', odd = dtypes[meta.dtype] == nil,
    floating = (meta.dtype >= 6 and meta.dtype <= 11) or meta.dtype == 13 }
end

--- Returns the names of tensors in an argument (none, one or several), or the value of another argument.
local function read_argument(argument)
  if type(argument) ~= 'table' then return {}, nil end
  local function name_of(value) return type(value) == 'table' and type(value.name) == 'string' and value.name or nil end
  if argument.as_tensor then return { name_of(argument.as_tensor) } end
  local optional = argument.as_optional_tensor
  if optional then return { name_of(type(optional) == 'table' and optional.as_tensor) } end
  local list = argument.as_tensors or argument.as_optional_tensors
  if type(list) == 'table' then
    local names = {}
    for _, one in ipairs(list) do
      names[#names + 1] = name_of(type(one) == 'table' and one.as_tensor or one)
    end
    return names
  end
  for _, key in ipairs { 'as_int', 'as_ints', 'as_float', 'as_floats', 'as_bool', 'as_string' } do
    if argument[key] ~= nil then return {}, argument[key] end
  end
  return {}, nil
end

--- Returns the path of the innermost module of a node, from "key,path,class;key,path,class"; nil for the root.
local function module_of(node)
  local stack = type(node.metadata) == 'table' and node.metadata.nn_module_stack
  local last
  for item in (type(stack) == 'string' and stack or ''):gmatch '[^;]+' do
    last = item:match '^[^,]*,(.*),[^,]*$'
    if not last then return nil end
  end
  return last ~= '' and last or nil
end

local function node_of(path, n, node)
  local where = ('node %d'):format(n - 1)
  table_in(path, where, node)
  if type(node.target) ~= 'string' then
    fail(path, "%s: field 'target': expected a name, got %s", where, util.describe(node.target))
  end
  local read = { target = node.target, operator = node.target:match '([%w_]+)%.[%w_]+$' or node.target:match '[%w_]+$'
    or node.target, name = type(node.name) == 'string' and node.name or ('node_%d'):format(n), tensors = {},
    by_name = {}, values = {}, outputs = {} }
  read.module = module_of(node)
  for _, input in ipairs(list_in(path, where .. ": field 'inputs'", node.inputs)) do
    local names, value = read_argument(type(input) == 'table' and input.arg)
    local key = type(input) == 'table' and input.name or ''
    read.values[key] = value
    for _, name in ipairs(names) do
      read.tensors[#read.tensors + 1] = name
      read.by_name[key] = read.by_name[key] or name
    end
  end
  for _, output in ipairs(list_in(path, where .. ": field 'outputs'", node.outputs)) do
    for _, name in ipairs((read_argument(output))) do read.outputs[#read.outputs + 1] = name end
  end
  return read
end

--- Returns the role of a graph input: its tensor, and its weight or buffer.
local function input_of(specification)
  for kind, field in util.sorted_pairs { parameter = 'parameter_name', buffer = 'buffer_name',
    tensor_constant = 'tensor_constant_name', user_input = false } do
    local given = specification[kind]
    if type(given) == 'table' and type(given.arg) == 'table' then
      local name = given.arg.name or type(given.arg.as_tensor) == 'table' and given.arg.as_tensor.name
      local own = field and given[field] or name
      return { kind = kind, tensor = type(name) == 'string' and name or nil,
        name = type(own) == 'string' and own or nil }
    end
  end
  return { kind = 'other' }
end

--- Checks that every tensor is made once, and that outputs of the program are made.
local function check_made(path, made)
  local known = {}
  for _, input in ipairs(made.inputs) do
    if input.tensor then known[input.tensor] = true end
  end
  for n, node in ipairs(made.nodes) do
    for _, name in ipairs(node.outputs) do
      if known[name] then fail(path, "node %d: expected a new tensor, got '%s', which exists already", n - 1, name) end
      known[name] = true
    end
  end
  for k, name in ipairs(made.outputs) do
    if not known[name] then fail(path, "field 'outputs': %d: expected a tensor of a node, got '%s'", k - 1, name) end
  end
end

--- Reads the graph of an archive: { path, torch_version, tensors = by name { name, shape, dtype, floating, odd },
--- inputs = { kind, tensor, name } each, outputs = names, nodes = in their order { target, operator, name, module,
--- tensors, by_name, values, outputs } }. Errors name the file and the position.
function program.read(path)
  local opened, read = archive.open(path)
  local text
  for _, name in ipairs(opened.names) do
    if name:match '/models/[^/]*%.json$' then text = read(name) break end
  end
  if not text then
    util.fail('%s: expected an archive of torch.export.save with models/model.json, which PyTorch 2.9 and later write',
      util.shortened(path))
  end
  local whole = table_in(path, 'the file', json.decode(text, util.shortened(path) .. ': models/model.json'))
  local version = type(whole.schema_version) == 'table' and whole.schema_version.major
  if version ~= major_version then
    fail(path, "field 'schema_version': expected %d, got %s", major_version, util.describe(version))
  end
  local module = table_in(path, "field 'graph_module'", whole.graph_module)
  local graph = table_in(path, "field 'graph'", module.graph)
  local made = { path = path, torch_version = tostring(whole.torch_version), tensors = {}, inputs = {}, outputs = {},
    nodes = {} }
  for name, meta in util.sorted_pairs(table_in(path, "field 'tensor_values'", graph.tensor_values)) do
    made.tensors[name] = tensor_of(path, name, meta)
  end
  local signature = table_in(path, "field 'signature'", module.signature)
  for i, specification in ipairs(list_in(path, "field 'input_specs'", signature.input_specs)) do
    made.inputs[i] = input_of(table_in(path, ('input %d'):format(i - 1), specification))
  end
  for n, node in ipairs(list_in(path, "field 'nodes'", graph.nodes)) do made.nodes[n] = node_of(path, n, node) end
  for _, output in ipairs(type(graph.outputs) == 'table' and graph.outputs or {}) do
    for _, name in ipairs((read_argument(output))) do made.outputs[#made.outputs + 1] = name end
  end
  check_made(path, made)
  return made
end

return program
