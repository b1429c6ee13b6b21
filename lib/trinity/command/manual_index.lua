-- Where the manual mentions some words: `trinity help WORDS`. The glossary comes first, then pages by how often and how
-- prominently they use the words.

local manual = require 'trinity.command.manual'
local util = require 'trinity.base.util'

local index = {}

--- Words as they are compared: lower case, without marks of Markdown, hyphens and underscores as spaces, no plural.
local function normal(text)
  local words = util.words((text:lower():gsub('[`*]', ''):gsub('[_-]', ' ')), '%S+')
  return table.concat(util.map(words, function(word) return #word > 3 and word:gsub('s(%p*)$', '%1') or word end), ' ')
end

-- Words of a question that say nothing about its subject.
local empty = util.set
  'a an and another are be by can do does for from how i in is it me my of on or the to what which with'

--- How often `text` has the words in a row, each from its beginning.
local function count(text, words)
  local found, at = 0, 1
  while true do
    local first, last = text:find(words, at, true)
    if not first then return found end
    if not text:sub(first - 1, first - 1):match '%w' then found = found + 1 end
    at = last + 1
  end
end

--- How often `text` has the phrase, and a fifth of a count if it has all of its words apart.
local function score_of(text, phrase, words)
  local found = count(text, phrase)
  if found > 0 or #words < 2 then return found end
  for _, word in ipairs(words) do
    if count(text, word) == 0 then return 0 end
  end
  return 0.2
end

--- The section of a page that uses the words most, and the page's score; nil where it does not.
local function best_section(source, phrase, words)
  local best, best_score, whole, in_block = nil, 0, 0, false
  local section, text, score = nil, {}, 0
  local function close()
    score = score + score_of(table.concat(text, ' '), phrase, words)
    whole = whole + score
    if score > best_score then best, best_score = section, score end
  end
  for line in (source .. '\n'):gmatch '([^\n]*)\n' do
    if line:match '^%s*```' then in_block = not in_block end
    local title = not in_block and line:match '^#+ (.*)$'
    if title then
      close()
      section, text, score = title:gsub('`', ''), {}, 10 * score_of(normal(title), phrase, words)
    end
    text[#text + 1] = normal(line)
  end
  close()
  if best then return best, whole end
end

-- The words of a text that say something about its subject.
local function words_of(phrase)
  return util.filtered(util.words(phrase, '%S+'), function(word) return not empty[word] end)
end

--- The rows of the glossary whose terms have the words: { term, meaning, names of others }.
function index.terms(text)
  local rows, phrase = {}, normal(text)
  local words = words_of(phrase)
  for line in manual.source('glossary'):gmatch '[^\n]+' do
    local cells = util.map(util.words(line, '|([^|]*)'), function(cell) return cell:match '^%s*(.-)%s*$' end)
    if #cells >= 3 and score_of(normal(cells[1] .. ' ; ' .. cells[3]), phrase, words) > 0 then
      rows[#rows + 1] = { (cells[1]:gsub('`', '')), (cells[2]:gsub('`', '')), (cells[3]:gsub('`', '')) }
    end
  end
  return rows
end

--- Pages that use the words, the most prominent first: { page, section }.
function index.find(text)
  local phrase, rows = normal(text), {}
  local words = words_of(phrase)
  if #words == 0 then return rows end
  for at, name in ipairs(manual.names()) do
    local section, score = best_section(manual.source(name), phrase, words)
    if section and name ~= 'glossary' then rows[#rows + 1] = { name, section, score = score, at = at } end
  end
  table.sort(rows, function(a, b) return a.score > b.score or a.score == b.score and a.at < b.at end)
  return rows
end

return index
