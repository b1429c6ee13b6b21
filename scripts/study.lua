#!/usr/bin/env trinity
-- Runs a study: trinity study NAME [arguments]. Without a name it lists the studies.
-- A study is a directory scripts/studies/NAME with README.md, its command study.lua, and its modules, which are
-- required as 'studies.NAME.MODULE'. Studies belong to the source tree and are not installed.

local trinity = require 'trinity'
local util = require 'trinity.base.util'

local directory = trinity.system.home .. '/scripts/studies'
local names = util.filtered(util.exists(directory) and trinity.files.list(directory) or {}, function(entry)
  return util.exists(('%s/%s/study.lua'):format(directory, entry))
end)
local name = arg[1]

for _, known in ipairs(names) do
  if name == known then
    rawset(arg, 'study', table.remove(arg, 1)) -- stored in the run folder (lib/trinity/runs/state.lua)
    return assert(util.load_file(('%s/%s/study.lua'):format(directory, name)))(unpack(arg))
  end
end

local options = trinity.options {
  'Runs a study of the source tree: trinity study NAME [arguments]. Without a name it lists the studies.',
  'keeps no run',
  name = { type = 'string', position = true, help = 'study to run; trinity study NAME --help lists its arguments' },
}
if #names == 0 then
  util.fail('%s: expected the studies of the source tree, got no directory; use a checkout of trinity', directory)
end
if options.name then util.fail_usage('study: unknown study %s', util.unknown(options.name, names)) end
local rows = util.map(names, function(known)
  local readme = trinity.files.read(('%s/%s/README.md'):format(directory, known))
  return { known, readme:match '^# [^\n]*\n+([^\n]*)' }
end)
io.write(require('trinity.command.manual').listing(rows))
