-- The reference made of the declarations in lib/trinity, and the editor's configuration that points there.

local core = require 'trinity.core'
local declarations = require 'trinity.declarations'
local reference = require 'trinity.reference'
local trinity = require 'trinity'

describe('the reference', function()
  local declared, text = declarations.read(), reference.markdown()
  it('has every exposed name with its description', function()
    local functions = 0
    for _, name in ipairs(declared.order) do
      local class = declared.classes[name]
      for _, method in ipairs(class.methods) do
        functions = functions + 1
        local from = text:find(('%s%s('):format(method.separator, method.name), 1, true)
        if not from then error(name .. '.' .. method.name .. ' is not there') end
        if not text:find(method.description, 1, true) then error(name .. '.' .. method.name .. ' is not described') end
        for _, parameter in ipairs(method.parameters) do
          if not text:find(('- `%s`: `%s`'):format(parameter.name, parameter.type), 1, true) then
            error(('%s.%s: no parameter %s'):format(name, method.name, parameter.name))
          end
        end
      end
      for _, field in ipairs(class.fields) do
        if not text:find(('- `%s`: `%s`'):format(field.name, field.type), 1, true) then
          error(name .. '.' .. field.name .. ' is not there')
        end
      end
    end
    expect(150):below(functions)
  end)
  it('has everything that the library holds', function()
    for name in trinity.sorted_pairs(trinity) do
      if not text:find(('`trinity.%s('):format(name), 1, true) and not text:find(('- `%s`: '):format(name), 1, true) then
        error('trinity.' .. name .. ' is not there')
      end
    end
  end)
  it('gives one entry by any of its names', function()
    expect(reference.entry 'problem:evaluate'):matches '^### `problem:evaluate%(plan%)`\n\nPrices one plan'
    expect(reference.entry 'evaluate'):matches 'search:evaluate%(placements, options%?%)'
    expect(reference.entry 'PlanSpec'):matches '^## PlanSpec'
    expect(reference.entry 'trinity.PlanSpec'):equals(reference.entry 'PlanSpec')
    expect(reference.entry 'methods.random' ~= nil):truthy()
    expect(reference.entry 'trinity.ScheduleName'):matches "'gpipe'"
  end)
  it('is printed by a script, which refuses other names with a suggestion', function()
    local status, output = run_trinity 'reference trinity.model'
    expect(status):equals(0)
    expect(output):matches '### `trinity.model%(name, options%?%)`'
    status, output = run_trinity 'reference problem:evaluat'
    expect(status):equals(2)
    expect(output):matches "the reference has no entry 'problem:evaluat', did you mean 'problem:evaluate'%?"
  end)
end)

describe('.luarc.json', function()
  it('parses, and the folders that it names exist', function()
    local json = core.read_file(root .. '/.luarc.json')
    local lua = json:gsub('%[', '{'):gsub('%]', '}'):gsub('("[^"]*")%s*:', '[%1] =')
    local settings = assert(loadstring('return ' .. lua))()
    expect(settings['runtime.version']):equals 'LuaJIT'
    local library = settings['workspace.library']
    expect(#library):equals(1)
    expect(core.read_file(('%s/%s/trinity/_meta/trinity.lua'):format(root, library[1]))):matches '^%-%-%-@meta trinity'
  end)
end)
