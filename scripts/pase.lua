#!/usr/bin/env trinity
-- The earlier name of `trinity reproduce pase`.

local trinity = require 'trinity'

if arg[1] ~= 'pase' then table.insert(arg, 1, 'pase') end
assert(loadfile(trinity.home .. '/scripts/reproduce.lua'))(...)
