-- Tables of measurements: CSV as lib/trinity/base/csv.lua reads it, and rows that are refused.

local core = require 'trinity.core'
local progress = require 'trinity.base.progress'
local util = require 'trinity.base.util'

local csv = util.merged({}, require 'trinity.base.csv')

--- A whole number of a row from `least` (1) to 2^31; where the field is empty: otherwise.
---@param path string
---@param row table<string, string>
---@param column string
---@param otherwise? integer
---@param least? integer
---@return integer
function csv.whole(path, row, column, otherwise, least)
  local value = csv.number(path, row, column, otherwise)
  if not (value >= (least or 1) and value % 1 == 0 and value <= 2 ^ 31) then
    csv.refuse(path, row, "column '%s': expected a whole number from %d, got %s", column, least or 1,
      util.describe(row[column]))
  end
  return value
end

--- The word of a row's field, one of `known`; where the field is empty: otherwise.
---@param path string
---@param row table<string, string>
---@param column string
---@param known string[]
---@param otherwise? string
---@return string
function csv.word(path, row, column, known, otherwise)
  local word = row[column]
  if (word == nil or word == '') and otherwise then return otherwise end
  for _, one in ipairs(known) do if word == one then return word end end
  csv.refuse(path, row, "column '%s': expected %s, got %s", column, table.concat(known, ', ', 1, #known - 1) .. ' or '
    .. known[#known], util.describe(word))
end

--- What body(...) returns; where it refuses, nil and the sentence, without the place in a file of Lua.
---@param body function
---@param ... any
---@return any
---@return string?
function csv.attempt(body, ...)
  local ok, found = pcall(body, ...)
  if ok then return found end
  if core.stop_requested() then error(found, 0) end -- which refuses nothing
  return nil, (tostring(found):gsub('^%S+%.lua:%d+: ', ''))
end

--- Those of rows that are not refused (`refused`, a sentence), of which each is a warning. Throws where all are, behind
--- before(): what is printed then, too.
---@param all table[]
---@param before? fun()
---@return table[]
function csv.accepted(all, before)
  local found = {}
  for _, row in ipairs(all) do if not row.refused then found[#found + 1] = row end end
  if #found == 0 and #all > 0 and before then before() end
  if #found == 0 and #all == 1 then util.fail('%s', all[1].refused) end
  for _, row in ipairs(all) do if row.refused then progress.warn(row.refused) end end
  if #found == 0 and #all > 0 then util.fail('no row is left: all %d are refused', #all) end
  return found
end

return csv
