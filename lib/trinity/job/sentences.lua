-- Sentences about broken rules, formed from the rules' expressions: "a and not b" is "a needs b.", "a and b" is
-- "a excludes b.". An expression that this grammar does not cover comes with a sentence of its own (trinity.job.rules).

local sentences = {}

local balanced = { ['('] = 1, [')'] = -1 }

-- Splits an expression at an operator outside of parentheses.
local function split(text, operator)
  local parts, deep, from = {}, 0, 1
  for at = 1, #text do
    deep = deep + (balanced[text:sub(at, at)] or 0)
    if deep == 0 and text:sub(at, at + #operator - 1) == operator then
      parts[#parts + 1], from = text:sub(from, at - 1), at + #operator
    end
  end
  parts[#parts + 1] = text:sub(from)
  return parts
end

local calls = {
  { "^has%(([%w_.]+), '(.-)'%)$", '', true }, { "^among%(([%w_.]+), '(.-)'%)$", '', true },
  { "^outside%(([%w_.]+), '(.-)'%)$", '', true, negative = true }, { '^above%(([%w_.]+), (.+)%)$', '> ' },
  { '^multiple%(([%w_.]+), (.+)%)$', 'to be a multiple of ' }, { '^positive%(([%w_.]+)%)$', '> 0' },
}

local function words_of(term) return term.subject .. (term.predicate and ' ' .. term.predicate or '') end

-- Returns a term as { subject, predicate, negative }, or nil.
local function term_of(text, label)
  local inner = text:match '^not (.*)$'
  if inner then
    local term = term_of(inner, label)
    if term then term.negative = not term.negative end
    return term
  end
  if text:match '^%b()$' then
    local words, negative, given = {}, nil, false
    for _, part in ipairs(split(text:sub(2, -2), ' or ')) do
      local term = term_of(part, label)
      if not term or negative ~= nil and negative ~= term.negative then return nil end
      negative, given, words[#words + 1] = term.negative, given or term.given, words_of(term)
    end
    return { subject = table.concat(words, negative and ' and ' or ' or '), negative = negative, given = given }
  end
  local function labels(value)
    if value:match "^'.*'$" then return value:sub(2, -2) end
    return (value:gsub('[%a_][%w_.]*', function(path) return (label(path)) end):gsub(' %* ', ' x '))
  end
  local given = text:match "^given%('(.-)'%)$"
  local path, operator, value = text:match '^([%a_][%w_.]*) ([=~<>]+) ([^=~<>()]+)$'
  if text:match '^[%a_][%w_.]*$' or given or value == 'nil' then
    local name, off = label(given or path or text)
    return { subject = name, path = given or path or text, given = given ~= nil,
      negative = (operator == '==') ~= (off and not given or false) }
  end
  if path then
    local sign = (operator == '==' or operator == '~=') and '' or operator .. ' '
    return { subject = label(path), predicate = sign .. labels(value), negative = operator == '~=' }
  end
  for _, call in ipairs(calls) do
    local name, rest = text:match(call[1])
    if name then
      return { subject = label(name), negative = call.negative or false,
        predicate = call[2] .. (call[3] and rest:gsub(' ', ' or ') or rest and rest ~= name and labels(rest) or '') }
    end
  end
end

-- Returns a sentence, not yet with a capital letter, or nil.
local function sentence_of(expression, effect, label)
  local terms, others = {}, {}
  for _, part in ipairs(split(expression, ' and ')) do
    local term = term_of(part, label)
    if not term then return nil end
    terms[#terms + 1] = term
  end
  if effect ~= 'refused' then
    local at = 1
    for i, term in ipairs(terms) do if term.given then at = i end end
    local subject = table.remove(terms, at)
    for _, term in ipairs(terms) do
      if term.subject ~= subject.subject then
        others[#others + 1] = (term.negative and ' without ' or ' with ') .. words_of(term)
      end
    end
    return ('%s has no effect%s.'):format(words_of(subject), table.concat(others, ' and'))
  end
  local last, without = table.remove(terms), {}
  for _, term in ipairs(terms) do -- not a bare name that another term repeats
    local repeated = term.path and not term.negative and not term.predicate
      and (' ' .. words_of(last) .. ' '):find(' ' .. term.subject .. ' ', 1, true)
    if not repeated then table.insert(term.negative and without or others, words_of(term)) end
  end
  local lacking, words = table.concat(without, ' or '), words_of(last)
  if #others > 0 then
    return ('%s%s %s %s.'):format(table.concat(others, ' with '), #without > 0 and ' without ' .. lacking or '',
      last.negative and 'needs' or 'excludes', words)
  end
  local start = #without > 0 and 'Without ' .. lacking .. ', ' or ''
  if not last.predicate then return ('%s%s is %s.'):format(start, words, last.negative and 'required' or 'refused') end
  return ('%s%s must %sbe %s.'):format(start, last.subject, last.negative and '' or 'not ',
    (last.predicate:gsub('^to be ', '')))
end

--- Returns the sentence of a rule, or nil if the expression needs a sentence of its own.
---@param expression string
---@param effect string refused, ignored or changed
---@param label fun(path: string): string, boolean? the name of an argument, and whether giving it means false
---@return string?
function sentences.of(expression, effect, label)
  local text = sentence_of(expression, effect, label)
  return text and text:gsub('^%l%l* ', function(word) return word:sub(1, 1):upper() .. word:sub(2) end) or nil
end

return sentences
