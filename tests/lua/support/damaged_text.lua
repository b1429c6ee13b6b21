-- Damaged texts for readers of files.

local damage = {}

--- A text with the first occurrence of `from`, which must be there, replaced.
function damage.replaced(text, from, to)
  local first, last = text:find(from, 1, true)
  assert(first, from)
  return text:sub(1, first - 1) .. to .. text:sub(last + 1)
end

--- The message of read(text, path), without the position of the script; nil where it raises none.
function damage.error_of(read, text, path)
  local ok, message = pcall(read, text, path)
  if ok then return nil end
  return (tostring(message):gsub('^%S+%.lua:%d+: ', ''))
end

--- Cuts a text at every byte and damages every byte in turn. Cut texts must be refused (except that the last `whole`
--- bytes may be missing); damaged ones may be read. Every message must begin with the file's name and be one of the
--- reader's. Returns how many cut texts were refused.
function damage.check(read, text, path, whole)
  local refused = 0
  local function try(wrong, may_be_read)
    local message = damage.error_of(read, wrong, path)
    if message then refused = refused + 1 end
    if not (message or may_be_read) then error(('was read: %q'):format(wrong), 2) end
    if message and (message:sub(1, #path) ~= path or message:find 'attempt to ' or message:find '%.lua:') then
      error(('%s\nof %q'):format(message, wrong), 2)
    end
  end
  for length = 0, #text - 1 do try(text:sub(1, length), length >= #text - whole) end
  local cut = refused
  for at = 1, #text do
    for wrong in ('\0"{}],-19e\t\n=[\255'):gmatch '.' do try(text:sub(1, at - 1) .. wrong .. text:sub(at + 1), true) end
  end
  return cut
end

return damage
