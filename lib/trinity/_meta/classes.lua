---@meta _
-- The objects of trinity. See trinity.lua.
error 'this file is for editors'

--- Why a strategy does not fit. One whose schedule contradicts its placement has `text` alone.
---@class trinity.Misfit
---@field text string it in words
---@field device? integer the device that is over by most
---@field name? string its name
---@field needed_bytes? number its peak in a step
---@field capacity_bytes? number what a step may use
---@field over_bytes? number the difference
---@field devices_over? integer how many devices are over

--- What a simulated step cost. Read-only; an unknown field is an error.
---@class trinity.Metrics
---@field step_time_s number seconds of the step; of a rejected plan the limit plus 1 ns
---@field peak_memory_bytes number largest peak of a device
---@field peak_communication_bytes number largest sum of bytes sent and received by a device
---@field total_communication_bytes number bytes sent by all devices together
---@field excess_memory_bytes number largest excess of a device over its capacity, 0 where all fits
---@field transfers number copies between two devices; collectives are not counted
---@field feasible boolean whether it fits into memory, and was not rejected
---@field rejected boolean whether it was given up as slower than reject_above_s
---@field device_count integer
local Metrics = {}

--- Seconds in which the device runs operators.
---@param d integer
---@return number
function Metrics:compute_busy_s(d) end

--- Seconds of the device's outgoing transfers and collectives, summed.
---@param d integer
---@return number
function Metrics:send_busy_s(d) end

--- Peak memory of the device in bytes.
---@param d integer
---@return number
function Metrics:memory_bytes(d) end

---@param d integer
---@return number
function Metrics:sent_bytes(d) end

---@param d integer
---@return number
function Metrics:received_bytes(d) end

---@class trinity.RandomStream
local RandomStream = {}

--- A number from 0 to below 1.
---@return number
function RandomStream:uniform() end

--- A number of mean 0 and variance 1.
---@return number
function RandomStream:normal() end

--- An integer from 1 to `bound`.
---@param bound integer
---@return integer
function RandomStream:integer(bound) end

function RandomStream:close() end

--- The device, from 1, of every operator.
---@class trinity.Placement
---@field [integer] integer
---@field length integer
---@operator len: integer
local Placement = {}

---@return integer[]
function Placement:totable() end

--- for i, value in a:each() do ... end
function Placement:each() end

---@class trinity.DoubleArray
---@field [integer] number
---@field length integer
---@operator len: integer
local DoubleArray = {}

---@return number[]
function DoubleArray:totable() end

function DoubleArray:each() end

--- A read-only array of the engine.
---@class trinity.Int32View
---@field [integer] integer
---@field length integer
---@operator len: integer
local Int32View = {}

---@return integer[]
function Int32View:totable() end

function Int32View:each() end
