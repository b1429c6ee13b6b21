#!/usr/bin/env trinity
-- The earlier name of `trinity execute`.

local trinity = require 'trinity'

assert(loadfile(trinity.home .. '/scripts/execute.lua'))(...)
