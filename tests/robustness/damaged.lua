-- Every byte of small files of ours with one bit flipped, and every length of them (of those above 20 kB some 4,000
-- each): see ../lua/support/damage.lua.
--   trinity tests/robustness/damaged.lua [format]

local core = require 'trinity.core'

local damage = assert(loadfile(core.home .. '/tests/lua/support/damage.lua'))()
local folder = os.tmpname()
os.remove(folder)
os.execute(("mkdir '%s'"):format(folder))

local rows, failed = {}, false
for _, format in ipairs(damage.formats()) do
  if not arg[1] or arg[1] == format.name then
    local start = core.clock_s()
    local path = folder .. '/file' .. (format.ending or '')
    format.write(path)
    local size = #core.read_file(path)
    local step = size > 20000 and math.ceil(size / 4000) or 1
    local counts, wrong = damage.try(format, path, step, step)
    local row = { format.name, counts.bytes, counts.cases, counts.refused, counts.same, counts.other, #wrong,
      ('%.1f'):format(core.clock_s() - start) }
    for i = 1, #row do row[i] = tostring(row[i]) end
    rows[#rows + 1] = row
    for i = 1, math.min(5, #wrong) do print(wrong[i]) end
    io.stderr:write(table.concat(rows[#rows], ' '), '\n')
    failed = failed or #wrong > 0
  end
end
os.execute(("rm -r '%s'"):format(folder))
print(require('trinity').format_table(
  { 'format', 'bytes', 'cases', 'refused', 'read as it was', 'another legal file', 'wrong', 'seconds' }, rows))
os.exit(failed and 1 or 0)
