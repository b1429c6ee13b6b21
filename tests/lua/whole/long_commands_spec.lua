-- Long commands (tests/lua/support/long_commands.lua): Ctrl-C keeps the best so far, and each goes on from there to the same
-- bytes, or says in a sentence that it does not. What the frame of searches promises, on four: progress on standard error
-- alone, results that --seed fixes and the number of threads does not change, an end after --seconds, bounded memory.

local core = require 'trinity.core'
local declared = require 'trinity.command.commands'
local util = require 'trinity.base.util'

local commands = dofile(root .. '/tests/lua/support/long_commands.lua')

-- Runs a piece of shell in a new folder; COMMAND is the command with its words. Returns its output, and the folder.
local function shell(command, text, folder, words)
  folder = folder or temporary()
  for name, content in util.sorted_pairs(command.files or {}) do core.write_file(folder .. '/' .. name, content) end
  local function line(options) -- the program's own number is in the file `number`
    return ([[timeout --foreground -k 5 200 sh -c 'echo $$ > number; exec "$0" "$@"' '%s' %s %s %s]]):format(program,
      options, command.name, words or command.words)
  end
  text = text:gsub('COMMAND_WITH(%b())', function(options) return line(options:sub(2, -2)) end)
    :gsub('COMMAND', function() return line '' end)
    :gsub('SEED=(%d+)', command.seed == false and '' or '--seed %1')
    :gsub('RUN', '--run r')
  return output_of(("mkdir -p '%s'; cd '%s' && unset TRINITY_RUNS; { %s\n} 2>&1"):format(folder, folder, text)), folder
end

-- The bytes of what a command kept, without what clocks say.
local function kept(command, folder)
  local clocks = [[for f in %s; do echo $f; sed -E 's/"(seconds|taken_s|search_seconds)": ?[0-9.e+-]+//g' $f; done | cksum]]
  return output_of(("cd '%s' && { %s; }; ls %s 2>/dev/null | wc -l"):format(folder, clocks:format(command.kept), command.kept))
end

-- Shell: waits for a sign of the command in the background, whose progress goes to the file `err`, and leaves the
-- command stopped: between two looks it runs for a moment only, however slow the machine is.
local function until_sign(sign)
  return ([[worked() {
      ticks=$(awk '{ print $14 + $15 }' /proc/$(cat number)/stat)
      test -s begun || echo $ticks > begun
      test $((ticks - $(cat begun))) -ge $1
    }
    for i in $(seq 5000); do
      test -s number && kill -STOP $(cat number) 2>/dev/null
      { %s; } 2>/dev/null && break
      test -s number && { kill -CONT $(cat number) 2>/dev/null || break; }
      sleep 0.02
    done]]):format(sign)
end

local function endless(command)
  return command.endless
    or command.words:gsub('%-%-evaluations %d+', '--evaluations 100000000')
end

-- Starts a command and sends it a signal as soon as it has something to keep. What goes on has an end, and may have come
-- to it before: then it is tried again.
local function interrupted(command, signal)
  for _ = 1, 5 do
    local output, folder = shell(command, ([[COMMAND SEED=1 RUN > out 2> err & child=$!
      %s
      kill -%s $(cat number); kill -CONT $(cat number); wait $child; echo status=$?; ls %s; cat out err]]):format(
      until_sign(command.after), signal, command.kept))
    if not (command.resumes and output:match '^[^\n]*status=0\n') then return output, folder end
  end
  error(command.name .. ': five times it had ended before it was interrupted')
end

-- Read by a command before its script: SIGINT comes just after the last search, or, where the engine brackets that, when a
-- result is about to be kept. Without STRIKE_AT it counts these moments.
local strike = [[
local core, state = require 'trinity.core', require 'trinity.runs.state'
local at, count = tonumber(os.getenv 'STRIKE_AT'), 0
local function moment()
  count = count + 1
  if count == at then os.execute 'kill -INT $(cat number)' end
  if not at then core.write_file('moments', tostring(count)) end
end
local end_search, keep_result = core.end_search, state.keep_result
function core.end_search() end_search() moment() end
function state.keep_result(...) moment() return keep_result(...) end
]]

