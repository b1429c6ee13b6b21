-- Upper limits of the mean errors of rows left out, by source and words of a group of rows; `worst`: of any row.

local bars = {}

-- The first entry of a source whose words are all in a group's name applies.
local list = {
  published = {
    { { 'H100-80GB', 'mixtures' }, mean = 0.1 }, { { 'B200', 'mixtures', not_ = 'GB' }, mean = 0.1 },
    { { 'B300', 'mixtures', not_ = 'GB' }, mean = 0.1 }, { { 'mixtures' }, mean = 0.08 },
    { { 'A100-40GB' }, mean = 0.12 }, { { 'A100' }, mean = 0.08, worst = 0.25 },
    { { 'H100', '16 bits' }, mean = 0.06, worst = 0.25 }, { { 'H100' }, mean = 0.07, worst = 0.25 },
    { { 'GB200' }, mean = 0.08, worst = 0.15 }, { { 'GB300' }, mean = 0.08, worst = 0.15 },
    { { 'H200' }, mean = 0.08, worst = 0.15 }, { { 'B200' }, mean = 0.08, worst = 0.15 },
  },
  vtrain = { { { 'hidden' }, mean = 0.05 } },
  sailor = { { { 'memory' }, mean = 0.03 }, { {}, mean = 0.05 } },
}

local function holds(words, group)
  for _, word in ipairs(words) do if not group:find(word, 1, true) then return false end end
  return not (words.not_ and group:find(words.not_, 1, true))
end

--- The bar of a group, { mean, worst }; nil for none.
function bars.of(source, group)
  for _, bar in ipairs(list[source] or {}) do if holds(bar[1], group) then return bar end end
  return nil
end

--- Whether errors { mean, worst } are beyond a bar.
function bars.missed(bar, found)
  return found.mean > bar.mean or bar.worst ~= nil and found.worst > bar.worst
end

return bars
