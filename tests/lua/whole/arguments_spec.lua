-- Every function that scripts can call, by its example in the reference, with every wrong kind of argument: one
-- clear error or a result. And every function that the engine binds, called as no script would, with values of every
-- kind at every place: a result or an error with a position. No call crashes, none leaks an object. With
-- TRACE=FILE in the environment the file names the call that a crash was in.

local core = require 'trinity.core'
local declarations = require 'trinity.command.declarations'
local trinity = require 'trinity'
local examples = dofile(root .. '/tests/lua/support/examples.lua')

examples.enter(temporary '.examples')
trinity.search.common.evaluations, trinity.search.common.quiet = 4, true -- what a call without options runs

local slowest_s = 2 -- until a call with a wrong argument is refused
local declared = declarations.read()

-- The Lua types that values of a declared type have; 'object' for a class with instances of its own.
local function lua_types(type_text)
  local set = {}
  for _, part in ipairs(declarations.alternatives((type_text:gsub('^%((.*)%)$', '%1')))) do
    local alias, base = declared.aliases[part], part:match '^[%a]+$'
    if alias and alias.words then set.string = true
    elseif alias then
      for name in trinity.system.sorted_pairs(lua_types(alias.type)) do set[name] = true end
    elseif part:match '^fun%(' or part == 'function' then set['function'] = true
    elseif part:match "^'" then set.string = true
    elseif part == 'any' or #part == 1 then set.any = true
    elseif part:match '%[%]$' or part:match '^table' or part:match '^{' then set.table = true
    elseif base then set[base] = true
    elseif declared.classes[part] and #declared.classes[part].methods > 0 then set[part] = true
    else set.table = true end
  end
  return set
end

local own_kind = {
  ['trinity.Graph'] = 'graph', ['trinity.Cluster'] = 'cluster', ['trinity.Problem'] = 'problem',
  ['trinity.Strategy'] = 'strategy', ['trinity.Placement'] = 'placement', ['trinity.Metrics'] = 'metrics',
  ['trinity.RandomStream'] = 'stream', ['trinity.TorchTensor'] = 'tensor',
}

-- All arrays have the same methods.
local array_classes = { ['trinity.Placement'] = true, ['trinity.DoubleArray'] = true, ['trinity.Int32View'] = true }

-- Whether a function may take the value for a parameter, so that success is right too.
local function may_take(types, label, value)
  local lua_type = type(value)
  if types.any or types[lua_type] then return true end
  if lua_type == 'number' and types.integer then return value % 1 == 0 end
  for class, kind in trinity.system.sorted_pairs(own_kind) do
    if types[class] and kind == label then return true end
  end
  return false
end

local calls, refused = 0, 0
local shown = tonumber(os.getenv 'FAULTS') or 20
local faults = {}

