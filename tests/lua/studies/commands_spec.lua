-- Studies (scripts/studies) as commands: each prints its golden text at a size that takes seconds, has a page that says what
-- it is, and is in the list. Pages of papers have golden texts of their own, for `test all`. Nothing in the product needs a
-- study, and old commands are refused with the new words.

local core = require 'trinity.core'
local masked = setfenv(loadfile(root .. '/tests/lua/support/script_masks.lua'), getfenv())()
local util = require 'trinity.base.util'

local small = {
  fidelity = ([[collectives --rows '%s/tests/data/collectives.csv']]):format(root),
  papers = 'trinity --only table3 --models gnmt --output ' .. temporary '.folder',
  placement = ("--folder '%s/tests/data/profiles' --devices 2 --evaluations 20 --seeds 1"):format(root),
  policy = 'show --graphs vgg16:8 --evaluations 60 --seeds 2',
  select = ("'%s/tests/data/selection/example.json' --json"):format(root),
  tensorflow = 'alexnet --batch_size 1',
  train_distributed = '--task characters --epochs 2 --batches 2 --batch_size 2 --warmup 0',
  unequal = '--networks tiny --pools dgx_a100:2+rtx2080ti_8:2 --batch 8 --evaluations 9 --seeds 2 --csv ' .. temporary(),
  whole_loop = '--networks rnnlm:1:sequence=3:hidden=16:vocabulary=40 --evaluations 20 --steps 2 --warm_up 1 --copies 1 '
    .. '--largest_copy 65536 --output ' .. temporary(),
}

local quick_pages = {
  daso = '--quick --only claims,skips,map --models resnet50 --output ' .. temporary '.folder',
  pase = '--quick --only table2,alexnet --models alexnet,inception_v3,rnnlm --output ' .. temporary '.folder',
}
local pages = {
  tapp = '--only claims,learning --quick --models vgg16 --updates 2 --output ' .. temporary '.folder',
  trinity = '--only stages --quick --updates 8 --models gnmt --output ' .. temporary '.folder',
  pase = '--only figure6 --quick --models rnnlm --output ' .. temporary '.folder',
}

local names = {}
for _, name in ipairs(core.list_folder(root .. '/scripts/studies')) do
  if core.exists(('%s/scripts/studies/%s/study.lua'):format(root, name)) then names[#names + 1] = name end
end

--- The standard output of a study, which ends with status 0.
local function printed(name, arguments)
  local errors = temporary()
  local text, status = output_of(("cd '%s' && timeout -k 5 300 '%s' study %s %s 2>'%s'; echo \"status=$?\""):format(root,
    program, name, arguments, errors)):match '^(.*)status=(%d+)\n$'
  expect(status == '0' or text .. core.read_file(errors)):equals(true)
  return text
end

describe('study', function()
  for _, name in ipairs(names) do
    if small[name] then
      it_golden('studies/' .. name, function() return masked(name, printed(name, small[name])) end)
    end
  end
  it_shared('aceso plans by the profiles of the shared directory', function()
    expect(printed('aceso', '--gpus 2 --seconds 2')):matches "^gpt_1_3B on 2 GPUs, .* by Aceso's rules"
  end)
end)

describe('the page of', function()
  local function page(name, words, golden)
    it_golden('studies/' .. golden, function() return masked('papers_' .. name, printed('papers', name .. ' ' .. words)) end)
  end
  for _, name in ipairs(util.sorted_keys(quick_pages)) do page(name, quick_pages[name], 'papers_' .. name) end
  all_only()
  page('tapp', pages.tapp, 'papers_tapp')
  page('trinity', pages.trinity, 'papers_trinity')
  page('pase', pages.pase, 'papers_pase_figure6')
end)

describe('the studies', function()
  it('are listed, each with the sentence of its README.md, and explain their arguments', function()
    local listed = trinity_says('study', 0)
    for _, name in ipairs(names) do
      local readme = core.read_file(('%s/scripts/studies/%s/README.md'):format(root, name))
      local sentence = readme:match '^# [^\n]*\n\n([^\n]*%.)\n'
      expect(sentence and listed:find(sentence, 1, true)):truthy()
      expect(readme:find('trinity study ' .. name, 1, true)):truthy()
      expect(small[name] or name == 'aceso'):truthy()
      trinity_says(('study %s --help'):format(name), 0, '\n\noptions:\n')
    end
    trinity_says('study fidelty', 2, "unknown study 'fidelty', did you mean 'fidelity'%?")
  end)
  it('end with a sentence where what they read of the shared directory is not there', function()
    local folder = temporary()
    output_of(("mkdir -p '%s/tree' && cp -r '%s/lib' '%s/scripts' '%s/models' '%s/tree'"):format(folder, root, root, root, folder))
    for _, words in ipairs { 'aceso', 'placement', 'fidelity published', 'fidelity vtrain', 'fidelity golden' } do
      local said = output_of(("cd '%s/tree' && TRINITY_HOME=$PWD '%s' study %s 2>&1; echo status=$?"):format(folder, program,
        words))
      expect(said):matches '^skipped: no %S*shared/data/%S+ here[^\n]*\nstatus=0\n$'
    end
    output_of(("rm -r '%s/tree/scripts/studies'"):format(folder))
    expect(output_of(("cd '%s/tree' && TRINITY_HOME=$PWD '%s' study 2>&1; echo status=$?"):format(folder, program)))
      :matches 'expected the studies of the source tree, got no directory; use a checkout of trinity\nstatus=1\n$'
  end)
  it('are required by nothing in the product', function()
    expect(output_of(([[cd '%s' && grep -rlE "require[( ]+'studies" lib models scripts/*.lua engine]]):format(root))):equals ''
    expect(output_of(([[cd '%s' && grep -rlE "require[( ]+'studies" scripts/studies | wc -l]]):format(root)):match '%d+' + 0 > 20)
      :equals(true)
  end)
  it('keep a run that resumes by their name', function()
    local runs = temporary()
    trinity_says(("study select '%s/tests/data/selection/example.json' --runs '%s' --run r --quiet"):format(root, runs), 0)
    local start = require('trinity').files.json.decode(core.read_seal(runs .. '/r'))
    expect(start.script):equals 'study'
    expect(start.arguments[1]):equals 'select'
  end)
  it('have the commands of before among the old words', function()
    for old, now in util.sorted_pairs(require 'trinity.base.renamed') do
      local name = now:match '^study (%S+)'
      expect(not name or core.exists(('%s/scripts/studies/%s/study.lua'):format(root, name))):equals(true)
      expect(name and core.exists(('%s/scripts/%s.lua'):format(root, old))):equals(name and false)
    end
  end)
end)

describe('rows of the paper Trinity', function()
  it('are chosen by names that exist', function()
    trinity_says('study placement --folder paper --only inception_v3,gmnt', 2,
      "option '%-%-only': no row of the paper has 'gmnt', did you mean 'gnmt'%? %(known: gnmt, inception_v3,")
    trinity_says('study placement --folder paper --devices 3', 2, "option '%-%-devices': no row of the paper has '3' %(known: 2, 4%)")
  end)
end)
