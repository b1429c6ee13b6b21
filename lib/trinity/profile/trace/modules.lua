-- trinity.profile.trace.modules: finds the module path of an event 'nn.Module: Class_N'. N counts instances of a class
-- by their first call, so names are ambiguous; but calls nest as the modules of the exported program. Both are trees,
-- whose children are matched by class, in order.

local align = require 'trinity.profile.trace.align'

local modules = {}

--- Returns the tree of the modules around a graph's forward operators, from their attribute 'modules'; children by
--- first use.
---@param graph trinity.Graph
---@return table? root path, class, children; nil if no operator has modules
function modules.of_graph(graph)
  local root, by_path = nil, {}
  for o = 1, graph.operators do
    local op = graph:operator(o)
    local stack, parent = op.phase == 'forward' and op.attributes.modules, nil
    for path, class in (type(stack) == 'string' and stack or ''):gmatch '([^;]*):([^:;]*)' do
      path = path:gsub('@%d+$', '') -- a repeated call of a module
      local node = by_path[path]
      if not node then
        node = { path = path, class = class, children = {} }
        by_path[path] = node
        if parent then table.insert(parent.children, node) end
        root = root or node
      end
      parent = node
    end
  end
  return root
end

--- Returns the module events as a tree by time, and the innermost one around each operator. Events are in order of
--- begin.
---@param events table[]
---@return table[] outermost events; each with `calls` in it, its `parent`, and `busy`: whether an operator is in it
---@return table<table, table> around
function modules.of_events(events)
  local outermost, around, open = {}, {}, {}
  for _, event in ipairs(events) do
    local stack = open[event.thread] or {}
    open[event.thread] = stack
    while #stack > 0 and stack[#stack].finish <= event.begin do stack[#stack] = nil end
    if event.kind == 'module' then
      event.calls, event.busy, event.parent = {}, false, stack[#stack]
      table.insert(#stack > 0 and stack[#stack].calls or outermost, event)
      stack[#stack + 1] = event
    elseif event.kind == 'operator' and #stack > 0 then
      around[event] = stack[#stack]
      for _, module in ipairs(stack) do module.busy = true end
    end
  end
  return outermost, around
end

--- Finds the paths of calls among the children of a module.
local function match(calls, children, path_of)
  local instances, events, names, classes = {}, {}, {}, {}
  for _, call in ipairs(calls) do
    if call.busy and not instances[call.instance] then
      instances[call.instance] = { calls = {} }
      events[#events + 1], names[#names + 1] = instances[call.instance], call.class
    end
    if call.busy then table.insert(instances[call.instance].calls, call) end
  end
  for i, child in ipairs(children) do classes[i] = child.class end
  local same = align.words(names, classes)
  for i, instance in ipairs(events) do
    local child, within = same[i] and children[same[i]], {}
    for _, call in ipairs(instance.calls) do
      if child then path_of[call] = child.path end
      for _, inner in ipairs(call.calls) do within[#within + 1] = inner end
    end
    if child then match(within, child.children, path_of) end
  end
end

--- Returns the path of each known module event. The outermost event is the program's root, or a child of it if the
--- program has a module around the traced one (for example to add the loss).
---@param outermost table[] of modules.of_events
---@param root table of modules.of_graph
---@return table<table, string>
function modules.paths(outermost, root)
  local path_of, within, is_root = {}, {}, false
  for _, call in ipairs(outermost) do
    if call.class == root.class then
      path_of[call], is_root = root.path, true
      for _, inner in ipairs(call.calls) do within[#within + 1] = inner end
    end
  end
  match(is_root and within or outermost, root.children, path_of)
  return path_of
end

return modules
