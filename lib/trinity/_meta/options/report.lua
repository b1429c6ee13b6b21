---@meta _
-- Options that functions of lib/trinity/report take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

--- What plot.bars draws.
---@class trinity.BarsSpec
---@field groups string[] names of the groups
---@field series string[] names of the bars of a group
---@field values (number|string)[][] by group and series
---@field y? string title of the axis
---@field title? string above the plot
---@field width? integer pixels (default 800; 100 to 10000)
---@field height? integer pixels (default 500; 100 to 10000)

--- What trinity.plot draws of points.
---@class trinity.PlotSpec
---@field series { name?: string, points: number[][] }[] points { x, y }
---@field x? string title of the axis
---@field y? string title of the axis
---@field title? string above the plot
---@field log_x? boolean a logarithmic axis (default false)
---@field log_y? boolean a logarithmic axis (default false)
---@field width? integer pixels (default 800; 100 to 10000)
---@field height? integer pixels (default 500; 100 to 10000)
