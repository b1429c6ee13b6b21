-- trinity.profile.trace.attribution: which operator of a training graph a moment of a traced step belongs to.
--
-- A step is cut into spans: an outermost operator, or a call of the optimiser with all in it, each from its begin to
-- the begin of the next (the first from the step's begin, the last to its end), so that spans add up to the step.
--   forward     the module around it gives the path, and within a path names are aligned in order; what the graph
--               does not have (PyTorch computes it only when it runs) goes with the named operator before it there
--   backward    a node of autograd has the sequence number of the forward operator that made it: that one's gradient;
--               what stands between the loss and the first node makes the gradient that this begins with
--   update      AccumulateGrad: the update of the operator whose gradient came just before; calls of the optimiser: all
--               updates, by their traffic

local align = require 'trinity.profile.trace.align'
local modules = require 'trinity.profile.trace.modules'

local attribution = {}

local evaluated = '^autograd::engine::evaluate_function: '

local function phase_of(event)
  if event.kind == 'note' then return 'update' end
  if event.name:find 'AccumulateGrad$' then return 'accumulate' end
  return event.name:find(evaluated) and 'backward' or 'forward'
end

--- The spans of a step, in order.
---@param step table
---@param events table[]
---@return table[] spans event, phase, time_s, busy_s (of operators)
---@return table<table, table> span_of operators, nested ones too
local function spans_of(step, events)
  local spans, span_of, open = {}, {}, {}
  for _, event in ipairs(events) do
    local last = open[event.thread]
    local within = last and event.begin < last.event.finish
    local optimiser = event.kind == 'note' and event.name:find '^Optimizer%.'
    if optimiser or event.kind == 'operator' and not within then
      last = { event = event, phase = phase_of(event), busy_s = 0, busy_to = 0 }
      spans[#spans + 1], open[event.thread] = last, last
    end
    if event.kind == 'operator' then
      span_of[event] = last
      local from = math.max(event.begin, last.busy_to)
      last.busy_s = last.busy_s + math.max(0, event.finish - from) * 1e-6
      last.busy_to = math.max(last.busy_to, event.finish)
    end
  end
  for i, span in ipairs(spans) do
    local from = i == 1 and step.begin or span.event.begin
    span.time_s = ((spans[i + 1] and spans[i + 1].event.begin or step.finish) - from) * 1e-6
  end
  return spans, span_of
end

--- What a graph has: forward operators by path, what serves each, its updates.
local function graph_of(graph)
  local of = { by_path = {}, gradient = {}, update = {}, updates = {}, traffic_bytes = 0 }
  for o = 1, graph.operators do
    local op = graph:operator(o)
    if op.phase == 'forward' and op.attributes.target then
      local path = (op.attributes.module or ''):gsub('@%d+$', '')
      of.by_path[path] = of.by_path[path] or {}
      table.insert(of.by_path[path], { number = o,
        word = op.attributes.target:match '([%w_]+)%.[%w_]+$' or op.attributes.target })
    elseif op.phase == 'backward' and op.forward and (op.type ~= 'Sum' or not of.gradient[op.forward]) then
      of.gradient[op.forward] = o -- sums of gradients stand before what uses them
    elseif op.phase == 'update' then
      of.updates[#of.updates + 1] = { number = o, bytes = op.traffic_bytes }
      of.traffic_bytes = of.traffic_bytes + op.traffic_bytes
      if op.forward then of.update[op.forward] = o end
    end
  end
  return of
end

--- Forward spans within one path: the operators of the graph by name, and for others the one before (or after) them.
local function name_spans(spans, operators)
  local words, names = {}, {}
  for i, span in ipairs(spans) do words[i] = span.event.name:match '::([%w_]+)$' or span.event.name end
  for i, operator in ipairs(operators) do names[i] = operator.word end
  local same, last, waiting = align.words(words, names), nil, {}
  for i, span in ipairs(spans) do
    if same[i] then
      last, span.named = operators[same[i]].number, true
      for _, before in ipairs(waiting) do before.forward = last end
      waiting = {}
    end
    span.forward = last
    if not last then waiting[#waiting + 1] = span end
  end
  for _, span in ipairs(waiting) do span.forward = operators[1].number end -- a part that was exported as one operator
end

local function attribute_forward(spans, around, path_of, by_path)
  local within, order = {}, {}
  for _, span in ipairs(spans) do
    if span.phase == 'forward' then
      local module = around[span.event]
      while module and not path_of[module] do module = module.parent end
      span.path = module and path_of[module] or ''
      if not within[span.path] then
        within[span.path] = {}
        order[#order + 1] = span.path
      end
      table.insert(within[span.path], span)
    end
  end
  for _, path in ipairs(order) do
    if by_path[path] then name_spans(within[path], by_path[path]) end
  end
  for _, span in ipairs(spans) do -- outside all modules a name is all there is
    if span.phase == 'forward' and not around[span.event] and not span.named then span.forward = nil end
  end
end

--- Nodes of autograd by the sequence numbers of forward operators: the last operator that began with a number made it.
local function attribute_backward(spans, span_of, events, of)
  local maker = {}
  for _, event in ipairs(events) do
    local span = span_of[event]
    if span and span.phase == 'forward' and event.sequence and (event.forward_thread or 0) == 0 then
      maker[event.sequence] = span
    end
  end
  local previous
  for _, span in ipairs(spans) do
    if span.phase == 'backward' then
      local made = span.event.sequence and maker[span.event.sequence]
      span.forward = made and made.forward
      span.named, span.path = made and made.named, made and made.path
      -- a gradient that is passed on (of a sum) has no operator: its time counts for the operator before
      span.operator = span.forward and (of.gradient[span.forward] or previous)
      previous = span.operator or previous
    end
  end
end

--- Operators of no module and no name that the backward pass makes: they go to the node after them.
local function attribute_between(spans)
  local first
  for i, span in ipairs(spans) do
    if span.phase == 'backward' then first = i break end
  end
  for i = (first or 1) - 1, 1, -1 do
    local span = spans[i]
    if span.phase ~= 'forward' or span.forward or span.in_module then return end
    span.phase, span.forward, span.operator = 'backward', spans[first].forward, spans[first].operator
    span.path = spans[first].path
  end
end

local function attribute_updates(spans, of)
  local forward
  for _, span in ipairs(spans) do
    if span.phase == 'backward' then forward = span.forward end
    if span.phase == 'accumulate' and forward then span.forward, span.operator = forward, of.update[forward] end
  end
end

-- A span:
--   event          table
--   phase          'forward'|'backward'|'accumulate'|'update'
--   time_s         number, to the begin of the next
--   busy_s         number, of operators in it
--   path           string (or nil), of the module
--   forward        integer (or nil), number of the forward operator that it belongs to
--   operator       integer (or nil), number of the operator that has its time; nil: all updates, or none
--   named          boolean (or nil), whether the graph has an operator of its name there

--- Attributes a step to the operators of a graph.
---@param graph trinity.Graph a training step with attributes 'modules'
---@param root table of modules.of_graph
---@param step table
---@param events table[]
---@return table[]
---@return table graph updates, traffic_bytes of them
function attribution.spans(graph, root, step, events)
  local outermost, around = modules.of_events(events)
  local of = graph_of(graph)
  local spans, span_of = spans_of(step, events)
  for _, span in ipairs(spans) do span.in_module = around[span.event] ~= nil end
  attribute_forward(spans, around, modules.paths(outermost, root), of.by_path)
  for _, span in ipairs(spans) do
    if span.phase == 'forward' then span.operator = span.forward end
  end
  attribute_backward(spans, span_of, events, of)
  attribute_between(spans)
  attribute_updates(spans, of)
  return spans, of
end

return attribution
