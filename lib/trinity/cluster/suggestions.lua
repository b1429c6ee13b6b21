-- Near names of GPUs and clusters for messages: at most three, none of another family of GPUs.

local util = require 'trinity.base.util'

local suggestions = {}

--- A name in small letters, with '_' for what separates words.
function suggestions.plain(text) return (text:lower():gsub('[-%s]+', '_')) end

local function distance(a, b)
  local row = util.listed(#b + 1, function(i) return i - 1 end)
  for i = 1, #a do
    local diagonal
    diagonal, row[1] = row[1], i
    for j = 1, #b do
      local substituted = diagonal + (a:byte(i) == b:byte(j) and 0 or 1)
      diagonal, row[j + 1] = row[j + 1], math.min(row[j + 1] + 1, row[j] + 1, substituted)
    end
  end
  return row[#b + 1]
end

--- The GPU in a name and its letters ('a100' and 'a' of 'dgx_a100_80gb'), nil where it has none.
local function gpu_of(word)
  for token in word:gmatch '[^_]+' do
    local letters, digits = token:match '^(%a+)(%d+)%a*$'
    if letters and letters ~= 'dgx' and letters ~= 'pcie' and #digits > 1 then return token, letters end
  end
end

--- How far a name is from what was written: less than one where it has it as a word, nil where it is another.
local function far_from(word, name)
  local gpu, letters = gpu_of(word)
  local of, of_letters = gpu_of(name)
  if letters and of_letters and letters ~= of_letters then return nil end
  if ('_' .. name .. '_'):find('_' .. word .. '_', 1, true) then return #name / 100 end
  local far = distance(word, name)
  if gpu and of and distance(gpu, of) <= 1 then return math.min(far, 1 + distance(gpu, of) + #name / 100) end
  return far <= math.min(3, math.floor((#word + 2) / 3)) and far or nil
end

--- ", did you mean 'a' or 'b'?" with at most three names that are near or that contain the word; "" without any.
function suggestions.near(text, known)
  local word, near = suggestions.plain(text):gsub('x%d+$', ''):gsub('^%d+_?x_?', ''), {}
  if #word > 64 then return '' end
  for _, name in ipairs(known) do
    local far = far_from(word, name)
    if far then near[#near + 1] = { name = name, far = far } end
  end
  table.sort(near, function(a, b)
    if a.far ~= b.far then return a.far < b.far end
    return a.name < b.name
  end)
  local listed = util.map({ unpack(near, 1, 3) }, function(one) return util.quoted(one.name) end)
  if #listed == 0 then return '' end
  local last = table.remove(listed)
  return (', did you mean %s?'):format(#listed > 0 and table.concat(listed, ', ') .. ' or ' .. last or last)
end

return suggestions
