-- An executed step and the simulated one as Chrome trace JSON for ui.perfetto.dev: the timeline's trace
-- (timeline:chrome_trace), followed by a process "measured" with two threads per device (computation and received
-- tensors) and the memory of every device as a counter. In the execution the reading device copies a tensor when it
-- needs it; simulated transfers are shown while their links are busy.

local core = require 'trinity.core'

local function measured(graph, placement, last, devices, pid)
  local events = {}
  local function add(text, ...) events[#events + 1] = text:format(...) end
  local function add_slice(tid, of, op, category, args)
    add('{"ph":"X","pid":%d,"tid":%d,"ts":%.3f,"dur":%.3f,"name":%s,"cat":"%s","args":%s}', pid, tid, 1e6 * of.start_s,
      1e6 * (of.end_s - of.start_s), core.to_json(graph:operator(op).name), category, core.to_json(args))
  end
  add('{"ph":"M","pid":%d,"name":"process_name","args":{"name":"measured"}}', pid)
  for d, name in ipairs(devices) do
    for k, thread in ipairs { name, name .. ' receives' } do
      add('{"ph":"M","pid":%d,"tid":%d,"name":"thread_name","args":{"name":%s}}', pid, 2 * d + k, core.to_json(thread))
    end
  end
  for task = 1, #last.start_s do
    local op = (task - 1) % graph.operators + 1
    local about, device, end_s = graph:operator(op), placement[op], last.end_s[task]
    if end_s > 0 then
      add_slice(2 * device + 1, { start_s = last.start_s[task], end_s = end_s }, op, about.phase,
        { type = about.type, micro_batch = (task - op) / graph.operators + 1 })
      add('{"ph":"C","pid":%d,"ts":%.3f,"name":%s,"args":{"bytes":%.0f}}', pid, 1e6 * end_s,
        core.to_json('memory of ' .. devices[device]), last.memory_bytes[task])
    end
  end
  for _, copy in ipairs(last.copies) do
    add_slice(2 * copy.to + 2, copy, (copy.task - 1) % graph.operators + 1, 'copy',
      { from = copy.from, bytes = copy.bytes })
  end
  return events
end

--- Returns the last measured step of an execution of `plan` and the predicted step, as JSON. `devices`: names of the
--- workers.
return function(problem, plan, execution, devices)
  local timeline = problem:timeline(plan)
  local text = timeline:chrome_trace()
  timeline:close()
  local events = measured(execution.graph, execution.placement, execution.last, devices, #problem.cluster.devices)
  text = text:gsub('"step_time_s":', ('"measured_step_time_s":%.9g,%%0'):format(execution.step_time_s), 1)
  return (text:gsub('\n%]}\n$', function() return ',\n' .. table.concat(events, ',\n') .. '\n]}\n' end))
end
