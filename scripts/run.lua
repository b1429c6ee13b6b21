#!/usr/bin/env trinity
-- The earlier name of `trinity execute`.

local trinity = require 'trinity'

assert(require('trinity.base.util').load_file(trinity.home .. '/scripts/execute.lua'))(...)
