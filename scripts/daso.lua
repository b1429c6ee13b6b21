#!/usr/bin/env trinity
-- The earlier name of `trinity reproduce daso`.

local trinity = require 'trinity'

table.insert(arg, 1, 'daso')
assert(loadfile(trinity.home .. '/scripts/reproduce.lua'))(...)
