-- trinity help --completion: what shells offer and the manual page, made of the options that scripts declare.

local commands = require 'trinity.command.commands'
local completion = require 'trinity.command.completion'
local core = require 'trinity.core'

--- Completions by bash of a command line whose last word is being written.
local function offered(words)
  local path = os.tmpname()
  core.write_file(path, completion.bash())
  local pipe = io.popen(("bash -c 'source %s; COMP_WORDS=(%s); COMP_CWORD=%d; _trinity; echo \"${COMPREPLY[@]}\"' 2>&1")
    :format(path, table.concat(words, ' '), #words - 1))
  local text = pipe:read '*a'
  pipe:close()
  os.remove(path)
  return (text:gsub('%s+$', ''))
end

local function has(name)
  local pipe = io.popen(('command -v %s'):format(name))
  local found = pipe:read '*a' ~= ''
  pipe:close()
  return found
end

describe('completion', function()
  it('knows every command and every option that --help lists', function()
    local words = {}
    for name, list in completion.bash():gmatch "\n    ([%w_]+)%) options='([^']*)'" do words[name] = ' ' .. list .. ' ' end
    for _, name in ipairs(commands.names()) do
      local pipe = io.popen(('"%s/build/trinity" %s --help 2>&1'):format(core.home, name))
      local count = 0
      for line in pipe:lines() do
        local option = line:match '^  (%-%-%S+)'
        count = count + (option and 1 or 0)
        if option and not words[name]:find(' ' .. option .. ' ', 1, true) then error(('%s %s'):format(name, option), 0) end
      end
      pipe:close()
      expect(2):below(count)
    end
  end)

  it('completes commands, their options and topics of help in bash', function()
    expect(offered { 'trinity', 'simu' }):equals 'simulate'
    expect(offered { 'trinity', 'search', '--eval' }):equals '--evaluations'
    expect(offered { 'trinity', '--threads', '2', 'plan', '--glo' }):equals '--global-batch'
    expect(offered { 'trinity', 'search', '--const' }):equals '--constants'
    expect(offered { 'trinity', 'help', 'tutor' }):equals 'tutorial'
    expect(offered { 'trinity', '--saf' }):equals '--safe'
    expect(offered { 'trinity', 'search', 'gp' }):equals ''
  end)

  it('makes a page that groff reads without a warning', function()
    local page = completion.man()
    expect(page):matches '%.SS trinity search\n'
    expect(page):matches '\\fB\\%-\\%-evaluations\\fR'
    if not has 'groff' then skip 'needs groff' end
    local path = os.tmpname()
    core.write_file(path, page)
    local pipe = io.popen(('groff -man -ww -Wbreak -z %s 2>&1'):format(path))
    expect((pipe:read '*a':gsub('[^\n]*cannot adjust line\n', ''))):equals ''
    pipe:close()
    os.remove(path)
  end)

end)
