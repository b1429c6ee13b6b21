#!/usr/bin/env trinity
-- The earlier name of `trinity leave_one_out`.

local trinity = require 'trinity'

assert(loadfile(trinity.home .. '/scripts/leave_one_out.lua'))(...)
