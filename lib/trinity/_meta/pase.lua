---@meta _
-- PaSE, splits and what they lower to (LuaLS annotations); nothing runs it.
error 'this file is for editors'

---@alias trinity.PaseFactors 'divisors'|'powers_of_two'|'all'
---@alias trinity.PaseSpace 'code'|'paper'

---@class trinity.PaseOptions
---@field devices? integer p: no layer has more parts; default 8
---@field peak_flops? number of a device, for the cost model; default 10e12
---@field bandwidth_bytes_per_s? number default 16e9
---@field word_bytes? number of an element on the wire; default 8
---@field cutoff? integer the smallest block of a dimension; default 4
---@field factors? trinity.PaseFactors default 'divisors'
---@field halo? boolean convolutions split along height and width too; default false
---@field sum_edges? boolean all tensors between two layers count, not the last alone; default false
---@field space? trinity.PaseSpace 'paper': all factors, cutoff 1, halo, sum_edges; default 'code'

--- Settings of methods.pase.
---@class trinity.PaseMethodOptions: trinity.SearchOptions
---@field choose? string 'best' (default), 'mcmc', 'data_parallel', 'owt', 'expert' or 'tofu'
---@field cutoff? integer (1)
---@field factors? trinity.PaseFactors ('divisors')
---@field peak_flops? number of the cost model (10e12)
---@field bandwidth_bytes_per_s? number of the cost model; 0: that of the slowest route
---@field iterations? integer of 'mcmc' (250000)

---@class trinity.Dimension
---@field name string
---@field size number
---@field role string 'rows', 'batch', 'columns', 'reduced' or 'coupled'
---@field splits boolean

---@class trinity.PaseLayer
---@field name string that of its first operator
---@field type string
---@field kind string how the cost model prices it
---@field pointwise integer element-wise operators that run with it and count
---@field dimensions trinity.Dimension[]
---@field operators integer[] of the graph
---@field configurations integer how many

---@class trinity.PaseStrategy
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

---@class trinity.PaseSolveOptions
---@field seconds? number for what dynamic programming cannot do; default 60
---@field seed? integer
---@field table_bytes? integer
---@field quiet? boolean

---@class trinity.PaseWalkOptions
---@field seed? integer default 1
---@field iterations? integer default 250000
---@field alpha_per_ms? number default 0: 100 over the start's milliseconds
---@field start? integer[][] configurations; default expert's

---@class trinity.PaseRow
---@field layers string
---@field type string
---@field dimensions string
---@field factors string

---@class trinity.Pase
---@field name string
---@field devices integer
---@field layers trinity.PaseLayer[]
---@field edges integer[][] { from, to }
---@field entries integer of all cost tables
---@field graph trinity.Graph
local Pase = {}

--- The factors of a layer under a strategy.
---@param layer integer
---@param strategy integer
---@return integer[]
function Pase:configuration(layer, strategy) end

--- What a layer costs a device, in FLOP.
---@param layer integer
---@param strategy integer
---@return number compute
---@return number communication
function Pase:layer_cost(layer, strategy) end

--- What an edge costs between two strategies, in FLOP.
---@param edge integer
---@param from integer
---@param to integer
---@return number
function Pase:edge_cost(edge, from, to) end

--- The strategy of a layer with these factors.
---@param layer integer
---@param factors integer[]
---@return integer?
function Pase:find(layer, factors) end

--- The problem as trinity.select takes it.
---@return userdata
function Pase:selection() end

--- What configurations cost, in the space or not.
---@param configurations integer[][]
---@param name? string
---@return trinity.PaseStrategy
function Pase:price(configurations, name) end

--- The best strategy.
---@param options? trinity.PaseSolveOptions
---@return trinity.PaseStrategy
function Pase:solve(options) end

--- What dynamic programming in breadth-first order, the paper's baseline, would need: the largest set of layers that a
--- table ranges over, and the most combinations of a layer and such a set.
---@return { widest_set: integer, largest_table: number }
function Pase:breadth_first() end

--- The batch alone is split.
---@return trinity.PaseStrategy?
---@return string? reason
function Pase:data_parallel() end

--- Data parallel convolutions, dense layers with split outputs.
---@return trinity.PaseStrategy?
---@return string? reason
function Pase:owt() end

--- What a person would write.
---@return trinity.PaseStrategy?
---@return string? reason
function Pase:expert() end

--- FlexFlow's Markov chain.
---@param options? trinity.PaseWalkOptions
---@return trinity.PaseStrategy
function Pase:mcmc(options) end

--- Tofu's recursive splits.
---@return trinity.PaseStrategy
function Pase:tofu() end

--- All strategies one after the other, at most `most`.
---@param most? number
---@return trinity.PaseStrategy
function Pase:brute_force(most) end

--- A strategy's splits as trinity.lower takes them.
---@param found trinity.PaseStrategy
---@param devices? integer[]
---@return trinity.Splits
function Pase:splits(found, devices) end

--- A strategy as the paper's table shows it.
---@param found trinity.PaseStrategy
---@return trinity.PaseRow[]
function Pase:rows(found) end

function Pase:close() end

---@alias trinity.Splits table<string, table> by operator: factors by dimension, copies, devices

---@class trinity.LowerSpec
---@field graph trinity.Graph
---@field cluster trinity.Cluster
---@field splits? trinity.Splits
---@field placement? trinity.Placement of operators that are not split; default device 1

---@class trinity.Lowered
---@field graph trinity.Graph
---@field placement trinity.Placement
---@field origin integer[] operator of the graph that was split, per operator; 0: none
---@field part integer[]
