#!/usr/bin/env trinity
-- Prints a completion of command lines for a shell, or the manual page: trinity completion bash > FILE.

local trinity = require 'trinity'
local completion = require 'trinity.command.completion'
local util = require 'trinity.base.util'

local options = trinity.options {
  'Prints the completion of command lines for a shell, or the manual page in roff.',
  shell = { default = 'bash', position = true, help = 'bash, zsh, fish; man: the page trinity(1)' },
}

local make = ({ bash = completion.bash, zsh = completion.zsh, fish = completion.fish,
  man = completion.man })[options.shell]
if not make then
  util.fail_usage('trinity completion SHELL: unknown name %s',
    util.unknown(options.shell, { 'bash', 'zsh', 'fish', 'man' }))
end
io.write(make())
