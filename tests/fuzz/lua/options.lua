-- trinity.options: an input's lines are the words of a command line.

local trinity = require 'trinity'

local spec = {
  'A script with options of every kind.',
  model = { default = 'vgg16', help = 'a name', position = true },
  count = { default = 4, min = 1, max = 1024, integer = true, help = 'a whole number' },
  share = { default = 0.5, min = 0, max = 1 },
  any_number = { default = 1 },
  fast = { default = false },
  names = { default = {} },
}
local list = { 'Words without dashes.', names = { default = {}, position = true }, quiet = { default = true } }

local function words_of(text)
  local words = {}
  for word in (text .. '\n'):gmatch '(.-)\n' do words[#words + 1] = word end
  if words[#words] == '' then words[#words] = nil end
  return words
end

--- Checks that results have the declared types and lie within the ranges.
local function check(values)
  local frame = require 'frame'
  for name, declared in trinity.system.sorted_pairs(spec) do
    if type(declared) == 'table' and type(values[name]) ~= type(declared.default) then
      frame.finding('option %s came back as %s', name, type(values[name]))
    end
  end
  if not (values.count >= 1 and values.count <= 1024 and values.count % 1 == 0) then
    frame.finding('count came back as %.17g', values.count)
  end
  if not (values.share >= 0 and values.share <= 1) then frame.finding('share came back as %.17g', values.share) end
end

return {
  seeds = { '--model=vgg16\n--count\n12', 'vgg16\n--share\n0.25\n--fast', '--names\na\n--names=b\n--no-such\n1',
    '--any-number=64Ki\n--count=1e3', '--help', '-h', '--fast=maybe', '--count=0x10\n--share=nan',
    '-e\nprint(1)\n--threads\n2\nscript.lua\n--x', '--safe\n--memory-limit\n64M\n--time-limit=1.5\nx.lua',
    '-j\noff\n-O3\n-l\nx\n-i', '--\nx', ('a\n'):rep(9000) },
  run = function(text)
    local frame = require 'frame'
    local words = words_of(text)
    local ok, values = frame.try(trinity.options, spec, words)
    if ok then check(values) end
    frame.try(trinity.options, list, words)
  end,
}
