-- Breakpoints from an editor: the debugger of VS Code's extension local-lua-debugger (lldebugger.lua, which is not part of
-- trinity) stops a script inside its reward, by the line of the manual's launch.json. Skipped where it is not installed:
-- $TRINITY_LLDEBUGGER names the file, else it is looked for where VS Code keeps extensions.

local core = require 'trinity.core'
local util = require 'trinity.base.util'

local function debugger()
  local given = os.getenv 'TRINITY_LLDEBUGGER'
  if given then return given end
  local found = output_of "ls ~/.vscode*/extensions/*local-lua-debugger*/debugger/lldebugger.lua 2>/dev/null"
  return found:match '[^\n]+'
end

-- The command of the chapter's launch.json: { command, arguments, environment }.
local function launch()
  local text = core.read_file(root .. '/lib/trinity/manual/limits.md')
  local json = text:match '```json file=launch%.json\n(.-)\n```'
  return require('trinity').files.json.decode(json).configurations[1]
end

local script = [[
if os.getenv 'LOCAL_LUA_DEBUGGER_VSCODE' == '1' then require('lldebugger').start() end
local trinity = require 'trinity'
local problem = trinity.problem {
  graph = trinity.model('alexnet', { batch_size = 1 }), cluster = trinity.cluster 'p100x2',
  reward = function(metrics)
    local time_s = metrics.step_time_s
    return -time_s
  end,
}
print('evaluations: ' .. trinity.methods.annealing(problem, { evaluations = 20, quiet = true }).evaluations)
]]

describe('a debugger of an editor', function()
  local folder = temporary()
  core.make_folder(folder, {}, '')
  core.write_file(folder .. '/mine.lua', script)

  it('is set up by a launch.json that starts the program with the open script', function()
    local how = launch()
    expect(how.type .. ' ' .. how.request .. ' ' .. how.program.command):equals 'lua-local launch trinity'
    expect(how.args[1]):equals '${file}'
    expect(util.exists(folder .. '/mine.lua')):equals(true)
  end)
  it('stops inside a reward, shows stack and variables, evaluates there, and goes on', function()
    local file = debugger()
    if not file then skip 'no local-lua-debugger here: TRINITY_LLDEBUGGER=.../debugger/lldebugger.lua' end
    core.write_file(folder .. '/orders', table.concat({ 'break set mine.lua:7', 'cont', 'stack', 'locals', 'eval time_s * 0 + 42',
      'break delete mine.lua:7', 'cont', '' }, '\n'))
    local words = {}
    for _, word in ipairs(launch().args) do words[#words + 1] = ("'%s'"):format((word:gsub('%${file}', 'mine.lua'))) end
    local said = output_of(("cd '%s' && LOCAL_LUA_DEBUGGER_VSCODE=1 LUA_PATH='%s/?.lua;;' timeout 60 '%s' %s < orders 2>&1; echo status=$?")
      :format(folder, file:match '^(.*)/', program, table.concat(words, ' ')))
    expect(said):matches 'breakpoint hit: \\"mine%.lua:7\\"'
    expect(said):matches '"func": "reward"'
    expect(said):matches 'lib/trinity/strategy/problem%.lua'
    expect(said):matches '"name": "time_s"'
    expect(said):matches '"value": "42"'
    expect(said):matches '\nstatus=0\n$'
    expect(said):matches 'evaluations: 20'
  end)
  it('costs a script nothing that no editor started', function()
    expect(output_of(("cd '%s' && '%s' mine.lua --run none"):format(folder, program))):equals 'evaluations: 20\n'
  end)
end)
