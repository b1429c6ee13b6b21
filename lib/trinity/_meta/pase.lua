---@meta _
-- PaSE, splits and what they lower to. See trinity.lua.
error 'this file is for editors'

---@class trinity.Dimension
---@field name string
---@field size number
---@field role string 'rows', 'batch', 'columns', 'reduced' or 'coupled'
---@field splits boolean

---@class trinity.PaseLayer
---@field name string name of its first operator
---@field type string
---@field kind string how the cost model prices it
---@field pointwise integer element-wise operators that run with it and count
---@field dimensions trinity.Dimension[]
---@field operators integer[] of the graph
---@field configurations integer how many

--- Configurations of layers and what they cost in PaSE's model; pase:splits says them as a strategy does.
---@class trinity.PaseResult
---@field name string
---@field configurations integer[][] a factor per dimension, per layer
---@field cost number FLOP equivalents a device
---@field compute number
---@field communication number in layers
---@field edges number between layers
---@field in_space boolean
---@field solution? integer[] strategy of every layer, where it comes from a search
---@field optimal? boolean
---@field bound? number no strategy costs less
---@field seconds? number of the search
---@field table_entries? integer
---@field peak_table_entries? integer
---@field largest_table? number combinations of a layer and its dependent set
---@field widest_set? integer
---@field stopped? boolean by Ctrl-C
---@field iterations? integer of a chain
---@field accepted? integer

---@alias trinity.Splits table<string, table> by operator: { b = 8, n = 2, copies = 1, devices = { 1, 2, ... } }, factors by dimension; what is left out is 1, or all devices

