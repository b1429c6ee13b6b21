-- Names of operators, models, files and runs that command a terminal: no command and no message prints them raw.

local core = require 'trinity.core'

local folder = temporary()
local model = folder .. '/m\27[1m\194\155.json'

local function make()
  core.write_file(folder .. '/make.lua', ([[
    local trinity = require 'trinity'
    local builder = trinity.graph.new { name = 'g\27]0;PWNED\7' }
    local last
    for i = 1, 6 do
      local name = ('op%%d\27[31m\194\155\226\128\174'):format(i)
      builder:add_operator { name = name, type = 'T\27[2J', time_s = 0.01 * i }
      if last then builder:add_edge(last, name, 1000) end
      last = name
    end
    builder:build():save(%q)]]):format(model))
  local status, output = run_trinity(("'%s/make.lua' --run none"):format(folder))
  if status ~= 0 then error(output, 0) end
end

--- The output of a line of the shell, where $T is the program and $M commands a terminal: it must not do so.
local function printed(line)
  local output = output_of(("cd '%s' && unset TRINITY_RUNS; T='%s'; M='\27[31m\194\155\226\128\174'; { timeout 100 %s; } 2>&1")
    :format(folder, program, line))
  local at = output:find '[%z\1-\8\11-\31\127]' or output:find '\194[\128-\159]' or output:find('\226\128\174', 1, true)
  if at then error(('%s: %q'):format(line, output:sub(math.max(1, at - 60), at + 60)), 0) end
  return output
end

local function check(words)
  return printed('"$T" ' .. words:gsub('MODEL', function() return "'" .. model .. "'" end))
end

it('commands print them as text', function()
  make()
  local shown = 0
  for _, words in ipairs {
    'simulate --model MODEL --cluster p100x2', 'search --model MODEL --cluster p100x2 --evaluations 20 --run one',
    'search --model MODEL --cluster p100x2 --evaluations 20 --method random,metis', 'info --model MODEL',
    'info --model MODEL --cluster p100x2', 'simulate --model MODEL --cluster p100x2 --trace t.json', 'export --model MODEL',
    'export --model MODEL --format dot', 'export --model MODEL --format placement --cluster p100x2',
    'pipeline MODEL --devices 2', 'runs', 'runs show one', 'runs compare one one', 'runs watch one --once',
    'runs report runs/one', 'execute --model MODEL --cluster p100x2 --seconds 1',
    'simulate --model MODEL --cluster nowhere', 'search --model MODEL --cluster p100x2 --method nothing',
    'execute --model MODEL --profile p.json', "runs show 'x\27[1m'", "'x\27[1m.lua'", "'--x\27[1m'",
    "search --model 'x\27[1m.json' --cluster p100x2", "runs --runs 'x\27[1m'", "-e 'error \"x\\27[1m\"'",
    "-l 'x\27[1m'" } do
    if check(words):find('\\x1B', 1, true) then shown = shown + 1 end
  end
  expect(shown > 10):equals(true)
end)

it('the newer commands print names of cases, data, settings and columns as text', function()
  with_torch()
  local mark, shown = '\\u001b[31mX\\u0007\\u009b\\u202e', 0
  core.write_file(folder .. '/speeds.csv', 'id,model,hidden,layers,heads,ffn,vocab,sequence,global_batch,micro_batch,gpus,gpu\n'
    .. 'a\27[31m\194\155,GPT\27[31m,256,2,4,1024,512,128,8,1,8,H100-80GB\n')
  core.write_file(folder .. '/d\27[31m.csv', 'a\27[31m,b,label\194\155\n1,2,x\27[2J\n')
  core.write_file(folder .. '/select.json', (('{"problem":{"name":"nM","nodes":{"intervals":[[0,1]],"costs":[[1,2]],'
    .. '"usages":[[1,1]]},"edges":{"nodes":[],"costs":[]},"usage_limit":7}}'):gsub('M', function() return mark end)))
  core.write_file(folder .. '/hf/config.json', '{"model_type":"llama' .. mark .. '","hidden_size":64}')
  core.write_file(folder .. '/strategy.json', '{"format":"trinity-strategy' .. mark .. '"}')
  for _, words in ipairs { 'study fidelity published --rows speeds.csv',
    "study fidelity collectives --rows 'd\27[31m.csv'", "study fidelity 'x\27[31m'",
    "execute --model mlp --data 'd\27[31m.csv' --steps 1 --warm_up 0", "execute --model mlp --load 'x\27[31m'",
    'info --model hf/config.json', "info --model 'x\27[31m'", 'study select select.json', "study policy show 'x\27[31m'",
    'simulate --model alexnet --strategy strategy.json', "study train_distributed --task 'x\27[31m'",
    "train --graphs 'x\27[31m'", "study papers 'x\27[31m'", "help 'x\27[31m'",
    "help --markdown 'x\27[31m'" } do
    if check(words .. ' --runs none'):find('[31m', 1, true) then shown = shown + 1 end
  end
  expect(shown > 12):equals(true)
end)

it('what launchers, profiles and the prompt are given is printed as text', function()
  with_torch()
  local mark = '\27[31m\194\155\226\128\174'
  local net = require('trinity').graph.layers.new('net' .. mark)
  net:linear('linear', net:input('x', { 2, 4 }), 3)
  net:build():save(folder .. '/net.json')
  output_of(("cd '%s' && '%s' execute --model net.json --steps 2 --warm_up 1 --largest_copy 4096 --profile p.json --run none")
    :format(folder, program))
  local profile = core.read_file(folder .. '/p.json')
  core.write_file(folder .. '/old.json', (profile:gsub('"trinity": "[^"]*"', '"trinity": "\\u001b[31m"')))
  core.write_file(folder .. '/spin\27[31m.lua', 'for i = 1, 1e8 do local _ = i % 7 end')
  for _, text in ipairs { 'env RANK="$M" WORLD_SIZE=2 "$T" help --check', 'env RANK=0 WORLD_SIZE="$M" "$T" help --check',
    'env OMPI_COMM_WORLD_RANK="$M" OMPI_COMM_WORLD_SIZE=1 "$T" help --check',
    '"$T" simulate --model net.json --cluster old.json', [[sh -c 'cp p.json "$2.json"; exec "$1" simulate --model alexnet --cluster "$2.json"' x "$T" "$M"]],
    [["$T" --profile folded 'spin]] .. '\27' .. [[[31m.lua']], [[sh -c "echo \"help '$M'\" | '$T' -i"]] } do
    expect(printed(text)):matches '%[31m'
  end
end)

it('nothing but trinity.base.progress writes on standard error', function()
  local wrong = {}
  for path in output_of(("cd '%s' && find lib scripts models -name '*.lua'"):format(root)):gmatch '[^\n]+' do
    local text = core.read_file(root .. '/' .. path):gsub('%-%-[^\n]*', '')
    if path ~= 'lib/trinity/base/progress.lua' and text:find 'io%.stderr *:' then wrong[#wrong + 1] = path end
  end
  expect(table.concat(wrong, ' ')):equals ''
end)

it('a script prints what it likes', function()
  script_says(0, '^\27%[1mx\27%[0m\n$', 'SCRIPT', 'print "\\27[1mx\\27[0m"')
end)

it('printable text keeps every character that only shows', function()
  expect(core.printable 'a\tb\nä│█ 漢 🙂'):equals 'a\tb\nä│█ 漢 🙂'
  expect(core.printable '\27[1m\r\0\127\194\155\226\128\174\255\233'):equals '\\x1B[1m\\x0D\\x00\\x7F\\u{009B}\\u{202E}\\xFF\\xE9'
end)
