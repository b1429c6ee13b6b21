-- A job file with arguments changed, in the file's own format, and the lines that differ.

local diff = {}

local function escaped(text) return (text:gsub('%p', '%%%0')) end

-- Every writer changes entry.text (false: remove the line) or calls add(entry, text) to add a line after it. It returns
-- the changed entry, or nil if the file has no place for the change. `attempt` counts from 1.
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
  return change.value and last and add(last, ('%s%s: %s'):format(last.text:match '^%s*', change.name,
    tostring(change.value)))
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
      entry.text = change.value ~= nil and ('%s = %s%s'):format(key, value, entry.text:match '%s+#.*$' or '')
      return entry
    end
  end
  if change.value == nil then return nil end
  head = head or add(entries[#entries], '[' .. section .. ']')
  return add(head, ('%s = %s'):format(key, value))
end

-- Returns the entry whose text matches patterns of a text before, a value and a text after, with another value.
local function replaced(entries, before, value, patterns)
  for _, entry in ipairs(entries) do
    for _, pattern in ipairs(patterns) do
      local head, old, tail = (entry.text or ''):match('^(.-' .. before .. ')' .. pattern .. '(.*)$')
      if head and not head:match '^%s*#' and (not value or head:match('%f[%w_-]' .. before .. '$')
        or head:match('^' .. before .. '$')) then
        return entry, head, old, tail
      end
    end
  end
end

-- A word of the command. The first attempt changes the variable that it uses, if any.
function writers.sh(entries, change, _, attempt)
  local name, value = escaped(change.name), tostring(change.value)
  local flag = change.kind == 'flag' or change.kind == 'off'
  local entry, head, old, tail = replaced(entries, name, nil, flag and { '()%f[^%w_-]' }
    or { '["\']?[=%s]+["\']?(%${[^}]*})', '["\']?[=%s]+["\']?([^%s"\'()\\]+)' })
  if not entry then
    if not change.value then return nil end
    for _, other in ipairs(entries) do
      local before, after = (other.text or ''):match '^(.-)(["\']?%-%-micro%-batch%-size.*)$'
      if before then
        other.text = ('%s%s%s %s'):format(before, change.name, flag and '' or ' ' .. value, after)
        return other
      end
    end
    return nil
  end
  local variable = not flag and change.value and attempt == 1 and old:match '^%${?([%a_][%w_]*)}?$'
  if variable then
    local place, first, _, rest = replaced(entries, variable .. '=', true, { '(["\']?[^%s;"\']+["\']?)' })
    if place then
      place.text = first .. value .. rest
      return place
    end
  end
  local quote = head:sub(1, -#change.name - 1):match '["\']$' or ''
  if not change.value then
    local plain = head:sub(1, -#change.name - 1 - #quote)
    entry.text = (plain .. tail:gsub('^["\']?%s*', '')):gsub('%s+$', '')
  elseif not flag then
    entry.text = head .. quote .. ' ' .. value .. tail:gsub('^["\']', '')
  end
  return entry
end

--- Returns the text of a file with changes { name, path, value, kind, gives_s }, the lines of its diff with the seconds
--- that each saves, and the changes that the file has no place for, or that `holds(text, change)` rejects.
---@param path string
---@param text string
---@param changes table[]
---@param holds? fun(text: string, change: table): boolean
---@return string text
---@return string[] lines
---@return table[] missed
function diff.apply(path, text, changes, holds)
  local extension, entries, missed = path:match '%.(%w+)$', {}, {}
  local write = writers[extension == 'yml' and 'yaml' or extension] or writers.sh
  for line in (text:gsub('\n$', '') .. '\n'):gmatch '(.-)\n' do
    entries[#entries + 1] = { text = line, old = line, changes = {} }
  end
  local function whole(list)
    local kept = {}
    for _, entry in ipairs(list) do if entry.text then kept[#kept + 1] = entry.text end end
    return table.concat(kept, '\n') .. '\n'
  end
  -- Returns the entries with a change, or nil.
  local function changed(change, attempt)
    local copy = {}
    for i, entry in ipairs(entries) do
      copy[i] = { text = entry.text, old = entry.old, changes = { unpack(entry.changes) } }
    end
    local entry = write(copy, change, function(after, line)
      for at, one in ipairs(copy) do
        if one == after then
          table.insert(copy, at + 1, { text = line, changes = {} })
          return copy[at + 1]
        end
      end
    end, attempt)
    if not entry or holds and not holds(whole(copy), change) then return nil end
    table.insert(entry.changes, change)
    return copy
  end
  for _, change in ipairs(changes) do
    local new = changed(change, 1) or changed(change, 2)
    if new then entries = new else missed[#missed + 1] = change end
  end
  local lines = {}
  for _, entry in ipairs(entries) do
    local notes = {}
    for _, change in ipairs(entry.changes) do
      notes[#notes + 1] = change.gives_s == 0 and 'has no effect in this plan'
        or change.gives_s and ('saves %.3g s'):format(change.gives_s) or 'needed by the others'
    end
    local note = ('    (%s)'):format(table.concat(notes, ', '))
    if #notes > 0 and entry.old then lines[#lines + 1] = '- ' .. entry.old .. (entry.text and '' or note) end
    if #notes > 0 and entry.text then lines[#lines + 1] = '+ ' .. entry.text .. note end
  end
  return whole(entries), lines, missed
end

return diff
