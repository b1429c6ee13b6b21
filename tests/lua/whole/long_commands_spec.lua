-- What every long command promises (tests/lua/support/long_commands.lua): progress on standard error alone, results
-- that --seed fixes and the number of threads does not change, an end after --seconds, bounded memory, and Ctrl-C that
-- keeps the best so far and from which it goes on to the same bytes.

local commands = dofile(root .. '/tests/lua/support/long_commands.lua')

-- Runs a piece of shell in a new folder; COMMAND is the command with its words. Returns its output, and the folder.
local function shell(command, text, folder)
  folder = folder or temporary()
  local line = ("timeout -k 5 100 '%s' %s %s"):format(program, command.name, command.words)
  local options = ("timeout -k 5 100 '%s' OPTIONS %s %s"):format(program, command.name, command.words)
  text = text:gsub('COMMAND_WITH(%b())', function(words)
    return (options:gsub('OPTIONS', function() return words:sub(2, -2) end))
  end):gsub('COMMAND', function() return line end)
  return output_of(("mkdir -p '%s'; cd '%s' && unset TRINITY_RUNS; { %s\n} 2>&1"):format(folder, folder, text)), folder
end

-- The bytes of what a command kept, without what clocks say.
local function kept(command, folder)
  return output_of(([[cd '%s' && for f in %s; do echo $f; sed -E 's/"(seconds|taken_s|search_seconds)": ?[0-9.e+-]+//g' $f
    done | cksum; ls %s 2>/dev/null | wc -l]])
    :format(folder, command.kept, command.kept))
end

for i, command in ipairs(commands) do
  describe(('%d %s'):format(i, command.name), function()
    local whole
    it('shows progress on standard error alone, and nothing with --quiet', function()
      local status, folder = shell(command, 'COMMAND --seed 1 --run r > out 2> err; echo status=$?')
      expect(status):equals 'status=0\n'
      whole = kept(command, folder)
      expect(whole):matches '\n[1-9]%d*\n$'
      expect(output_of(("cat '%s/err'"):format(folder))):matches '%S'
      expect(output_of(("cat '%s/out'"):format(folder)):find('evaluations/s', 1, true)):equals(nil)
      expect((shell(command, 'COMMAND --seed 1 --run r --quiet 2>&1 >out'))):equals ''
    end)
    it('gives the same for the same seed, whatever the number of threads, in bounded memory', function()
      local _, one = shell(command, 'COMMAND_WITH(--threads 1 --memory-limit 600M) --seed 1 --run r')
      expect(kept(command, one)):equals(whole)
      if not command.seeded then return end
      local _, other = shell(command, 'COMMAND --seed 2 --run r')
      expect(kept(command, other) ~= whole):equals(true)
    end)
    if command.seconds then
      it('ends after --seconds', function()
        local words = command.words:gsub('%-%-evaluations %d+', '--evaluations 100000000'):gsub('%-%-rounds %d+', '')
        local start = require('trinity.core').clock_s()
        local output = shell({ name = command.name, words = words }, 'COMMAND --seconds 1 --run r >/dev/null; echo status=$?')
        expect(output):matches 'status=0\n$'
        expect(require('trinity.core').clock_s() - start):below(20)
      end)
    end
    if command.resumes then
      it('keeps its best at Ctrl-C, and goes on to the same bytes', function()
        local output, folder = shell(command, ([[COMMAND --seed 1 --run r --quiet > out 2>&1 & pid=$!
          for i in $(seq 400); do { %s; } && break; kill -0 $pid 2>/dev/null || break; sleep 0.05; done
          kill -INT $pid; wait $pid; echo status=$?; ls %s]]):format(command.after, command.kept))
        expect(output):matches 'status=130\n.*%a+'
        shell(command, command.resume and 'COMMAND --seed 1 --run q --quiet ' .. command.resume
          or ("'%s' runs resume r > /dev/null 2>&1"):format(program), folder)
        expect(kept(command, folder)):equals(whole)
      end)
    end
  end)
end
