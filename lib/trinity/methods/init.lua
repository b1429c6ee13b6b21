-- The registry of methods: function(problem, options) -> strategy, called alike.

local core = require 'trinity.core'
local strategy = require 'trinity.strategy'
local util = require 'trinity.util'

local methods, registered = {}, {}

--- Adds a method. `method(problem, options)` returns a strategy, or a placement to be priced.
--- options.help is a line about it; options.budget is true when it takes an evaluation budget.
function methods.register(name, method, options)
  util.expect('methods.register', 'name', name, 'string')
  util.expect('methods.register', 'method', method, 'function')
  options = options or {}
  util.refuse_unknown('methods.register', options, { help = true, budget = true })
  registered[name] = { run = method, help = options.help or '', budget = options.budget or false }
  return methods.get(name)
end

--- Names of all methods, sorted.
function methods.names()
  local names = {}
  for name in util.sorted_pairs(registered) do names[#names + 1] = name end
  return names
end

function methods.info(name)
  local method = registered[name]
  if method then return method end
  local names = methods.names()
  util.fail("no method '%s'%s (known: %s)", tostring(name),
    core.suggestion(tostring(name), names), table.concat(names, ', '))
end

--- The method called `name`, a function(problem, options) -> strategy.
function methods.get(name)
  local method = methods.info(name)
  return function(problem, options)
    if type(problem) ~= 'table' or not problem.handle then
      util.fail("method '%s': expected a problem, got %s", name, util.describe(problem))
    end
    local start = core.clock_s()
    local found = method.run(problem, options or {})
    if strategy.is(found) then return found end
    return problem:strategy(found, { method = name, evaluations = 1,
      seconds = core.clock_s() - start })
  end
end

setmetatable(methods, { __index = function(_, name) return methods.get(name) end })

require 'trinity.methods.simple'(methods)
require 'trinity.methods.random'(methods)
require 'trinity.methods.trinity'(methods)

return methods
