-- What can be tested by name: the rooms of the C++ tests (folders of tests) and the specs below tests/lua. Use:
--   trinity tests/names.lua           prints all
--   trinity tests/names.lua NAME ...  prints what the names call: lines 'room NAME' and 'specs NAME,NAME'
-- A name calls C++ tests and specs alike; cpp/NAME and lua/NAME, as ctest has them, only those.

local core = require 'trinity.core'
local specs = dofile(core.home .. '/tests/lua/support/specs.lua')

local function has_tests(folder)
  local ok, entries = pcall(core.list_folder, folder)
  for _, entry in ipairs(ok and entries or {}) do
    local is_folder = not entry:find('.', 1, true)
    if entry:find '_test%.cpp$' or is_folder and has_tests(folder .. '/' .. entry) then return true end
  end
  return false
end

local function all_rooms()
  local rooms = {}
  for _, entry in ipairs(core.list_folder(core.home .. '/tests')) do
    if not entry:find('.', 1, true) and has_tests(core.home .. '/tests/' .. entry) then rooms[#rooms + 1] = entry end
  end
  return rooms
end

local rooms, names = all_rooms(), specs.all()
if #arg == 0 then
  print('rooms of C++ tests: ' .. table.concat(rooms, ' '))
  print('specs: ' .. table.concat(names, ' '))
  os.exit(0)
end
local chosen = {}
for _, word in ipairs(arg) do
  local found, kind, rest = false, word:match '^(%a+)/(.+)$'
  for _, room in ipairs(rooms) do
    if room == word or kind == 'cpp' and room == rest then
      print('room ' .. room)
      found = true
    end
  end
  for _, name in ipairs(names) do
    if specs.is_called(name, word) or kind == 'lua' and specs.is_called(name, rest) then
      chosen[#chosen + 1] = name
      found = true
    end
  end
  if not found then
    local known = specs.words(names)
    for _, room in ipairs(rooms) do known[#known + 1] = room end
    io.stderr:write(("no room or spec '%s'%s; 'scripts/bootstrap test list' names them all\n"):format(word,
      core.suggestion(word, known)))
    os.exit(2)
  end
end
if #chosen > 0 then print('specs ' .. table.concat(chosen, ',')) end
