-- Single changes of job files (../shared/data/client-jobs/mutants.csv): the text of a file with one argument changed.

local trinity = require 'trinity'

local mutants = {}

local function escaped(text) return (text:gsub('%p', '%%%0')) end

-- Megatron-LM's YAML: a key of MODEL_ARGS or, in capitals, of ENV_VARS.
local function megatron(text, name, value)
  local block = name:match '^%-%-' and 'MODEL_ARGS' or 'ENV_VARS'
  local kept = ('\n' .. text):gsub('\n%s*' .. escaped(name) .. ':[^\n]*', '')
  if value == '(remove)' then return kept:sub(2) end
  return (kept:gsub('(\n' .. block .. ':[^\n]*\n)', function(head)
    return ('%s  %s: %s\n'):format(head, name, value)
  end, 1):sub(2))
end

local function toml(text, path, value)
  local section, key = path:match '^(.*)%.([^.]*)$'
  local kept, inside, lines, done = section, false, {}, false
  for line in (text .. '\n'):gmatch '(.-)\n' do
    local header = line:match '^%s*%[([%w_.]+)%]'
    if header then inside = header == kept end
    if inside and line:match('^%s*' .. escaped(key) .. '%s*=') then
      if value ~= '(remove)' then lines[#lines + 1] = ('%s = %s'):format(key, value) end
      done = true
    else
      lines[#lines + 1] = line
      if header and inside and not text:match('%f[%w_]' .. escaped(key) .. '%s*=') and value ~= '(remove)' then
        lines[#lines + 1] = ('%s = %s'):format(key, value)
        done = true
      end
    end
  end
  if not done and value ~= '(remove)' then
    local at
    for i, line in ipairs(lines) do if line:match('^%s*%[' .. escaped(section) .. '%]') then at = i end end
    if not at then
      lines[#lines + 1] = '[' .. section .. ']'
      at = #lines
    end
    table.insert(lines, at + 1, ('%s = %s'):format(key, value))
  end
  return table.concat(lines, '\n')
end

local function json(text, path, value)
  local tree = trinity.files.json.decode(text)
  local into, names = tree, {}
  for name in path:gmatch '[^.]+' do names[#names + 1] = name end
  for i = 1, #names - 1 do
    if type(into[names[i]]) ~= 'table' then into[names[i]] = {} end
    into = into[names[i]]
  end
  if value == '(remove)' then
    into[names[#names]] = nil
  else
    into[names[#names]] = trinity.files.json.decode('[' .. value .. ']')[1]
  end
  return trinity.files.json.encode(tree)
end

local function yaml(text, path, value)
  local names, lines, at, done = {}, {}, {}, false
  for name in path:gmatch '[^.]+' do names[#names + 1] = name end
  for line in (text .. '\n'):gmatch '(.-)\n' do
    local blanks, key = line:match '^(%s*)([%w_]+):'
    if key then
      local depth = #blanks / 2 + 1
      at[depth] = key
      local here = depth == #names
      for d = 1, depth do here = here and at[d] == names[d] end
      if here then
        line, done = ('%s%s: %s'):format(blanks, key, value), true
      end
    end
    lines[#lines + 1] = line
  end
  if not done then
    for i, line in ipairs(lines) do
      if line:match('^' .. names[1] .. ':') then
        table.insert(lines, i + 1, ('  %s: %s'):format(names[2], value))
        break
      end
    end
  end
  return table.concat(lines, '\n')
end

--- The text of a file with a row's change.
---@param text string
---@param row table file, argument, value
---@return string
function mutants.apply(text, row)
  if row.file:match '%.toml$' then return toml(text, row.argument, row.value) end
  if row.file:match '%.json$' then return json(text, row.argument, row.value) end
  if text:find 'MODEL_ARGS' then return megatron(text, row.argument, row.value) end
  return yaml(text, row.argument, row.value)
end

return mutants
