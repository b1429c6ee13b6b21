-- Tables of other authors, in ../shared/data next to the checkout.

local core = require 'trinity.core'

--- `given`, or where it is '' the path of a table or folder there. Where that is missing, the study ends with a
--- sentence.
return function(given, name)
  if given ~= '' then return given end
  local path = ('%s/../shared/data/%s'):format(core.home, name)
  if core.exists(path) or core.exists(path .. '/.') then return path end
  print(('skipped: no %s here, which this study reads by default'):format(path))
  os.exit(0)
end
