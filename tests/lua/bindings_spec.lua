-- Every function that the engine binds, called as no script would: values of every kind at every place.
-- Each call returns or raises a text with a position; none crashes, none leaves an object behind.

local core = require 'trinity.core'
local trinity = require 'trinity'
local examples = dofile(root .. '/tests/lua/support/examples.lua')

local most_places, slowest_s = 4, 2

-- Not called: they write files, start processes, or change how the program goes on.
local left_out = { ['trinity.write_file'] = true, ['trinity.run_workers'] = true, ['trinity.set_threads'] = true,
  ['trinity.begin_search'] = true, ['trinity.end_search'] = true, ['trinity.begin_series'] = true,
  ['trinity.end_series'] = true, ['trinity.begin_limit'] = true, ['trinity.end_limit'] = true,
  ['trinity.know_structs'] = true,
  ['trinity.global'] = true, ['agent:save'] = true, ['dist.launch'] = true, ['tensor.write'] = true,
  ['tensor.start'] = true, ['trinity.append_file'] = true, ['trinity.make_folder'] = true,
  ['trinity.remove_tree'] = true, ['trinity.remove_leftovers'] = true, ['trinity.at_end'] = true }

-- Objects of the engine by the word that begins the names of their methods; new ones for every function,
-- as some are closed by it.
local function objects()
  local e = examples.shared()
  for op = 1, #e.placement do e.placement[op] = 1 end -- functions that fill arrays were given it
  local net = trinity.layers.new 'bound'
  net:linear('linear', net:input('x', { 2, 4 }), 3)
  local problem = trinity.problem({ graph = e.graph, cluster = e.cluster }).handle
  local x = trinity.tensor.new { { 1, 2 }, { 3, 4 } }
  return { graph = net:build().handle, builder = net.builder.handle, cluster = trinity.cluster('p100x2').handle,
    problem = problem, schedule = problem:schedule(e.placement, { schedule = 'lifo' }),
    timeline = problem:timeline(e.placement), agent = core.agent(problem, { samples = 1, groups = 2, epochs = 1 }),
    stream = trinity.random(1, 'bound'), features = core.features(problem, {}), tensor = x,
    vector = e.graph.handle:numbers 'depth' }
end

-- What stands at the other places: nothing, and things that get a call further.
local function fillings(o)
  local e = examples.shared()
  return { {}, { 1, 1, 1, 1 }, { {}, {}, {}, {} }, { 'name', 'name', 'name', 'name' },
    { e.placement, e.placement, e.placement, e.placement }, { o.graph, o.cluster, 'standard' }, { o.problem, {}, {}, {} },
    { o.problem, e.placement, {}, {} }, { o.tensor, o.tensor, o.tensor, o.tensor }, { { 2, 2 }, o.stream } }
end

local calls, refused, faults = 0, 0, {}

local function fault(...)
  if #faults < 20 then faults[#faults + 1] = (...):format(select(2, ...)) end
end

local trace = os.getenv 'TRACE' and io.open(os.getenv 'TRACE', 'w')

local function attempt(what, f, a, b, c, d)
  calls = calls + 1
  if trace then -- names the call that a crash was in
    trace:seek 'set'
    trace:write(what, (' '):rep(80))
    trace:flush()
  end
  local start = core.clock_s()
  local ok, message = pcall(function()
    local first = f(a, b, c, d)
    return first
  end)
  local seconds = core.clock_s() - start
  if seconds > slowest_s then fault('%s: took %.1f s', what, seconds) end
  if ok then return end
  refused = refused + 1
  if type(message) ~= 'string' then fault('%s: an error of type %s', what, type(message))
  elseif not message:find '^[^\n]*_spec%.lua:%d+: ' then fault('%s: no position: %s', what, message:sub(1, 300)) end
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
        -- What is closed at this place would be missing in later calls.
        if not (place == 1 and binding.name:find ':close$' and (label == 'handle' or label == 'stream')) then
          attempt(('%s: filling %d, place %d = %s'):format(binding.name, n, place, label), binding.call,
            unpack(arguments, 1, most_places))
        end
      end
    end
  end
end

local function report()
  local text = table.concat(faults, '\n')
  faults = {}
  expect(text):equals ''
end

local function live()
  for _ = 1, 3 do collectgarbage() end
  return core.open_objects()
end

describe('bound functions', function()
  local kinds = examples.kinds()
  objects()
  local before = live()
  for _, binding in ipairs(core.bindings) do
    if not left_out[binding.name] then
      it(binding.name, function()
        try(binding, kinds, binding.name:find(':', 1, true) ~= nil)
        report()
      end)
    end
  end
  it('leave no object behind', function()
    local after = live()
    print(('%d bound functions, %d calls, %d refused; %d engine objects before, %d after'):format(#core.bindings, calls,
      refused, before, after))
    expect(after - before):below(1) -- earlier specs' objects may go meanwhile
    expect(1e5):below(calls)
  end)
end)

examples.clean()
