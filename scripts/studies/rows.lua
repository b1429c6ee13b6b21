-- Rows of published tables, in addition to trinity.base.csv: conditions, rows that are refused.

local csv = require 'trinity.base.csv'
local progress = require 'trinity.base.progress'
local util = require 'trinity.base.util'

local rows = setmetatable({}, { __index = csv })

--- Refuses a row unless something holds.
function rows.expect(path, row, holds, message, ...)
  if not holds then csv.refuse(path, row, message, ...) end
end

--- Refuses a file without these columns.
function rows.check(path, ...) csv.read(path, ...) end

--- Returns read(row, i) for every row of a list, or { id = its own or i, refused = message } if it raises an error.
function rows.attempted(list, read)
  return util.map(list, function(row, i)
    local found, why = csv.attempt(read, row, i)
    return found or { id = row.id or tostring(i), refused = why }
  end)
end

--- Returns the rows that are not refused; refused ones are warnings. Raises an error if all are, after before(), which
--- prints other output.
function rows.accepted(all, before)
  local found = util.filtered(all, function(row) return not row.refused end)
  if #found == 0 and #all > 0 and before then before() end
  if #found == 0 and #all == 1 then util.fail('%s', all[1].refused) end
  for _, row in ipairs(all) do if row.refused then progress.warn(row.refused) end end
  if #found == 0 and #all > 0 then util.fail('no row is left: all %d are refused', #all) end
  return found
end

return rows
