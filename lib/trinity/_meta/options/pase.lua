---@meta _
-- Options that functions of lib/trinity/pase take, made of what its modules declare (lib/trinity/base/options.lua) by
-- `build/trinity tests/lua/golden.lua --accept options`.
error 'this file is for editors'

---@alias trinity.PaseFactors 'divisors'|'powers_of_two'|'all'
---@alias trinity.PaseSpace 'code'|'paper'

--- What trinity.pase takes.
---@class trinity.PaseOptions
---@field devices? integer p: no layer has more parts (default 8; 1 to 4096)
---@field peak_flops? number of a device, for the cost model (default 1e13; above 0)
---@field bandwidth_bytes_per_s? number of the cost model (default 1.6e10; above 0)
---@field word_bytes? number of an element on the wire (default 8; above 0)
---@field cutoff? integer the smallest block of a dimension (default 4; 1 to 2^40)
---@field factors? trinity.PaseFactors how many parts a dimension may have (default 'divisors')
---@field halo? boolean convolutions split along height and width too (default false)
---@field sum_edges? boolean all tensors between two layers count, not the last alone (default false)
---@field space? trinity.PaseSpace 'code', the reference code's, or 'paper', for few devices: all factors, cutoff 1, halo, sum_edges (default 'code')

--- What pase:solve takes.
---@class trinity.PaseSolveOptions
---@field seconds? number for what dynamic programming cannot do (default 60; 0 or more)
---@field seed? integer fixes every random number (default 1; 0 to 2^53)
---@field table_bytes? integer what tables of the exact solver may take (default 2147483648; 1 or more)
---@field quiet? boolean no progress line (default false)

--- What pase:mcmc takes.
---@class trinity.PaseWalkOptions
---@field seed? integer fixes every random number (default 1; 0 to 2^53)
---@field iterations? integer steps of the chain (default 250000; 1 to 2^40)
---@field alpha_per_ms? number alpha per millisecond; 0: 100 over the start's milliseconds (default 0; 0 or more)
---@field start? integer[][] configurations; layers of it outside the space start unsplit (default: expert's)