-- Faults of one parameter resemble each other: the first of each is reported.
local function fault(...)
  local text = (...):format(select(2, ...))
  local about = text:match '^[^=]* ='
  if not about or not faults[about] then faults[#faults + 1] = text end
  faults[about or ''] = true
end

local trace = os.getenv 'TRACE' and io.open(os.getenv 'TRACE', 'w')

-- Calls a function; nil or its error. The call stands in this file, so that messages begin with its line.
local function attempt(what, f, arguments, count)
  calls = calls + 1
  if trace then
    trace:seek 'set'
    trace:write(what, (' '):rep(80))
    trace:flush()
  end
  local start = os.clock() -- CPU time: others may work on this machine
  local ok, message = pcall(function()
    local first = f(unpack(arguments, 1, count))
    return first
  end)
  local seconds = os.clock() - start
  if seconds > slowest_s then fault('%s: took %.1f s', what, seconds) end
  if ok then return nil end -- right after all, such as the start of another process
  refused = refused + 1
  return message == nil and 'an error of nil' or message
end

-- The same of a function of scripts: what its error says.
local function message_of(what, f, arguments, count)
  local message = attempt(what, f, arguments, count)
  if message == nil then return nil end
  if type(message) == 'table' and message.usage then return message.message end -- of a command line: has no position
  message = type(message) == 'string' and message or ('error object of type ' .. type(message))
  local text = message:gsub('[%z\1-\31]', '?')
  if not message:find 'arguments_spec%.lua:%d+: ' then fault('%s: no position of the script: %s', what, text) end
  if message:find 'attempt to' or message:find 'bad argument' or message:find '/lib/trinity/' or message:find 'check failed' then
    fault('%s: an error from inside: %s', what, text)
  end
  if message:find '\n' then fault('%s: more than one line: %s', what, text) end
  if #message > 2200 then fault('%s: a message of %d bytes', what, #message) end -- the boundary cuts at 2048
  return message
end

local function names_argument(message, method, parameter)
  return message:find(("('%s')"):format(parameter.name), 1, true) and message:find(method.name, 1, true)
end

local names_files, tried_empty = { path = true, folder = true }, 0

local function try_parameter(class, method, i, values)
  local parameter, offset = method.parameters[i], method.separator == ':' and 1 or 0
  if parameter.name == '...' then return end
  local types, message = lua_types(parameter.type), nil
  for k = 0, #values do
    local label, value = 'nil', nil
    if k > 0 then label, value = values[k][1], values[k][2] end
    local f, arguments, count = examples.call(class, method, message)
    arguments[i + offset] = value
    local what = ('%s.%s: %s = %s'):format(class, method.name, parameter.name, label)
    message = message_of(what, f, arguments, count)
    local fine = k == 0 and parameter.optional or k > 0 and may_take(types, label, value)
    if not fine then
      if not message then fault('%s is taken', what)
      elseif not names_argument(message, method, parameter) then
        fault('%s: the message does not name the argument: %s', what, message)
      end
    end
    if label == 'empty string' and types.string and names_files[parameter.name] then
      tried_empty = tried_empty + 1
      local said = (message or ''):find("expected the name of a file or folder, got string ''", 1, true)
        or (message or ''):find(": '': cannot ", 1, true) -- of the engine
      if not said then fault('%s names no file: %s', what, tostring(message)) end
    end
  end
end

local function try_self(class, method, values)
  local message
  for k = 0, #values do
    local label, value = 'nil', nil
    if k > 0 then label, value = values[k][1], values[k][2] end
    local f, arguments, count = examples.call(class, method, message)
    local what = ('%s:%s: the object = %s'):format(class, method.name, label)
    local takes_numbers = class == 'trinity.TorchTensor' and type(value) == 'number' -- of operators: 2 * x
    if own_kind[class] ~= label and not takes_numbers and not (label == 'placement' and array_classes[class]) then
      arguments[1] = value
      message = message_of(what, f, arguments, count)
      local closed = label:match '^closed ' and class:lower() == 'trinity.' .. label:match '^closed (.*)'
      if not message then
        if not (closed and method.name == 'close') then fault('%s is taken', what) end
      elseif not (message:find('the object before', 1, true) and message:find(method.name, 1, true)) then
        fault('%s: the message does not name the object: %s', what, message)
      elseif closed and not message:find 'is closed' then
        fault('%s: the message does not say that it is closed: %s', what, message)
      end
    end
  end
end

local function report(limit)
  local count = #faults
  local text = table.concat(faults, '\n', 1, math.min(count, limit))
  faults = {}
  expect(count == 0 or ('%d faults:\n%s'):format(count, text)):equals(true)
end

-- Live memory of Lua values in bytes and engine objects, after everything unreachable is gone.
local function live()
  jit.flush() -- compiled traces come and go
  for _ = 1, 3 do collectgarbage() end
  return collectgarbage 'count' * 1024, core.open_objects()
end

local function takes_any(method)
  local last = method.parameters[#method.parameters]
  return last and last.name == '...'
end

describe('arguments of every function', function()
  local values = examples.kinds()
  for _, class in ipairs(declared.order) do
    local methods = declared.classes[class].methods
    if #methods > 0 then
      it(class .. ': examples are taken, and one more argument is refused', function()
        for _, method in ipairs(methods) do
          local f, arguments, count = examples.call(class, method)
          local message = message_of(class .. '.' .. method.name, f, arguments, count)
          if message then fault('%s.%s: the example is refused: %s', class, method.name, message) end
          f, arguments, count = examples.call(class, method)
          arguments[count + 1] = {}
          message = message_of(class .. '.' .. method.name, f, arguments, count + 1)
          local open = method.name == 'close' or method.name == 'describe' or takes_any(method)
          if not open and not (message or ''):find 'expected no more than %d' then
            fault('%s.%s: one more argument is not refused: %s', class, method.name, tostring(message))
          end
        end
        report(shown)
      end)
      it(class .. ': wrong kinds are refused by name', function()
        for _, method in ipairs(methods) do
          for i = 1, #method.parameters do try_parameter(class, method, i, values) end
          if method.separator == ':' then try_self(class, method, values) end
        end
        report(shown)
      end)
    end
  end
end)

it('no function takes an empty name for a file or folder', function() expect(25):below(tried_empty) end)

local most_places = 4

-- Not called: they write files, start processes, ask a name server, or change how the program goes on.
local left_out = { ['trinity.write_file'] = true, ['trinity.run_workers'] = true,
  ['trinity.begin_search'] = true, ['trinity.end_search'] = true, ['trinity.begin_series'] = true,
  ['trinity.end_series'] = true, ['trinity.begin_limit'] = true, ['trinity.end_limit'] = true,
  ['trinity.know_structs'] = true, ['trinity.keep_what_is_found'] = true,
  ['trinity.global'] = true, ['agent:save'] = true, ['tensor.write'] = true,
  ['tensor.start'] = true, ['trinity.addresses_of'] = true, ['trinity.append_file'] = true, ['trinity.make_folder'] = true,
  ['trinity.remove_tree'] = true, ['trinity.remove_leftovers'] = true, ['trinity.at_end'] = true }

-- Objects of the engine by the word that begins the names of their methods; new ones for every function,
-- as some are closed by it.
local function objects()
  local e = examples.shared()
  for op = 1, #e.placement do e.placement[op] = 1 end -- functions that fill arrays were given it
  local net = trinity.graph.layers.new 'bound'
  net:linear('linear', net:input('x', { 2, 4 }), 3)
  local problem = trinity.problem({ graph = e.graph, cluster = e.cluster }).handle
  local x = trinity.tensor.new { { 1, 2 }, { 3, 4 } }
  return { graph = net:build().handle, builder = net.builder.handle, cluster = trinity.cluster('p100x2').handle,
    problem = problem, schedule = problem:schedule(e.placement, { schedule = 'lifo' }),
    timeline = problem:timeline(e.placement), agent = core.agent(problem, { samples = 1, groups = 2, epochs = 1 }),
    stream = trinity.random(1, 'bound'), features = core.features(problem, {}), tensor = x,
    vector = e.graph.handle:numbers 'depth' }
end

-- Values of the other arguments: nothing, and values that get a call further.
local function fillings(o)
  local e = examples.shared()
  return { {}, { 1, 1, 1, 1 }, { {}, {}, {}, {} }, { 'name', 'name', 'name', 'name' },
    { e.placement, e.placement, e.placement, e.placement }, { o.graph, o.cluster, 'standard' }, { o.problem, {}, {}, {} },
    { o.problem, e.placement, {}, {} }, { o.tensor, o.tensor, o.tensor, o.tensor }, { { 2, 2 }, o.stream } }
end

local function try(binding, kinds, is_method)
  local o = objects()
  local self = o[binding.name:match '^(%w+):']
  for n, filling in ipairs(fillings(o)) do
    for place = 1, most_places do
      for k = 0, #kinds do
        local arguments = { filling[1], filling[2], filling[3], filling[4] }
        if is_method then arguments = { self, filling[1], filling[2], filling[3] } end
        arguments[place] = k > 0 and kinds[k][2] or nil
        local label = k > 0 and kinds[k][1] or 'nil'
        -- An object that is closed here would be missing in later calls.
        if not (place == 1 and binding.name:find ':close$' and (label == 'handle' or label == 'stream')) then
          local what = ('%s: filling %d, place %d = %s'):format(binding.name, n, place, label)
          local message = attempt(what, binding.call, arguments, most_places)
          if message ~= nil and not tostring(message):find '^[^\n]*_spec%.lua:%d+: ' then
            fault('%s: no position: %s', what, tostring(message):sub(1, 300))
          end
        end
      end
    end
  end
end

describe('bound functions', function()
  local kinds, tried, before = examples.kinds(), {}, nil
  local function try_once(binding)
    if not before then
      calls, refused = 0, 0
      objects()
      before = select(2, live())
    end
    if not tried[binding] then try(binding, kinds, binding.name:find(':', 1, true) ~= nil) end
    tried[binding] = true
  end
  for _, binding in ipairs(core.bindings) do
    if not left_out[binding.name] then
      it(binding.name, function()
        try_once(binding)
        report(shown)
      end)
    end
  end
  it('leak no object', function()
    for _, binding in ipairs(core.bindings) do
      if not left_out[binding.name] then try_once(binding) end
    end
    local _, after = live()
    print(('%d bound functions, %d calls, %d refused; %d engine objects before, %d after'):format(#core.bindings, calls,
      refused, before, after))
    expect(after - before):below(1) -- earlier specs' objects may go meanwhile
    expect(1e5):below(calls)
  end)
end)

examples.leave()
