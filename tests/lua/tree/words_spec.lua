-- Plain words: the project's own dialect is not written any more. A row of `dialect` has a pattern, what to write instead,
-- and phrases in which the word keeps a meaning that everybody knows.

local commands = require 'trinity.command.commands'
local core = require 'trinity.core'
local declared = require 'trinity.command.declared'

local dialect = {
  { 'told', 'predicted' }, { 'tells', 'predicts, says' }, { 'told apart', 'distinguished' },
  { 'priced?', 'simulated, cost', 'list price', 'prices per', 'price per', 'own prices' }, { 'pricing', 'simulating', 'ec2/pricing' },
  { 'beside', 'next to, compared with, in addition to' },
  { 'behind', 'after', 'behind NVSwitch', 'behind PCIe' },
  { 'shared? out', 'zero_stage, divide' }, { 'shares out', 'shards, divides' }, { 'dealt out', 'divided' },
  { 'level [123]', 'ZeRO stage' }, { 'computed again', 'recomputed' },
  { 'products?', 'matmul', 'product of', 'the product', 'dot-product' }, { 'meets?', 'synchronize' }, { 'meetings?', 'synchronization' },
  { 'lanes?', 'pipeline group' }, { 'colours?', 'class', 'colour refinement',
    'colours of', 'colours are', 'no colour', 'colour-blind', 'key: string, name: string, colour', 'colours.js', 'utf8, colour',
    'names and colours' }, { 'alike', 'equal, in the same way' },
  { 'cards?', 'GPU, NIC' }, { 'wires?', 'link', ': wire', 'topology.wires' }, { 'processors?', 'CPU' }, { 'rooms?', 'directory, headroom' },
  { 'draws?', 'sample', 'draws lines', 'draws the', 'cost or draw', 'draw(', 'devices draws evaluations',
    'mutants draw' }, { 'drawn', 'sampled' }, { 'evenly', 'uniformly' },
  { 'odds', 'probability' }, { 'chances', 'probabilities' }, { 'in the mean', 'on average' }, { 'quotients?', 'ratio' },
  { 'unlike', 'heterogeneous, different' }, { 'heads of keys', 'KV heads' }, { 'anew', 'again' },
  { 'strangers?', 'untrusted' }, { 'rivals?', 'baseline' }, { 'unsaid', 'lost' }, { 'cannot say', 'cannot express' },
  { 'to the bit', 'bit-identical' }, { 'to the byte', 'byte-identical' }, { 'to the letter', 'exactly' },
  { 'does not pay', 'does not help' }, { 'pretend%a*', 'emulate' }, { 'stands? on', 'depends on' },
  { 'as they come', 'unmodified' }, { 'is of', 'belongs to' }, { 'those of', 'name the noun' }, { 'that of', 'name the noun' },
  { 'as many', 'the same number', 'as many placements per second',
    'as many rings' }, { 'so many', 'N' }, { 'is given up', 'stops' },
  { 'an operator a', 'one operator per' }, { 'one a step', 'one per step' }, { 'two a device', 'two per device' },
  { 'circles?', 'cycle' }, { 'forth and back', 'forwards, then backwards' },
  { 'input parts?', 'input gradient, B' }, { 'weight parts?', 'weight gradient, W' },
}

-- What is held to it: pages, comments and messages of these folders, and the texts of `--help`.
local covered = { 'README.md', 'engine', 'lib', 'models', 'scripts', 'tests' }
local own = 'tests/lua/tree/words_spec.lua' -- has all of these words

--- A line without code, names of options, words in quotes, targets of links and marks of pictures.
local function plain(line)
  for _, code in ipairs { '`[^`]*`', '%-%-[%w_-]+', "'[%w_]+'", '%(default: [^)]*%)' } do line = line:gsub(code, ' ') end
  return (line:gsub('%]%([^)]*%)', ']'):gsub('<img [^>]*alt="([^"]*)"[^>]*>', '%1'))
end

--- Reports words of the dialect in a line of prose: report(word, instead).
local function check_line(line, report)
  local text = ' ' .. plain(line):lower() .. ' '
  for _, row in ipairs(dialect) do
    local rest = text
    for i = 3, #row do rest = rest:gsub(row[i]:lower():gsub('%p', '%%%0'), ' ') end
    local found = rest:match('%f[%w](' .. row[1] .. ')%f[%W]')
    if found then report(found, row[2]) end
  end
end

--- Reports sentences that open with "Of" or "What" and are no questions.
local function check_openings(paragraph, report)
  for sentence in (plain(paragraph) .. ' '):gmatch '(.-[.?!:])%s' do
    local first = sentence:match '^%W*(%a+)'
    if (first == 'Of' or first == 'What') and not sentence:match '%?$' then report(first .. ' ...', 'the subject first') end
  end
end

