-- Profiles of PipeDream and DAPPLE, graphs of Doppler.

local target = require 'instances'

return { seeds = { target.seeds[1], target.seeds[2] }, run = target.run }
