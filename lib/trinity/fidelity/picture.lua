-- Pictures of comparisons: predicted against measured values, one point a row, one series a group of rows.

local plot = require 'trinity.report.plot'
local util = require 'trinity.base.util'

local picture = {}

--- Draws PATH.svg and PATH.png (or the one that PATH ends with) of rows { group, measured, predicted }; says where, or
--- why there is none. Rows without a measured value are left out.
---@param path string
---@param rows { group: string, measured?: number, predicted: number }[]
---@param of string what values are, with their unit: axes are called 'measured OF' and 'predicted OF'
---@param decades? boolean axes are logarithmic
function picture.draw(path, rows, of, decades)
  local series, by = {}, {}
  for _, row in ipairs(rows) do
    if row.measured then
      if not by[row.group] then
        by[row.group] = { name = row.group, points = {} }
        series[#series + 1] = by[row.group]
      end
      table.insert(by[row.group].points, { row.measured, row.predicted })
    end
  end
  if #series == 0 then util.fail('no picture: no row has a measured value') end
  local drawn, reason = plot.scatter(path, { series = series, x = 'measured ' .. of, y = 'predicted ' .. of,
    width = 700, height = 650, log_x = decades, log_y = decades })
  print(drawn and ('drawn in %s'):format(drawn) or 'no picture: ' .. reason)
end

return picture
