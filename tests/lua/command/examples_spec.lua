-- Every public function has an example in the reference, and it runs, in a folder of its own with objects of the names
-- that examples use.

local declarations = require 'trinity.command.declarations'
local examples = dofile(root .. '/tests/lua/support/examples.lua')

-- Examples that need more than a process and a folder; other specs call these functions.
local elsewhere = {
  ['trinity.Job'] = 'dist/dist', ['trinity.Work'] = 'dist/dist', ['trinity.DistModule'] = 'dist/dist',
  ['trinity.Search'] = 'search/search: objects of a running search', ['trinity.execute'] = 'execute/execute', ['trinity.job'] = 'job/job',
}

describe('examples of the reference', function()
  examples.enter(temporary '.examples')
  local declared = declarations.read()
  for _, class in ipairs(declared.order) do
    for _, method in ipairs(declared.classes[class].methods) do
      local name = ('%s%s%s'):format(class, method.separator, method.name)
      it(name .. ' has one that runs', function()
        local code = examples.text(method)
        if not code then error('no example', 0) end
        expect(#code):below(400)
        if elsewhere[class] or elsewhere[class .. '.' .. method.name] then return end
        local chunk = loadstring('return ' .. code) or assert(loadstring(code))
        local ok, message = pcall(setfenv(chunk, examples.environment(class, method.name)))
        expect(ok and 'runs' or ('%s: %s'):format(code, tostring(message))):equals 'runs'
      end)
    end
  end
  examples.leave()
end)
