-- A job file with arguments changed, in the file's own format, and the lines that differ.

local util = require 'trinity.base.util'

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

-- Returns the entry with an assignment of a variable, the `count`-th of the file, and its text before and after the
-- value.
local function assignment(entries, variable, count)
  for _, entry in ipairs(entries) do
    local text, from = entry.text or '', 1
    while true do
      local first, last = text:find('%f[%w_]' .. variable .. '=["\']?[^%s;"\'(]+["\']?', from)
      if not first then break end
      count, from = count - 1, last + 1
      if count == 0 then return entry, text:sub(1, first + #variable), text:sub(last + 1) end
    end
  end
end

-- A word of the command. The first attempts change an assignment of the variable that it uses, if any.
function writers.sh(entries, change, _, attempt)
  local value = tostring(change.value)
  local flag = change.kind == 'flag' or change.kind == 'off'
  local name = '^(.-["\']?)' .. escaped(change.name)
  for _, entry in ipairs(entries) do
    local head, gap, old, tail = (entry.text or ''):match(name
      .. '(["\']?[=%s]+["\']?)(%$?{?[^%s"\'()\\]+)(.*)$')
    if flag then head, gap, tail = (entry.text or ''):match(name .. '(["\']?%f[^%w_-])(.*)$') end
    if head and (head == '' or head:match '[%s("\']$') and not head:match '^%s*#' then
      local variable = not flag and change.value and old:match '^%${?([%a_][%w_]*)}?$'
      local place, before, after = nil, nil, nil
      if variable then place, before, after = assignment(entries, variable, attempt) end
      if place then
        place.text = before .. value .. after
        return place
      elseif not change.value then
        local quote = gap:match '["\']$' or ''
        entry.text = (head:gsub('["\']$', '') .. tail:gsub('^' .. quote .. '%s*', '')):gsub('%s+$', '')
      elseif not flag then
        entry.text = head .. change.name .. gap .. value .. tail
      end
      return entry
    end
  end
  for _, entry in ipairs(change.value and entries or {}) do
    local before, after = (entry.text or ''):match '^(.-)(["\']?%-%-micro%-batch%-size.*)$'
    if before then
      entry.text = ('%s%s%s %s'):format(before, change.name, flag and '' or ' ' .. value, after)
      return entry
    end
  end
end

-- Returns what the changes of a line save, as a text.
local function saved(entry)
  return table.concat(util.map(entry.changes, function(change)
    local note = change.gives_s == 0 and 'has no effect in this plan'
      or change.gives_s and ('saves %.3g s'):format(change.gives_s) or 'is needed by the others'
    return #entry.changes > 1 and change.name .. ' ' .. note or note
  end), ', ')
end

--- Returns the hunks of a unified diff without context, each headed by the seconds that it saves, as lines.
function diff.hunks(entries)
  local lines, before, after = {}, 0, 0
  for _, entry in ipairs(entries) do
    local removed, added = entry.old and 1 or 0, entry.text and 1 or 0
    before, after = before + removed, after + added
    if #entry.changes > 0 then
      lines[#lines + 1] = ('@@ -%d,%d +%d,%d @@ %s'):format(before, removed, after, added, saved(entry))
      if entry.old then lines[#lines + 1] = '-' .. entry.old end
      if entry.text then lines[#lines + 1] = '+' .. entry.text end
    end
  end
  return lines
end

--- Returns the text of a file with changes { name, path, value, kind, gives_s }, its lines { text, old, changes }, and
--- the changes that the file has no place for, or that `holds(text, change)` rejects.
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
  local function changed(change, attempt)
    local copy = util.map(entries, function(entry)
      return util.merged(entry, { changes = { unpack(entry.changes) } })
    end)
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
    local new
    for attempt = 1, 5 do new = new or changed(change, attempt) end
    if new then entries = new else missed[#missed + 1] = change end
  end
  return whole(entries), entries, missed
end

return diff
