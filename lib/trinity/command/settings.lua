-- Settings on the command line: --set NAME=VALUE for options of a model, --method_set NAME=VALUE for options of a
-- method. They may be repeated or joined by commas. Further parts of a value make it a list (warm_start=expert,metis);
-- NAME.KEY=VALUE sets a field of a table (dimensions.sequence=128).

local units = require 'trinity.base.units'
local util = require 'trinity.base.util'

local settings = {}

local words = { ['true'] = true, ['false'] = false }

local function value_of(text)
  if words[text] ~= nil then return words[text] end
  return units.number(text) or text
end

--- Sets values[name], or a field of the table values[outer] for 'outer.field'.
local function assign(option, values, name, value)
  local outer, inner = name:match '^([^.]+)%.(.+)$'
  if not outer then
    values[name] = value
  elseif values[outer] ~= nil and type(values[outer]) ~= 'table' then
    util.fail_usage("option '--%s': expected '%s' or '%s', got both", option, outer, name)
  else
    values[outer] = values[outer] or {}
    values[outer][inner] = value
  end
end

--- Parses the texts of an option: { NAME = true, false, a number, a text or a list of these }.
function settings.read(option, texts)
  local values = {}
  for _, text in ipairs(texts) do
    local name, list
    for part in text:gmatch '[^,]+' do
      local key, value = part:match '^%s*([%a_][%w_.]*)%s*=%s*(.-)%s*$'
      if not key and not name then
        util.fail_usage("option '--%s': expected NAME=VALUE, got %s", option, util.quoted(part))
      elseif key then
        name, list = key, { value_of(value) }
      else
        list[#list + 1] = value_of(part:match '^%s*(.-)%s*$')
      end
      local all = list
      if #list == 1 then all = list[1] end
      assign(option, values, name, all)
    end
  end
  return values
end

--- Declarations of these options, for trinity.options.
settings.of_model = { default = {},
  help = "options of the model, NAME=VALUE: layers=4,dtype=bfloat16 ('trinity help MODEL' lists them)" }
settings.of_method = { default = {}, help = 'options of the method, NAME=VALUE: policy=false,batch=16' }

--- Returns the results of body(). An error that matches `owner` (a pattern that captures the message) and names an
--- option becomes a usage error of the command line.
function settings.checked(option, values, owner, body)
  if next(values) == nil then return body() end
  local results = { pcall(body) }
  if results[1] then return unpack(results, 2, table.maxn(results)) end
  local about = type(results[2]) == 'string' and util.unplaced(results[2]):match(owner)
  if about and about:find("option '", 1, true) then util.fail_usage("option '--%s': %s", option, about) end
  error(results[2], 0)
end

return settings
