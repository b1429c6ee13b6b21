-- The fields of a device type's description (trinity.DeviceTypeSpec): the engine reads it when a cluster is built.

local check = require 'trinity.base.check'
local util = require 'trinity.base.util'

local known = util.set [[peak_flops_per_s memory_bandwidth_bytes_per_s memory_bytes reserved_memory_bytes
    framework_bytes keeps_gradients half_width fuses_elementwise joins_products overlap operators launch_s dispatch_s
    compute_efficiency memory_efficiency contention host_bandwidth_bytes_per_s
    host_memory_bandwidth_bytes_per_s]]

--- A table of such fields; refuses others.
return function(owner, place, name, given)
  check.argument(owner, place, name, given, 'table')
  util.refuse_unknown(owner, given, known, 'field')
  return given
end
