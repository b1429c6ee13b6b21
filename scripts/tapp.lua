#!/usr/bin/env trinity
-- The earlier name of `trinity reproduce tapp`.

local trinity = require 'trinity'

if arg[1] ~= 'tapp' then table.insert(arg, 1, 'tapp') end
assert(loadfile(trinity.home .. '/scripts/reproduce.lua'))(...)
