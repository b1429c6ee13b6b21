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
---@field compute_busy_s fun(self: trinity.Metrics, d: integer): number Seconds in which the device runs operators.
---@field send_busy_s fun(self: trinity.Metrics, d: integer): number Seconds of the device's outgoing transfers and collectives, summed.
---@field memory_bytes fun(self: trinity.Metrics, d: integer): number Peak memory of the device in bytes.
---@field sent_bytes fun(self: trinity.Metrics, d: integer): number
---@field received_bytes fun(self: trinity.Metrics, d: integer): number

---@class trinity.RandomStream
---@field uniform fun(self: trinity.RandomStream): number A number from 0 to below 1.
---@field normal fun(self: trinity.RandomStream): number A number of mean 0 and variance 1.
---@field integer fun(self: trinity.RandomStream, bound: integer): integer An integer from 1 to `bound`.
---@field close fun(self: trinity.RandomStream)

--- The device, from 1, of every operator.
---@class trinity.Placement
---@field [integer] integer
---@field length integer
---@operator len: integer
---@field totable fun(self: trinity.Placement): integer[]
---@field each fun(self: trinity.Placement) for i, value in a:each() do ... end

---@class trinity.DoubleArray
---@field [integer] number
---@field length integer
---@operator len: integer
---@field totable fun(self: trinity.DoubleArray): number[]
---@field each fun(self: trinity.DoubleArray)

--- A read-only array of the engine.
---@class trinity.Int32View
---@field [integer] integer
---@field length integer
---@operator len: integer
---@field totable fun(self: trinity.Int32View): integer[]
---@field each fun(self: trinity.Int32View)
