#!/usr/bin/env trinity
-- Prints the reference of everything that scripts can use, or of one name:
--   trinity reference problem:evaluate
--   trinity reference --save reference.md

local reference = require 'trinity.command.reference'
local trinity = require 'trinity'

local options = trinity.options {
  'Prints the reference as Markdown: modules, objects, functions, options.',
  'keeps no run',
  name = { default = '', help = "one entry ('problem:evaluate', 'PlanSpec'); all by default", position = true },
  save = { default = '', writes = '', help = 'write to this file instead of standard output' },
}

local text = options.name == '' and reference.markdown() or reference.entry(options.name)
if options.save == '' then
  io.write(text)
else
  trinity.files.write(options.save, text)
end
