-- A job file with arguments changed, in the file's own format, and the lines that differ.

local util = require 'trinity.base.util'

local diff = {}

local function escaped(text) return (text:gsub('%p', '%%%0')) end

local function lines_of(text)
  local list = {}
  for line in (text:gsub('\n$', '') .. '\n'):gmatch '(.-)\n' do list[#list + 1] = line end
  return list
end

local writers = {}

-- A key of MODEL_ARGS.
function writers.yaml(lines, change)
  local pattern, last = '^(%s*)' .. escaped(change.name) .. ':%s', nil
  local value = change.value == true and 'true' or tostring(change.value)
  for i, line in ipairs(lines) do
    if (line .. ' '):match(pattern) then
      if not change.value then return i, nil end
      return i, (line .. ' '):match(pattern) .. change.name .. ': ' .. value
    end
    if line:match '^%s+%-%-[%w-]+:' then last = i end
  end
  return last, lines[last], change.value and ('%s%s: %s'):format(lines[last]:match '^%s*', change.name, value) or nil
end

-- A key of a section.
function writers.toml(lines, change)
  local section, key = change.path:match '^(.*)%.([^.]*)$'
  local value = type(change.value) == 'string' and ('"%s"'):format(change.value) or tostring(change.value)
  local inside, head = false, nil
  for i, line in ipairs(lines) do
    local header = line:match '^%s*%[([%w_.]+)%]'
    if header then inside = header == section end
    if header == section then head = i end
    if inside and line:match('^%s*' .. key .. '%s*=') then
      return i, ('%s = %s%s'):format(key, value, line:match '%s+#.*$' or '')
    end
  end
  return head or #lines, lines[head or #lines], ('%s = %s'):format(key, value)
end

-- A word of the command, or the variable that it names.
function writers.sh(lines, change)
  local name = escaped(change.name)
  local value = change.value == true and '' or ' ' .. tostring(change.value)
  for i, line in ipairs(lines) do
    local before, after = (line .. ' '):match('^(.-%f[%S])' .. name .. '(%s.*)$')
    if before and not line:match '^%s*#' then
      local old = change.kind ~= 'flags' and after:match '^%s+(%S+)' or nil
      local variable = old and change.value and old:match '^%$%{?([%a_][%w_]*)%}?$'
      for k, other in ipairs(variable and lines or {}) do
        local head, tail = other:match('^(%s*' .. variable .. '=)[%w._-]+(.*)$')
        if not head then head, tail = other:match('^(%s*export%s+' .. variable .. '=)[%w._-]+(.*)$') end
        if head then return k, head .. tostring(change.value) .. tail end
      end
      local rest = old and after:gsub('^%s+%S+', '', 1) or after
      local new = change.value and before .. change.name .. value .. rest or before .. rest:gsub('^%s+', '')
      return i, (new:gsub('%s+$', ''))
    end
  end
  for i, line in ipairs(lines) do
    local before, after = (line .. ' '):match '^(.-)(%-%-micro%-batch%-size%s.*)$'
    if before and change.value then
      return i, (('%s%s%s %s'):format(before, change.name, value, after):gsub('%s+$', ''))
    end
  end
end

--- The text of a file with changes, and the lines that differ: { line, old, new, change }; old or new may be nil.
---@param path string
---@param text string
---@param changes table[] { name, path, value, kind }
---@return string text
---@return table[] lines
---@return table[] missed changes that the file has no place for
function diff.apply(path, text, changes)
  local extension = path:match '%.(%w+)$'
  local write = writers[extension == 'yml' and 'yaml' or extension] or writers.sh
  local lines, told, missed = lines_of(text), {}, {}
  for _, change in ipairs(changes) do
    local at, new, added = write(lines, change)
    if not at then
      missed[#missed + 1] = change
    elseif added then
      table.insert(lines, at + 1, added)
      told[#told + 1] = { line = at + 1, new = added, change = change }
    else
      told[#told + 1] = { line = at, old = lines[at], new = new, change = change }
      if new then lines[at] = new else table.remove(lines, at) end
    end
  end
  return table.concat(lines, '\n') .. '\n', told, missed
end

--- Lines of a diff: - and + with what each change gives in seconds.
---@param told table[]
---@return string[]
function diff.lines(told)
  local list = {}
  for _, one in ipairs(told) do
    if one.old then list[#list + 1] = '- ' .. one.old end
    local gives = one.change.gives_s
    local note = gives and ('    (gives %.3g s)'):format(gives) or '    (goes along with the others)'
    list[#list + 1] = one.new and '+ ' .. one.new .. note or list[#list] .. note
    if not one.new then table.remove(list, #list - 1) end
  end
  return list
end

diff.read = util.read_file

return diff
