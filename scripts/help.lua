#!/usr/bin/env trinity
-- Help: commands and pages, or what a name stands for. Also the reference as Markdown, completion for
-- bash, and what this machine or, under a launcher, its job lacks:
--   trinity help search                                   the page, command, model, function ... of that name
--   trinity help ZeRO stage                               the pages and terms with these words
--   trinity help --markdown problem:evaluate
--   trinity help --completion bash > FILE
--   srun -n 8 trinity help --check                        exit status 1 if something is wrong

local trinity = require 'trinity'
local util = require 'trinity.base.util'

local options = trinity.options {
  'Shows a page of the manual, options, functions; finds words; checks this machine.',
  'keeps no run',
  words = { default = {}, position = true,
    help = "a page, a command, a model, 'methods', 'formats', a function (problem:evaluate), or words to find" },
  markdown = { default = false, help = 'print the reference as Markdown: all of it, or one entry' },
  completion = { type = 'string', help = 'print completion for bash, or the manual page (man)' },
  check = { default = false, help = 'check this machine and, under a launcher, its job' },
  output = { type = 'string', writes = '', help = 'write --markdown or --completion to this file (default: standard '
    .. 'output)' },
}

local function write(text)
  if options.output then return trinity.files.write(options.output, text) end
  io.write(text)
end

local function completion(shell)
  local make = require 'trinity.command.completion'
  local known = { 'bash', 'man' }
  if not make[shell] then util.fail_usage("option '--completion': unknown shell %s", util.unknown(shell, known)) end
  return make[shell]()
end

local topic = options.words[1] and table.concat(options.words, ' ')

if options.check then
  os.exit(require('trinity.dist.doctor').look() == 0 and 0 or 1)
elseif options.completion then
  write(completion(options.completion))
elseif options.markdown then
  local reference = require 'trinity.command.reference'
  write(topic and reference.entry(topic) or reference.markdown())
elseif options.output then
  util.fail_usage "option '--output': expected --markdown or --completion with it"
else
  require('trinity.command.help').show(topic)
end
