-- The reference made of the declarations in lib/trinity, and the editor's configuration that points there.

local core = require 'trinity.core'
local declarations = require 'trinity.command.declarations'
local reference = require 'trinity.command.reference'
local trinity = require 'trinity'

describe('the reference', function()
  local declared, text = declarations.read(), reference.markdown()
  it('says of every function since which version it is there, none later than this one', function()
    local function number(version)
      local major, minor, patch = version:match '^(%d+)%.(%d+)%.(%d+)$'
      return (major * 1000 + minor) * 1000 + patch
    end
    local lacks = {}
    for name, class in trinity.system.sorted_pairs(declared.classes) do
      for _, method in ipairs(class.methods) do
        if not method.since then lacks[#lacks + 1] = name .. method.separator .. method.name
        else expect(number(method.since) <= number(trinity.system.version)):equals(true) end
      end
    end
    expect(table.concat(lacks, ' ')):equals ''
    expect(text):matches 'since 0%.1%.0 where nothing else is said'
  end)
  it('has everything that the library holds', function()
    local names = 0
    for name in trinity.system.sorted_pairs(trinity) do
      names = names + 1
      if not text:find(('`trinity.%s('):format(name), 1, true) and not text:find(('- `%s`: '):format(name), 1, true) then
        error('trinity.' .. name .. ' is not there')
      end
    end
    expect(names):equals(29)
  end)
  it('gives one entry by any of its names', function()
    expect(reference.entry 'problem:evaluate'):matches '^### `problem:evaluate%(plan: trinity.Plan%): trinity.Metrics`\nSimulates one training step of a plan'
    expect(reference.entry 'evaluate'):matches 'search:evaluate%(plans: '
    expect(reference.entry 'PlanSpec'):matches '^## PlanSpec'
    expect(reference.entry 'trinity.PlanSpec'):equals(reference.entry 'PlanSpec')
    expect(reference.entry 'methods.random' ~= nil):truthy()
    expect(reference.entry 'trinity.ScheduleName'):matches "'gpipe'"
  end)
  it('is printed by trinity help --markdown, which refuses other names with a suggestion', function()
    trinity_says('help --markdown trinity.model', 0, '### `trinity.model%(name: string, options%?: trinity.ModelOptions%): trinity.Graph`')
    trinity_says('help --markdown problem:evaluat', 2,
      "the reference has no entry 'problem:evaluat', did you mean 'problem:evaluate'%?")
  end)
end)

describe('declarations', function()
  local folder = temporary()
  os.execute("mkdir '" .. folder .. "'")
  local function read(files)
    for name, text in trinity.system.sorted_pairs(files) do core.write_file(folder .. '/' .. name, text) end
    return declarations.read(folder .. '/').classes
  end
  local thing = "---@class Thing\n---@field size integer in bytes\n---@field cut fun(self: Thing, at?: integer): rest_of_it: Thing\n"
    .. 'local Thing = {}\nfunction Thing.__index() end\n--- Doubles.\n---@param by number how\n--- often\n---@return Thing\n'
    .. 'function Thing:double(%s) end\n---@return fun(self: Thing): number\nlocal function make(of) end\nThing.made = make "x"\n'
  it('stand above definitions', function()
    local class = read { ['thing.lua'] = thing:format 'by' }.Thing
    local double, cut = class.members.double, class.members.cut
    expect(#class.methods):equals(3)
    expect(#class.fields):equals(1)
    expect(double.separator .. double.description .. double.parameters[1].text):equals ':Doubles.how often'
    expect(cut.separator .. cut.parameters[1].type .. cut.returns[1].type .. cut.returns[1].text):equals ':integerThingrest of it'
    expect(cut.parameters[1].optional):truthy()
    expect(class.members.made.returns[1].type):equals 'number'
  end)
  it('are found by the names that a module gives functions of others', function()
    local class = read { ['thing.lua'] = thing:format 'by', ['maker.lua'] = "---@return Thing\nlocal function new() end\nreturn new\n",
      ['module.lua'] = "---@class ThingModule\nlocal module = {\n  build = require 'trinity.maker',\n}\n" }.ThingModule
    expect(class.members.build.returns[1].type):equals 'Thing'
  end)
  it('are refused where they list other parameters than the function', function()
    expect(function() read { ['thing.lua'] = thing:format 'times' } end):raises 'thing%.lua:10: not understood: function Thing:double%(times%)'
    expect(function() read { ['thing.lua'] = '---@param x number\nlocal x = 1\n' } end):raises 'thing%.lua:2: not understood'
  end)
  core.remove_tree(folder)
end)

describe('.luarc.json', function()
  it('parses, and the folders that it names exist', function()
    local json = core.read_file(root .. '/.luarc.json')
    local lua = json:gsub('%[', '{'):gsub('%]', '}'):gsub('("[^"]*")%s*:', '[%1] =')
    local settings = assert(loadstring('return ' .. lua))()
    expect(settings['runtime.version']):equals 'LuaJIT'
    local library = settings['workspace.library']
    expect(table.concat(library, ' ')):equals 'lib build/types'
    expect(core.read_file(root .. '/lib/trinity/_meta/trinity.lua')):matches '^%-%-%-@meta trinity'
    expect(core.read_file(program:match '^(.*)/' .. '/types/search.lua')):matches '^%-%-%-@meta _.*\n%-%-%-@class trinity%.%w+'
  end)
end)