--- What a page has of the dialect: a list of texts.
local function of_page(path, source)
  local found, number, in_block, paragraph = {}, 0, false, ''
  local function report(word, instead)
    found[#found + 1] = ("%s:%d: '%s' (%s)"):format(path, number, word, instead)
  end
  for line in (source .. '\n'):gmatch '([^\n]*)\n' do
    number = number + 1
    if line:match '^%s*```' then in_block = not in_block end
    if not in_block then
      check_line(line, report)
      if line:match '^%s*$' or line:match '^[|#]' then
        check_openings(paragraph, report)
        paragraph = ''
      else
        paragraph = paragraph .. line .. ' '
      end
    end
  end
  check_openings(paragraph, report)
  return found
end

--- A comment without names of fields, options, types, methods and values.
local function without_names(words)
  for _, name in ipairs { '^@field [%w_]+%??', '^@param [%w_]+%??', '[%w_]*_[%w_]*', 'trinity%.[%w.]+', '%w+::[%w:]+',
    '%w+:%w+%(', '%w+%(%)', '%w+ =' } do
    words = words:gsub(name, ' ')
  end
  return words
end

local comment_marks = { lua = '%-%-+', h = '//+', cpp = '//+' }
local quoted = { lua = [[(['"])(.-)%1]], h = '(")(.-)"', cpp = '(")(.-)"' }

--- A test's description in a line of a file below tests/; '' for other lines. Other texts of tests are those that they expect.
local function description(line)
  return line:match '^%s*TEST_CASE%a*%("(.-)"' or line:match '^%s*SUBCASE%("(.-)"' or line:match "^%s*it[%l_]*[ (]+'(.*)'"
    or line:match '^%s*it[%l_]*[ (]+"(.*)"' or line:match "^%s*describe[ (]+'(.*)'" or line:match '^%s*describe[ (]+"(.*)"' or ''
end

--- Words of the dialect in the comments of a source, in its texts in quotes, and in the descriptions of tests.
local function of_source(path, source)
  local found, number, ending, within = {}, 0, path:match '%.(%w+)$', false
  local mark = comment_marks[ending]
  local function report(word, instead) found[#found + 1] = ("%s:%d: '%s' (%s)"):format(path, number, word, instead) end
  for line in (source .. '\n'):gmatch '([^\n]*)\n' do
    number = number + 1
    local whole = line:match('^%s*' .. mark .. '[/<]*%s?(.*)$')
    local words = whole or line:match('%s' .. mark .. '%s(.*)$') or ''
    local opening = not within and words:match '^(%a+) '
    if opening == 'Of' or opening == 'What' then report(opening .. ' ...', 'the subject first') end
    within = whole ~= nil
    local test = path:match '^tests/'
    if test then words = words .. ' ' .. description(line) end
    local code = (whole or test) and '' or line:gsub('%s' .. mark .. '%s.*', '')
    for _, text in code:gmatch(quoted[ending]) do
      if text:find ' ' then words = words .. ' ' .. text end
    end
    check_line(without_names(words), report)
  end
  return found
end

--- Files of the covered folders that end so, sorted.
local function files_of(ending)
  local list = {}
  local found = output_of(("cd '%s' && find %s -name '*.%s' | sort"):format(root, table.concat(covered, ' '), ending))
  for path in found:gmatch '[^\n]+' do
    if path ~= own then list[#list + 1] = path end
  end
  return list
end

local function all_of(endings, check)
  local all = {}
  for _, ending in ipairs(endings) do
    for _, file in ipairs(files_of(ending)) do
      for _, what in ipairs(check(file, core.read_file(('%s/%s'):format(root, file)))) do all[#all + 1] = what end
    end
  end
  return table.concat(all, '\n')
end

describe('plain words', function()
  it('are all that pages have', function() expect(all_of({ 'md' }, of_page)):equals '' end)
  it('are all that comments and messages have', function()
    expect(all_of({ 'lua', 'h', 'cpp' }, of_source)):equals ''
  end)
  it('are all that --help shows', function()
    local all = {}
    for _, name in ipairs(commands.names()) do
      local about = commands.about(name)
      for _, what in ipairs(of_page('trinity ' .. name .. ' --help', declared.text(about.options, about.description, true))) do
        all[#all + 1] = what
      end
    end
    expect(table.concat(all, '\n')):equals ''
  end)
  it('are asked for by name', function()
    expect(table.concat(of_source('x.h', '/// told.\nint told = 0;  // told\n'), '; '))
      :equals "x.h:1: 'told' (predicted); x.h:2: 'told' (predicted)"
    local function of(text) return table.concat(of_page('x.md', text), '; ') end
    expect(of 'The step is told.'):equals "x.md:1: 'told' (predicted)"
    expect(of '`told` is an option\n\n```lua\ntold()\n```\n'):equals ''
    expect(of 'GPUs behind NVSwitch, one behind the other'):equals "x.md:1: 'behind' (after)"
    expect(of 'It waits. What it waits for is\ntwo words.'):matches "'What %.%.%.' %(the subject first%)"
    expect(of 'What does it wait for?'):equals ''
    expect(table.concat(of_source('x.lua', "local a = 1 -- told\nfail 'a plan is priced'\nlocal told = 'told'"), '; '))
      :equals "x.lua:1: 'told' (predicted); x.lua:2: 'priced' (simulated, cost)"
    expect(table.concat(of_source('x.lua', '-- Of a step\n-- What it is\n'), '; ')):equals "x.lua:1: 'Of ...' (the subject first)"
    expect(table.concat(of_source('x.cpp', '  fail("a plan is priced");  // told\n/// What it is.\n'), '; '))
      :equals "x.cpp:1: 'told' (predicted); x.cpp:1: 'priced' (simulated, cost); x.cpp:2: 'What ...' (the subject first)"
  end)
end)
