#!/usr/bin/env trinity
-- One page per paper: every table and figure as rows with the paper's claim, the result of its settings here and of
-- ours, the number of policy updates, the number of seeds, and a verdict (page.lua). The pages
-- trinity.md, tapp.md, daso.md and pase.md in this folder have what it prints as Markdown.

local trinity = require 'trinity'
local ending = require 'studies.ending'
local page = require 'studies.papers.page'
local pages = require 'studies.papers.pages'
local util = require 'trinity.base.util'

local papers = { 'trinity', 'tapp', 'daso', 'pase' }

local options = trinity.options {
  'Sets what a paper claims and results here: trinity, tapp, daso or pase.',
  paper = { default = '', position = true, help = 'trinity, tapp, daso or pase' },
  only = { default = '', help = "sections of the page with commas; '': all; '?' lists them" },
  models = { default = '', help = "networks with commas; '': all that a section has" },
  quick = { default = false, help = 'at most 3 minutes on two cores: fewer cases, updates and seeds' },
  seeds = { default = 0, help = 'runs of methods with random numbers; 0: 3 (tapp: 5), and 1 with --quick', min = 0,
    max = 1000, integer = true },
  seed = { default = 1, help = 'the first seed', min = 0, integer = true },
  updates = { default = 0, help = "updates of every policy; 0: 100 as the paper's figures have, and 3 with --quick "
    .. '(tapp: 100)', min = 0, integer = true },
  seconds = { default = math.huge, help = 'wall-clock limit: what is not measured by then is missing; rows then depend '
    .. 'on the machine', min = 0 },
  format = { default = 'text', help = 'text, or markdown' },
  json = { default = false, help = 'JSON on standard output and nothing else' },
  output = { default = 'runs/reproduce', writes = '/x.csv', help = 'folder of pictures, CSV and what is kept' },
}

local function chosen(name, list, what)
  for _, known in ipairs(list) do if known == name then return name end end
  if name == '' then util.fail_usage('%s: expected one of %s', what, table.concat(list, ', ')) end
  util.fail_usage('%s: unknown name %s', what, util.unknown(name, list))
end

require('trinity.graph.model').set_cluster_options { constants = 'data_sheet' } -- as papers describe their machines
local paper = pages[chosen(options.paper, papers, 'trinity study papers PAPER')]()

--- The sections that --only names, in the order of the page.
local function sections()
  local names = util.map(paper.sections, function(section) return section.name end)
  if options.only == '?' then
    for _, section in ipairs(paper.sections) do print(('%-12s %s'):format(section.name, section.title)) end
    os.exit(0)
  end
  local wanted, list = {}, {}
  for _, name in ipairs(util.words(options.only)) do wanted[chosen(name, names, 'option --only')] = true end
  for _, section in ipairs(paper.sections) do
    if next(wanted) == nil or wanted[section.name] then list[#list + 1] = section end
  end
  return list
end

local began_s = trinity.system.clock_s()

local function settings_of()
  chosen(options.format, { 'text', 'markdown' }, 'option --format')
  local models
  for _, name in ipairs(util.words(options.models)) do
    models = util.merged(models, { [paper.models and chosen(name, paper.models, 'option --models') or name] = true })
  end
  local quick = util.merged({ updates = 3, seeds = 1 }, paper.quick)
  local updates = options.updates > 0 and options.updates or options.quick and quick.updates or 100
  local seeds = options.seeds > 0 and options.seeds or options.quick and quick.seeds or paper.seeds or 3
  return { quick = options.quick, seeds = seeds,
    seed = options.seed, updates = updates, models = models, format = options.format,
    output = ('%s/%s'):format(options.output, paper.name), json = options.json,
    end_s = began_s + options.seconds }
end

local settings, chosen_sections, all = settings_of(), sections(), {}
settings.shared = settings -- what sections of a page share is kept by it
function settings.keep(...) trinity.run:result(...) end
if not options.json then
  print(('# %s\n\n%s\n'):format(paper.title, page.wrapped(paper.source)))
end
local function run_section(section)
  local own, less = util.merged(settings), {}
  if section.learns and settings.updates < 100 then
    less[1] = ('%d update%s instead of 100'):format(settings.updates, settings.updates > 1 and 's' or '')
  end
  if options.quick and section.quick then less[#less + 1] = section.quick end
  if #less > 0 then own.reduced = 'reduced: ' .. table.concat(less, '; ') end
  local rows, notes, stopped = page.run(section, own)
  local data = page.data(rows)
  local heads = section.heads and { paper_settings = section.heads.literal, ours = section.heads.ours }
  all[#all + 1] = { section = section.name, title = section.title, reduced = own.reduced, heads = heads,
    rows = data, notes = notes }
  trinity.run:result('reproduction', all[#all], ('%s: %s'):format(paper.name, section.title))
  if not options.json then
    print(page.text(section, rows, notes, own))
    io.stdout:flush()
  end
  return stopped
end

-- a signal between the end of a section and its result also ends the script after the result
local asked = trinity.system.stoppable(function()
  for _, section in ipairs(chosen_sections) do
    if run_section(section) then return end
  end
end)
if asked then os.exit(trinity.system.stop_status()) end
local made_by = ('trinity study papers %s'):format(ending.words())
if options.json then
  print(trinity.files.json.encode { paper = paper.name, seed = settings.seed, seeds = settings.seeds,
    updates = settings.updates, quick = settings.quick, sections = all, command = made_by })
  return
end
print(('simulated; seeds %d to %d where random numbers are used\nmade by: %s'):format(settings.seed,
  settings.seed + settings.seeds - 1, made_by))
