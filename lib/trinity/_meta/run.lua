---@meta _
-- The folder of the running script (LuaLS annotations; lib/trinity/run.lua has its format); nothing runs it.
error 'this file is for editors'

--- The folder of the running script. It opens by itself; where no run is kept, its methods do nothing.
---@class trinity.Run
---@field path? string the folder, once it is open
---@field name? string
local Run = {}

--- Keeps a result as results/LABEL.json; LABEL is the kind unless given, and gets a count where it is taken.
---@param kind string 'comparison', 'search', 'pase', 'pipeline', 'daso', 'measured', 'table', or another word
---@param data table<string|integer, any> plain values
---@param summary? string a sentence about it
---@param label? string
---@return string? path in the run's folder; nil where no run is kept
function Run:result(kind, data, summary, label) end

--- Adds a row of your own to metrics.csv, metrics.jsonl and TensorBoard.
---@param fields table<string, number|string|boolean> `step` counts them in TensorBoard
function Run:log(fields) end
