-- `trinity serve`: requests of another program as lines of JSON on standard input, answers on standard output. What the
-- methods do: serve_methods.lua. Requests are { id, method, params }, answers { id, result } or { id, error }.

local check = require 'trinity.base.check'
local core = require 'trinity.core'
local json = require 'trinity.base.json'
local methods = require 'trinity.command.serve_methods'
local util = require 'trinity.base.util'

local serve = {}

-- Version of the protocol: the first number grows when a program of an earlier version may no longer work.
serve.schema_version = '1.0'

local types = { integer = 'integer', number = 'number', boolean = 'boolean', string = 'string', list = 'array',
  integers = 'array' }

-- A declaration of options (base/options.lua) as JSON Schema.
local function schema_of(declared)
  local properties, needed = {}, {}
  for _, entry in ipairs(declared.all) do
    local kind = entry[2]
    local property = { description = entry.help, default = entry.default, minimum = entry.least, maximum = entry.most,
      enum = entry.words and entry.words.list, type = entry.json or (type(kind) == 'string' and types[kind]) }
    if type(kind) == 'table' and kind.by_name then property = util.merged(schema_of(kind), property) end
    if property.type == nil and entry.words then property.type = 'string' end
    properties[entry.name] = property
    if entry.needed then needed[#needed + 1] = entry.name end
  end
  return { type = 'object', properties = next(properties) and properties or nil, additionalProperties = false,
    required = needed[1] and needed }
end

--- The protocol as a JSON Schema: versions, the parameters of every method, what it answers, error codes.
function serve.schema()
  local all = {}
  for name, method in util.sorted_pairs(methods.list) do
    all[name] = { description = method.help, params = schema_of(method.params), result = method.result }
  end
  return { ['$schema'] = 'https://json-schema.org/draft/2020-12/schema', title = 'trinity serve',
    version = serve.schema_version, request = { type = 'object', required = { 'method' }, properties = {
      id = { description = 'any value; the answer has it' }, method = { enum = util.sorted_keys(methods.list) },
      params = { type = 'object' } } },
    error = { type = 'object', required = { 'code', 'message' }, properties = { code = { enum = { 'parse_error',
      'invalid_request', 'unknown_method', 'invalid_params', 'limit_exceeded', 'interrupted' } },
      message = { type = 'string' }, field = { type = 'string' } } },
    methods = all }
end

-- An error of the protocol: raised by methods, or made of what the library raised.
local function error_of(raised)
  if type(raised) == 'table' and raised.code then return util.picked(raised, { 'code', 'message', 'field' }) end
  local message = util.unplaced(tostring(raised))
  if message:match 'interrupted$' then return { code = 'interrupted', message = message } end
  return { code = 'invalid_params', message = message,
    field = message:match "option '([%w_.%[%]]+)'" or message:match "argument %d+ %('([%w_]+)'%)"
      or message:match "field '([%w_]+)'" }
end

local function answer(session, line)
  if #line > session.limits.max_line_bytes then
    return { error = { code = 'limit_exceeded', message = ('a request of %d bytes, expected at most %d'):format(#line,
      session.limits.max_line_bytes) } }
  end
  local ok, request = pcall(json.decode, line, 'request')
  if not ok then return { error = { code = 'parse_error', message = tostring(request) } } end
  if type(request) ~= 'table' or type(request.method) ~= 'string' then
    return { id = type(request) == 'table' and request.id or nil, error = { code = 'invalid_request',
      message = 'expected an object { "id": ..., "method": "NAME", "params": { ... } }' } }
  end
  local method, params = methods.list[request.method], request.params
  if not method then
    return { id = request.id, error = { code = 'unknown_method',
      message = 'no method ' .. util.unknown(request.method, util.sorted_keys(methods.list)) } }
  end
  local limited = session.limits.max_seconds < math.huge
  if limited then core.begin_limit(session.limits.max_seconds) end
  local done, result = pcall(function()
    if params ~= nil then check.argument(request.method, 'field', 'params', params, 'table') end
    return method.run(session, method.params:read(request.method, 'field', 'params', params or {}))
  end)
  local late = limited and core.end_limit()
  if done then return { id = request.id, result = result } end
  if late and tostring(result):match 'interrupted$' then
    return { id = request.id, error = { code = 'limit_exceeded', message = ('%s did not end within %g s'):format(
      request.method, session.limits.max_seconds) } }
  end
  return { id = request.id, error = error_of(result) }
end

--- Answers requests until standard input ends. limits: max_line_bytes, max_placements, max_problems, max_envs,
--- max_seconds; defaults: what a request's problem is where it does not say.
function serve.run(limits, defaults)
  local session = { limits = limits, defaults = defaults, problems = {}, order = {}, envs = {}, env_count = 0,
    schema = serve.schema_version }
  io.stdout:setvbuf 'full'
  for line in io.stdin:lines() do
    if line:match '%S' then
      local given = answer(session, line)
      local ok, text = pcall(json.encode, given)
      if not ok then text = json.encode { id = given.id, error = error_of(text) } end
      io.stdout:write(text, '\n')
      io.stdout:flush()
      if core.stop_requested() then break end
    end
  end
end

return serve
