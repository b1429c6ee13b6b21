-- Describes what a run searched and found, in one or two sentences.

local util = require 'trinity.base.util'

local sentence = {}

local function grouped(n)
  local text = ('%d'):format(n)
  while true do
    local more, changed = text:gsub('^(%d+)(%d%d%d)', '%1,%2')
    if changed == 0 then return text end
    text = more
  end
end

local function plural(n, word, words) return ('%s %s'):format(grouped(n), n == 1 and word or words or word .. 's') end

--- Formats times in a suitable unit.
local function seconds(s)
  if s < 1e-3 then return ('%.4g µs'):format(s * 1e6) end
  if s < 1 then return ('%.4g ms'):format(s * 1e3) end
  return ('%.4g s'):format(s)
end

local function methods_of(run)
  local seen, list = {}, {}
  for _, id in ipairs(run.search_ids) do
    local method = tostring(run.searches[id].method)
    if not seen[method] then seen[method], list[#list + 1] = true, method end
  end
  return list
end

local function evaluations_of(run)
  local sum = 0
  for _, id in ipairs(run.search_ids) do sum = sum + (tonumber(run.searches[id].evaluations) or 0) end
  return sum
end

local function found_text(problem)
  local best = problem.strategies[1]
  if not best then return nil end
  local bound = best.lower_bound_s or type(problem.bounds) == 'table' and tonumber(problem.bounds.step_time_s)
  return ('the fastest step found takes %s (method %s)%s%s'):format(seconds(best.step_time_s), best.method,
    bound and bound > 0
      and (', %.2f times the lower bound of %s'):format(best.step_time_s / bound, seconds(bound)) or '',
    best.fits and '' or '; it does not fit into the devices’ memory')
end

local function searched_text(run, problems)
  local methods = methods_of(run)
  local ways = #methods == 1 and methods[1] or plural(#methods, 'method')
  local effort = ('%s, %s in all'):format(plural(#run.search_ids, 'search', 'searches'),
    plural(evaluations_of(run), 'evaluation'))
  if #problems == 1 then
    local p = problems[1]
    return ('Searched where to place %s%s on %s with %s (%s)'):format(p.model,
      p.operators and (' (%s)'):format(plural(p.operators, 'operator')) or '', p.cluster, ways, effort)
  end
  return ('Searched %s with %s (%s)'):format(plural(#problems, 'problem'), ways, effort)
end

local states = { running = ' It is still running.', interrupted = ' It was interrupted before its end.',
  failed = ' It failed before its end.' }

-- Returns whether a summary is a sentence. Scripts also give names of tables, which are only shown above the tables.
local function is_sentence(summary) return type(summary) == 'string' and summary:find '%s.*[.!?]%s*$' ~= nil end

--- Returns the summaries of results that are sentences, except comparisons and searches.
local function results_text(run)
  local parts = {}
  for _, result in ipairs(run.results) do
    if is_sentence(result.summary) and result.kind ~= 'comparison' and result.kind ~= 'search' and #parts < 3 then
      parts[#parts + 1] = util.shortened(result.summary, 300)
    end
  end
  return table.concat(parts, ' ')
end

-- Returns a sentence about values logged by round or step, or nil.
local function logged_text(logged)
  if #logged == 0 then return nil end
  local names = util.map(logged, function(chart) return (chart.name:gsub('_', ' ')) end)
  return util.shortened(('This run logged %s.'):format(table.concat(names, ', ')), 300)
end

--- `data` has the report's data about the run's problems.
function sentence.of(run, data)
  local text, logged = results_text(run), logged_text(data.logged or {})
  if #run.search_ids > 0 then
    text = (text ~= '' and text .. ' ' or '') .. searched_text(run, data.problems) .. '.'
    for i = 1, math.min(3, #data.problems) do
      local found = found_text(data.problems[i])
      if found then
        local p = data.problems[i]
        text = text .. (#data.problems > 1 and (' %s on %s: '):format(p.model, p.cluster) .. found
          or ' ' .. found:gsub('^t', 'T')) .. '.'
      end
    end
    if logged then text = text .. ' ' .. logged end
  elseif text == '' then
    local first = run.results[1]
    text = not first and (logged or 'This run has no search and no result.')
      or is_sentence(first.summary) and util.shortened(first.summary, 300)
      or ('This run has %s and no search.'):format(plural(#run.results, 'result'))
  end
  return text .. (states[run.about.status] or '')
end

return sentence
