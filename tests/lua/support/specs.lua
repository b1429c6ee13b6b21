-- The names of specs: tests/lua/FOLDER/NAME_spec.lua is 'FOLDER/NAME', called by that, by NAME, or with the others of its folder
-- by FOLDER. A folder within a folder is called by its path ('studies/fidelity').

local core = require 'trinity.core'

local specs = {}
local root = core.home .. '/tests/lua'

--- All specs' names, sorted.
function specs.all()
  local names = {}
  local function collect(folder)
    for _, entry in ipairs(core.list_folder(root .. folder)) do
      local name = entry:match '^(.*)_spec%.lua$'
      if name then names[#names + 1] = (folder .. '/' .. name):sub(2)
      elseif not entry:find('.', 1, true) and entry ~= 'support' then collect(folder .. '/' .. entry) end
    end
  end
  collect ''
  table.sort(names)
  return names
end

--- Whether a word calls a spec, alone or with the others of its folder.
function specs.is_called(name, word)
  return name == word or name:match '[^/]*$' == word or name:sub(1, #word + 1) == word .. '/'
end

--- All words that call specs: names, short names, folders.
function specs.words(all)
  local list = {}
  for _, name in ipairs(all) do
    list[#list + 1], list[#list + 2] = name, name:match '[^/]*$'
    for at in name:gmatch '()/' do list[#list + 1] = name:sub(1, at - 1) end
  end
  return list
end

--- The specs that `words` (joined by commas) call: by name or folder, else by a part of the name. Without words all.
--- Exits with 2 for one that calls none.
function specs.find(words)
  local all, found, chosen = specs.all(), {}, {}
  if words == '' then return all end
  for word in words:gmatch '[^,%s]+' do
    local count = 0
    for _, call in ipairs { specs.is_called, function(name) return name:find(word, 1, true) end } do
      for _, name in ipairs(count == 0 and all or {}) do
        if call(name, word) then chosen[name], count = true, count + 1 end
      end
    end
    if count == 0 then
      io.stderr:write(("no spec '%s'%s; tests/lua has them all\n"):format(word, core.suggestion(word, specs.words(all))))
      os.exit(2)
    end
  end
  for _, name in ipairs(all) do
    if chosen[name] then found[#found + 1] = name end
  end
  return found
end

return specs
