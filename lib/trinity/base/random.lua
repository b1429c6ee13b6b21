-- Random streams in compiled loops: their methods call the engine through the FFI, 10 times faster than through
-- Lua's C interface. Without the JIT the plain methods are the faster ones and stay.

local core = require 'trinity.core'
local fields = require 'trinity.base.fields'
local ffi = require 'ffi'
local jit = require 'jit'

if jit.status() then
  ffi.cdef [[
    struct trinity_random_functions {
      double (*uniform)(void *);
      double (*normal)(void *);
      double (*integer)(void *, double);
    };
  ]]
  local functions = ffi.cast('const struct trinity_random_functions *', core.random_functions)
  local methods = core.random_methods
  local integer = methods.integer

  -- The plain method raises errors for a closed stream or a wrong bound.
  for _, name in ipairs { 'uniform', 'normal' } do
    local plain, compiled = methods[name], functions[name]
    methods[name] = function(self)
      if type(self) == 'userdata' and getmetatable(self) == 'random stream' then
        local value = compiled(self)
        if value == value then return value end
      end
      return plain(self)
    end
  end

  function methods.integer(self, bound)
    if type(bound) == 'number' and type(self) == 'userdata' and getmetatable(self) == 'random stream' then
      local value = functions.integer(self, bound)
      if value == value then return value end
    end
    return integer(self, bound)
  end
end

fields.module('random stream', core.random_methods)

return fields.limited('trinity.random', core.random, 3)
