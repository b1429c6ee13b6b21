-- Follows a run from another terminal: its progress, its best so far, and each search that ends.

local core = require 'trinity.core'
local progress = require 'trinity.base.progress'
local run_list = require 'trinity.runs.list'
local text = require 'trinity.base.text'
local util = require 'trinity.base.util'

local function latest(root)
  local runs, chosen = run_list.all(root), nil
  for _, run in ipairs(runs) do
    local better = not chosen or (run.status == 'running') ~= (chosen.status == 'running') and run.status == 'running'
      or (run.status == 'running') == (chosen.status == 'running') and (run.started_s or 0) > (chosen.started_s or 0)
    if better then chosen = run end
  end
  return chosen or util.fail_usage('there are no runs in %s', root)
end

local look = progress.terminal(1)

local function say(line, ...) print(text.one_line(line:format(...))) end

local function show_line(run)
  local now = run_list.now(run)
  if not now then return end
  if look.redraws then
    io.stdout:write('\r\27[K', progress.fit(text.one_line(progress.printable(now.label)), now.parts, now.share, look))
    io.flush()
  else
    say('%s  %s', now.label, table.concat(now.parts, '  '))
  end
end

local shown = {}

-- Prints the searches that ended since the last update.
local function tell_searches(run)
  for _, search in ipairs(run_list.searches(run)) do
    if search.status ~= 'running' and not shown[search.id] then
      shown[search.id] = true
      local best_s, bound_s = tonumber(search.best_step_time_s), tonumber(search.lower_bound_s)
      if look.redraws then io.stdout:write '\r\27[K' end
      say('%s  seed %s  %s%s', tostring(search.method), tostring(search.seed or '-'),
        best_s and ('step time %.4g s'):format(best_s) or tostring(search.error or search.nothing or 'nothing'),
        best_s and bound_s and bound_s > 0 and ('  %.2fx bound'):format(best_s / bound_s) or '')
    end
  end
end

local function tell_end(run)
  if look.redraws then io.stdout:write '\r\27[K' end
  say('%s: %s%s%s', run.name, run.status, run.note and ' (' .. run.note .. ')' or '',
    run.seconds and (' after %.1f s'):format(run.seconds) or '')
  for _, result in ipairs(run_list.results(run)) do
    if result.summary then say('%s', tostring(result.summary)) end
  end
end

--- Follows a run, by default the latest running one, until it ends or Ctrl-C. once: print the current state and return.
--- interval_s: seconds between two updates.
return function(root, name, once, interval_s)
  local run = name and run_list.find(root, name) or latest(root)
  say('%s: %s on %s, started %s', run.path, run.model or '?', run.cluster or '?', tostring(run.about.started_at))
  require('trinity').system.stoppable(function(stop_requested)
    local shown_s, wait_s = -math.huge, interval_s
    while true do
      tell_searches(run)
      local running = run.status == 'running'
      local due = look.redraws or once or core.clock_s() - shown_s >= wait_s
      if running and due then
        show_line(run)
        -- In a file or pipe, lines become rarer with time.
        if shown_s > -math.huge and not look.redraws then wait_s = math.min(600, 1.25 * wait_s) end
        shown_s = core.clock_s()
      end
      if once or not running or stop_requested() then break end
      os.execute(('sleep %.3f'):format(interval_s))
      local path = run.path
      run = run_list.read(path)
      if not run then util.fail('%s no longer exists', path) end
    end
  end)
  if run.status ~= 'running' then tell_end(run) elseif look.redraws then print '' end
end
