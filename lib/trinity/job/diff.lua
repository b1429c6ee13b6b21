-- A job file with arguments changed, in the file's own format, and the lines that differ.

local diff = {}

local function escaped(text) return (text:gsub('%p', '%%%0')) end

-- Every writer changes entry.text (false: remove the line) or calls add(entry, text) to add a line after it. It returns
-- the changed entry, or nil if the file has no place for the change.
local writers = {}

-- A key of MODEL_ARGS.
function writers.yaml(entries, change, add)
  local pattern, last = '^(%s*)' .. escaped(change.name) .. ':%s', nil
  for _, entry in ipairs(entries) do
    local line = (entry.text or '') .. ' '
    local blanks = line:match(pattern)
    if blanks then
      entry.text = change.value and ('%s%s: %s'):format(blanks, change.name, tostring(change.value)) or false
      return entry
    end
    if line:match '^%s+%-%-[%w-]+:' then last = entry end
  end
  if not change.value then return nil end
  return add(last, ('%s%s: %s'):format(last.text:match '^%s*', change.name, tostring(change.value)))
end

-- A key of a section.
function writers.toml(entries, change, add)
  local section, key = change.path:match '^(.*)%.([^.]*)$'
  local value = type(change.value) == 'string' and ('"%s"'):format(change.value) or tostring(change.value)
  local inside, head = false, nil
  for _, entry in ipairs(entries) do
    local header = (entry.text or ''):match '^%s*%[([%w_.]+)%]'
    if header then inside = header == section end
    if header == section then head = entry end
    if inside and entry.text and entry.text:match('^%s*' .. key .. '%s*=') then
      entry.text = ('%s = %s%s'):format(key, value, entry.text:match '%s+#.*$' or '')
      return entry
    end
  end
  head = head or add(entries[#entries], '[' .. section .. ']')
  return add(head, ('%s = %s'):format(key, value))
end

-- Changes the line that assigns a variable.
local function assigned(entries, variable, value)
  for _, entry in ipairs(entries) do
    for _, word in ipairs { '', 'export%s+' } do
      local head, tail = (entry.text or ''):match('^(%s*' .. word .. variable .. '=)[%w._-]+(.*)$')
      if head then
        entry.text = head .. tostring(value) .. tail
        return entry
      end
    end
  end
end

-- Changes a word of the command, or the variable that it uses.
function writers.sh(entries, change)
  local value = change.value == true and '' or ' ' .. tostring(change.value)
  for _, entry in ipairs(entries) do
    local line = (entry.text or '') .. ' '
    local before, after = line:match('^(.-)' .. escaped(change.name) .. '(%f[^%w_-].*)$')
    if before and (before == '' or before:match '[%s(]$') and not before:match '^%s*#' then
      local old = change.kind ~= 'flag' and change.kind ~= 'off' and after:match '^%s+(%S+)'
      local variable = old and change.value and old:match '^%$%{?([%a_][%w_]*)%}?$'
      local there = variable and assigned(entries, variable, change.value)
      if there then return there end
      local rest = old and after:gsub('^%s+%S+', '', 1) or after
      local new = change.value and before .. change.name .. value .. rest or before .. rest:gsub('^%s+', '')
      entry.text = new:gsub('%s+$', '')
      return entry
    end
  end
  for _, entry in ipairs(entries) do
    local before, after = (entry.text or ''):match '^(.-)(%-%-micro%-batch%-size.*)$'
    if before and change.value then
      entry.text = ('%s%s%s %s'):format(before, change.name, value, after)
      return entry
    end
  end
end

--- Returns the text of a file with changes { name, path, value, kind, gives_s }, the lines of its diff with the seconds
--- that each saves, and the changes that the file has no place for.
---@param path string
---@param text string
---@param changes table[]
---@return string text
---@return string[] lines
---@return table[] missed
function diff.apply(path, text, changes)
  local extension, entries, missed = path:match '%.(%w+)$', {}, {}
  local write = writers[extension == 'yml' and 'yaml' or extension] or writers.sh
  for line in (text:gsub('\n$', '') .. '\n'):gmatch '(.-)\n' do
    entries[#entries + 1] = { text = line, old = line, changes = {} }
  end
  local function add(entry, line)
    for at, one in ipairs(entries) do
      if one == entry then
        table.insert(entries, at + 1, { text = line, changes = {} })
        return entries[at + 1]
      end
    end
  end
  for _, change in ipairs(changes) do
    local entry = write(entries, change, add)
    if entry then entry.changes[#entry.changes + 1] = change else missed[#missed + 1] = change end
  end
  local kept, lines = {}, {}
  for _, entry in ipairs(entries) do
    if entry.text then kept[#kept + 1] = entry.text end
    local notes = {}
    for _, change in ipairs(entry.changes) do
      notes[#notes + 1] = change.gives_s and ('saves %.3g s'):format(change.gives_s) or 'needed by the others'
    end
    local note = ('    (%s)'):format(table.concat(notes, ', '))
    if #notes > 0 and entry.old then lines[#lines + 1] = '- ' .. entry.old .. (entry.text and '' or note) end
    if #notes > 0 and entry.text then lines[#lines + 1] = '+ ' .. entry.text .. note end
  end
  return table.concat(kept, '\n') .. '\n', lines, missed
end

return diff
