-- README.md and the pages of the manual: their blocks run as they are printed, and show what the text says.

local core = require 'trinity.core'
local index = require 'trinity.command.manual_index'
local manual = require 'trinity.command.manual'
local chapters = dofile(root .. '/tests/lua/support/chapters.lua')

-- Blocks that do not run here, by their first line, and why.
local not_run = {
  ['scripts/bootstrap run     # installs what is missing, builds to build/, runs the main job'] =
    'installs packages; a test of the suite would start the suite',
}

-- Pages outside the manual whose blocks run, too.
local others = { { 'README', root .. '/README.md' }, { 'notes', root .. '/scripts/studies/papers/notes.md' } }

local max_words = { README = 700, manual = 24000 } -- words have a letter or a digit: bars of tables are none

local function words_of(text)
  local words = 0
  for word in text:gmatch '%S+' do words = words + (word:find '%w' and 1 or 0) end
  return words
end

local function read_all()
  local all = {}
  for i, page in ipairs(others) do all[i] = { page[1], core.read_file(page[2]) } end
  for _, name in ipairs(manual.names()) do all[#all + 1] = { name, manual.source(name) } end
  return all
end

--- Calls body(folder) with a folder in which commands of the manual run.
local function within_folder(body) return body(chapters.folder(temporary '.manual', root, program)) end

describe('the manual', function()
  for _, chapter in ipairs(read_all()) do
    local long = chapter[1] == 'executing' or chapter[1] == 'processes'
    local try = long and it_all or it
    try(chapter[1] .. ' does what it says', function()
      if chapter[1] == 'extending' then skip 'extending_spec.lua follows it in a copy of the tree' end
      local ok, problem = pcall(within_folder, function(folder) return chapters.run(chapter[2], folder) end)
      if not ok then error(('%s, %s'):format(chapter[1], tostring(problem)), 0) end
      expect(ok):truthy()
    end)
  end
  it('says why a block does not run', function()
    local seen = {}
    for _, chapter in ipairs(read_all()) do
      for _, block in ipairs(chapters.blocks(chapter[2])) do
        if block.language ~= 'text' and chapters.is_shown_only(block) then
          local reason = not_run[block.lines[1]]
          if not reason then error(('%s, line %d: no reason in manual_spec.lua'):format(chapter[1], block.line), 0) end
          seen[block.lines[1]] = true
        end
      end
    end
    for line in pairs(not_run) do expect(seen[line] or 'not in the manual: ' .. line):equals(true) end -- in any order
  end)
  it('is short', function()
    local words = 0
    for _, name in ipairs(manual.names()) do words = words + words_of(manual.source(name)) end
    expect(words):below(max_words.manual + 1)
    local _, all = core.read_file(root .. '/README.md'):gsub('%S+', '')
    expect(all):below(max_words.README + 1)
  end)
  it('has every page of the folder in one part', function()
    local listed, there = {}, {}
    for _, name in ipairs(manual.names()) do
      expect(listed[name]):equals(nil)
      listed[name] = true
      expect(manual.page(name)):equals(name)
    end
    for _, file in ipairs(core.list_folder(root .. '/lib/trinity/manual')) do
      there[#there + 1] = listed[file:match '^(.*)%.md$'] and file or file .. ' is in no part of manual.lua'
    end
    for _, file in ipairs(there) do expect(file):matches '^[%l_]+%.md$' end
    expect(#there):equals(#manual.names())
  end)
end)

it('what runs a chapter finds what fails, shows something else or is not known', function()
  for source, expected in require('trinity').system.sorted_pairs {
    ['```sh\ntrue\n```\n'] = 'ran 1', ['One\n```sh\nfalse\n```\n'] = 'line 2: status 1, expected 0',
    ['```sh status=3\nexit 3\n```\n'] = 'ran 1',
    ['```sh\nprintf "a 1 s\\nb\\n"\n```\n```output\na ... s\nb\n```\n'] = 'ran 1',
    ['```sh\nprintf "a\\nb\\n"\n```\n```output\na\nc\n```\n'] = 'line 6: expected\n  c\ngot\n  b\n',
    ['```sh\necho took 0.3\n```\n```output last-word-free\ntook 0.4\n```\n'] = 'ran 1',
    ['```sh\necho took 0.3\n```\n```output\ntook 0.4\n```\n'] = 'line 5: expected\n  took 0.4',
    ['```lua\nlocal x = 2\n```\n\n```lua\nprint(x + 1)\n```\n```output\n3\n```\n'] = 'ran 2', -- in one state
    ['```lua\nlocal x = 2\n```\n\n```lua\nprint(y + 1)\n```\n'] = "trinity: chapter.lua:6: variable 'y'", -- each line at its own number
    ['1. First:\n   ```lua file=own/a.lua\n   local a = {}\n   return a\n   ```\n   ```lua file=own/a.lua after local a = {}\n'
      .. '   a.b = 3\n   ```\n   ```sh\n   cat own/a.lua\n   ```\n   ```output\n   local a = {}\n   a.b = 3\n   return a\n   ```\n'] = 'ran 3',
    ['```lua file=a.lua\nx()\n```\n```lua file=a.lua after y()\nz()\n```\n'] = 'line 4: a.lua has 0 lines "y()"',
    ['```python\n```\n'] = 'line 1: a block of "python"', ['a\n```lua\nx()\n'] = 'line 2: the block does not end',
    ['```output\nx\n```\n'] = 'line 1: no block ran before' } do
    local outcome = within_folder(function(folder)
      local ok, problem = pcall(chapters.run, source, folder)
      return ok and 'ran ' .. problem or problem
    end)
    expect(outcome:gsub('\1%d+\1', ''):sub(1, #expected)):equals(expected) -- without the marks of parts
  end
end)

describe('trinity help', function()
  local function shows(topic, pattern)
    local status, output = run_trinity('help ' .. topic)
    expect(status == 0 and output or ('status %d\n%s'):format(status, output)):matches(pattern)
    return output
  end
  it('lists parts and their pages, and shows one', function()
    shows('', 'pages of the manual[^\n]*\nstart\n  overview +%u[^\n]+\n.-\nhow%-to guides\n.-\n  extending +%u[^\n]+\nreference\n')
    for _, name in ipairs(manual.names()) do
      shows(name, '^' .. manual.title(name):gsub('`', ''):gsub('%p', '%%%0') .. '\n===')
    end
  end)
  it('knows the names of pages of earlier versions', function()
    for earlier, now in pairs { export_formats = 'exporting', trust = 'accuracy', networks = 'models', gpus = 'executing',
      papers = 'studies' } do -- in any order
      shows(earlier, '^' .. manual.title(now):gsub('%p', '%%%0') .. '\n===')
    end
  end)
  it("finds pages by the field's words", function()
    shows('"KV head"', '^KV head: .*num_key_value_heads')
    shows('"KV heads"', '^KV head: ')
    shows('"activation recomputation"', '^activation recomputation: ')
    shows('"gradient checkpointing"', '^activation recomputation: ')
    shows('"ZeRO stage"', '^ZeRO stage: .*\n  strategy_fields +Fields')
    shows('MFU', "^MFU: .*'MFU' in the manual.*\n  planning +Search")
    shows('matmul', '^matmul: .*layers:matmul%(')
    shows('lower bound', '^lower bound: ') -- words need no quotation marks
    shows('number of parameters', '^number of parameters: .*\n  models ')
    shows('memory of a plan', '^memory of a plan: .*\n  metrics ')
    shows('"two rails"', '\n  clusters +Describe your own, with two rails')
  end)
  it('finds something for what people of the field ask', function()
    for words in ('FSDP;activation checkpointing;GQA;GEMM;all-gather;reduce-scatter;bubble;gradient accumulation;virtual '
      .. 'pipeline;wgrad;roofline;interconnect;NIC;NVLink;InfiniBand;tensor parallel;ring attention;expert parallel;MoE;DDP;'
      .. '1F1B;zero bubble;DualPipe;distributed optimizer;global batch size;HFU;OOM;mixed precision;bf16;FP8;CPU offload;flash '
      .. 'attention;straggler;torchrun;Slurm;resume;learning rate;lower bound;local SGD;parameter server;RoPE;MLA;overlap;NCCL;'
      .. 'critical path;device mesh;PPO;inference;TTFT;throughput;tokens per second;energy;config.json;ONNX;Chakra;Perfetto;'
      .. 'LoRA;load balancing;capacity factor;fragmentation;hugging face'):gmatch '[^;]+' do
      expect(#index.terms(words) + #index.find(words) > 0 or words):equals(true)
    end
  end)
  it('suggests a page where a name is misspelt', function()
    trinity_says('help clustres', 2,
      "help: nothing about 'clustres', did you mean 'clusters'%? %('trinity help' lists commands and pages%)")
  end)
end)

describe('a page in a terminal', function()
  local long = ('word '):rep(30)
  local shown = manual.plain(('# One `thing`\n\nSee [two](two.md) and **three**.\n\n- a\n  b\n- %s\n\n| x | y |\n|---|---|\n| `a\\|b` | 2 |\n\n'
    .. '1. Do:\n   ```sh\n   ls  *\n   ```\n```lua file=a.lua append\nx\n```\n'):format(long))
  it('joins lines that begin with code or stars', function()
    expect(manual.plain 'One\n`two` and\n**three**.\n\n- four\n'):equals 'One two and three.\n\n- four\n'
  end)
  it('has no marks of Markdown', function()
    expect(shown):matches '^One thing\n=========\n\nSee two and three%.\n\n%- a b\n'
    expect(shown):matches '\nx    y\n%-%-%-%-%-%-\na|b  2\n'
    expect(shown):matches '\n1%. Do:\n       ls  %*\n'
    expect(shown):matches '\n  file a%.lua, append:\n    x\n'
  end)
  it('has lines of at most 96 letters where it can', function()
    for line in shown:gmatch '[^\n]+' do expect(#line):below(97) end
    expect(shown):matches '\n%- word [word ]+\n  word'
  end)
end)