for i, command in ipairs(commands) do
  describe(('%d %s'):format(i, command.name), function()
    if not command.seconds then all_only() end
    local whole
    local function ended()
      if whole then return whole end
      local status, folder = shell(command, 'COMMAND SEED=1 --run r --quiet > out 2> err; echo status=$?; cat err', nil,
        command.brief)
      expect(status):equals 'status=0\n' -- and no progress
      whole = kept(command, folder)
      expect(whole):matches '\n[1-9]%d*\n$'
      return whole
    end
    if command.seconds then
      it('shows progress on standard error alone', function() -- a line in addition to the one about the run
        local output, folder = shell(command, ([[COMMAND --run r > out 2> err & child=$!
          %s
          kill -KILL $(cat number); wait $child; tail -n +2 err]]):format(until_sign 'test $(wc -l < err) -gt 1'), nil,
          endless(command))
        expect(output):matches '[^\n]+\n'
        expect(output_of(("cat '%s/out'"):format(folder)):find('evaluations/s', 1, true)):equals(nil)
      end)
      it('gives the same for the same seed, whatever the number of threads, in bounded memory', function()
        local _, one = shell(command, 'COMMAND_WITH(--threads 1 --memory-limit 600M) SEED=1 --run r --quiet', nil, command.brief)
        expect(kept(command, one)):equals(ended())
        if not command.seeded then return end
        local _, other = shell(command, 'COMMAND SEED=2 --run r', nil, command.brief)
        expect(kept(command, other) ~= ended()):equals(true)
      end)
      it('ends after --seconds', function()
        local start = core.clock_s()
        local output = shell(command, ('COMMAND --seconds %g --run r >/dev/null; echo status=$?'):format(command.seconds), nil,
          endless(command))
        expect(output):matches 'status=0\n$'
        expect(core.clock_s() - start):below(20)
      end)
    end
    local function keeps_best(signal, status)
      local output, folder = interrupted(command, signal)
      expect(output):matches(('status=%d\n'):format(status))
      expect(output:match 'status=%d+\n([^\n]*)'):matches '^[^:]+$'
      local says = command.says and (signal == 'TERM' and command.says:gsub('Ctrl%%%-C', 'SIGTERM') or command.says)
      if says then expect(output):matches(says) end
      if not command.resumes then return end
      shell(command, command.resumes == 'again' and 'COMMAND SEED=1 --run q --quiet'
        or ("'%s' runs resume r > /dev/null 2>&1"):format(program), folder)
      expect(kept(command, folder)):equals(ended())
    end
    it(command.resumes and 'keeps its best at Ctrl-C, and goes on to the same bytes'
      or 'keeps its best at Ctrl-C, and says that it does not go on', function() keeps_best('INT', 130) end)
    if command.seconds then
      it('does so at SIGTERM, with status 143', function() keeps_best('TERM', 143) end)
    end
    if command.brief then
      it('keeps what it found when Ctrl-C comes just after its last search', function()
        local folder = temporary()
        core.write_file(folder .. '/strike.lua', strike)
        shell(command, [[COMMAND_WITH(-e 'dofile "strike.lua"') SEED=1 --run count --quiet > out 2> err]], folder, command.brief)
        local last = tonumber(core.read_file(folder .. '/moments'))
        local results = #core.list_folder(folder .. '/runs/count/results')
        local output = shell(command, ([[rm -rf %s; export STRIKE_AT=%d
          COMMAND_WITH(-e 'dofile "strike.lua"') SEED=1 --run r --quiet > out 2> err; echo status=$?; cat err]]):format(
          command.kept, math.max(1, last - results)), folder, command.brief)
        expect(output):matches '^status=130\n'
        expect(kept(command, folder)):equals(ended())
      end)
    end
  end)
end

-- Words of a command that choose what it does, and of them those whose work is another's or takes no time.
local parts = {
  ['study policy'] = { 'show', 'study', 'optima', 'front' },
  ['study fidelity'] = require('studies.fidelity').names,
  ['study papers'] = util.sorted_keys(require 'studies.papers.pages'),
}
local brief = { ['study fidelity collectives'] = 'formulas; fitted by the code of vtrain',
  ['study fidelity golden'] = 'a row takes milliseconds', ['study fidelity kernels'] = 'formulas',
  ['study fidelity sailor'] = 'a plan takes milliseconds; fitted by the code of vtrain' }

it('every part of a command is in the table', function()
  local missing = {}
  for command, words in require('trinity').system.sorted_pairs(parts) do
    for _, word in ipairs(words) do
      local listed = brief[command .. ' ' .. word]
      for _, entry in ipairs(commands) do
        listed = listed or entry.name == command and entry.words:match '^%S+' == word
      end
      if not listed then missing[#missing + 1] = command .. ' ' .. word end
    end
    trinity_says(command .. ' no_such_part', 2, words[#words]) -- which names them all
  end
  expect(table.concat(missing, ', ')):equals ''
end)

it('every command that takes --evaluations, --seconds, --minutes or --steps is in the table', function()
  local listed, missing = {}, {}
  for _, command in ipairs(commands) do listed[command.name] = true end
  local short = { quickstart = 'search', ['study aceso'] = 'plan', ['study unequal'] = 'plan',
    ['study whole_loop'] = 'execute' } -- experiments that run the searches of another command
  local options_of = {}
  for _, name in ipairs(declared.names()) do options_of[name] = declared.about(name).options end
  for _, study in ipairs(core.list_folder(root .. '/scripts/studies')) do
    if not study:find('.', 1, true) then
      options_of['study ' .. study] = declared.about(('studies/%s/study'):format(study)).options
    end
  end
  for name, options in util.sorted_pairs(options_of) do
    local limit = options.evaluations or options.seconds or options.minutes or options.steps or options.epochs
    if limit and not listed[name] and not short[name] then missing[#missing + 1] = name end
  end
  expect(table.concat(missing, ' ')):equals ''
end)
