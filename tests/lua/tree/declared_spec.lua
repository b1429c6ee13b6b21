-- Options are declared once (lib/trinity/base/options.lua): methods take what they declare and refuse what is out of range
-- or misspelt, and no editor type of declared options is written by hand.

local commands = require 'trinity.command.commands'
local core = require 'trinity.core'
local declarations = require 'trinity.command.declarations'
local declared_of = require 'trinity.command.declared'
local option_types = require 'trinity.command.option_types'
local options = require 'trinity.base.options'
local trinity = require 'trinity'

it_golden('fields', function() return option_types.field_names(declarations.read().classes) end,
  'lib/trinity/base/field_names.lua')

-- Values that an option refuses.
local function wrong_values(entry, problem)
  local list = {}
  if type(entry.least) == 'number' then list[#list + 1] = entry.least - 1 end
  if type(entry.most) == 'number' then list[#list + 1] = entry.most * 2 + 1 end
  if type(entry.most) == 'table' then list[#list + 1] = entry.most.of(problem) + 1 end
  if entry.above then list[#list + 1] = 0 end
  if entry[2] == 'integer' then list[#list + 1] = entry.least and entry.least + 0.5 or 0.5 end
  if entry[2] ~= 'any' then list[#list + 1] = entry[2] == 'function' and 3 or print end
  return list
end

-- Methods of tensors, whose functions are C++.
local bound = { ['trinity.TensorOptions'] = true, ['trinity.GradOptions'] = true }

describe('declared options', function()
  it('have names, a help that says something, and defaults that they take themselves', function()
    option_types.texts()
    local count = 0
    for name, declared in trinity.system.sorted_pairs(options.declared) do
      expect(name):matches '^trinity%.%u%w+$'
      for _, entry in ipairs(declared.own) do
        local where = ('%s.%s'):format(name, entry.name)
        if type(entry.help) ~= 'string' or #entry.help < 4 then error(where .. ': no help', 0) end
        if entry.default ~= nil and type(entry.most) ~= 'table' then
          declared:check_some(where, { [entry.name] = entry.default })
        end
        count = count + 1
      end
    end
    expect(250):below(count)
  end)

  it('fit on one screen of 24 lines and 120 columns in --help of every command', function()
    for _, name in ipairs(commands.names()) do
      local about = commands.about(name)
      local text, lines = declared_of.text(about.options, about.description), 0
      for line in (text .. '\n'):gmatch '([^\n]*)\n' do
        lines = lines + 1
        if #line > 120 then error(('trinity %s --help: %s'):format(name, line), 0) end
      end
      expect(lines <= 24 or ('trinity %s --help: %d lines'):format(name, lines)):equals(true)
    end
  end)

  it('stand in no editor types written by hand', function()
    for _, file in ipairs(core.list_folder(root .. '/lib/trinity/_meta')) do
      if file:match '%.lua$' then
        local text = core.read_file(('%s/lib/trinity/_meta/%s'):format(root, file))
        for name in text:gmatch '%-%-%-@class (trinity%.%w+)' do
          if not bound[name] and (options.declared[name] or name:match 'Options$' or name:match 'Settings$') then
            error(('%s: %s is written by hand'):format(file, name), 0)
          end
        end
        expect(text):matches '^%-%-%-@meta'
      end
    end
  end)

  local problem = trinity.problem { cluster = trinity.cluster 'p100x2',
    graph = trinity.model('rnnlm', { batch_size = 2, sequence = 2, hidden = 4, vocabulary = 8, layers = 1 }) }
  for _, name in ipairs(library_methods()) do
    local declared = trinity.methods.info(name).options
    it('of method ' .. name .. ' are what it takes', function()
      expect(options.is(declared)):equals(true)
      local given = {}
      for _, entry in ipairs(declared.all) do
        if entry.default ~= nil then given[entry.name] = entry.default end
      end
      given.evaluations, given.quiet = 4, true
      local found, reason = trinity.methods[name](problem, given)
      if not found then expect(reason):matches '%w' end
    end)
    it('of method ' .. name .. ' are refused out of range and misspelt', function()
      local refused = 0
      for _, entry in ipairs(declared.all) do
        for _, value in ipairs(wrong_values(entry, problem)) do
          expect(function() trinity.methods[name](problem, { [entry.name] = value, quiet = true }) end)
            :raises(("methods%%.%s: option '%s': expected"):format(name, entry.name))
          refused = refused + 1
        end
        if entry.words then
          expect(function() trinity.methods[name](problem, { [entry.name] = 'nonsense', quiet = true }) end)
            :raises(("option '%s': unknown value 'nonsense' %%(known: "):format(entry.name))
        end
        local misspelt = entry.name .. '_'
        expect(function() trinity.methods[name](problem, { [misspelt] = 1 }) end)
          :raises(("methods%%.%s: unknown option '%s', did you mean '%s'%%?"):format(name, misspelt, entry.name))
      end
      expect(4):below(refused)
    end)
  end
end)
