-- Training data of train_distributed: generated samples in a file, of which every rank has its own, and a network for
-- them.

local core = require 'trinity.core'
local random = require 'trinity.base.random'
local tensor = require 'trinity.nn.tensor'

local data = {}

local held_out, pixels, alphabet, steps = 1000, 3 * 16 * 16, 128, 24

--- Writes `samples` pictures: of ten classes three each, with noise, as inputs and labels from 0.
local function pictures(path, samples)
  local all = tensor.normal({ 30, pixels }, random(1, 'pictures')) * 0.3
  local stream, which, class = random(1, 'samples'), {}, {}
  for i = 1, samples do
    which[i] = stream:integer(30)
    class[i] = (which[i] - 1) % 10
  end
  local x = all:index_select(1, tensor.new(which, { dtype = 'int64' })) + tensor.normal({ samples, pixels }, stream)
  tensor.save(path, { inputs = x, labels = tensor.new(class, { dtype = 'int64' }) })
end

--- Writes a text of that many characters: words of two to six letters, each followed by one of four others.
local function write_text(path, characters)
  local stream, words, text, length = random(1, 'words'), {}, {}, 0
  for w = 1, 40 do
    local letters, followers = {}, {}
    for i = 1, 1 + stream:integer(5) do letters[i] = string.char(96 + stream:integer(26)) end
    for i = 1, 4 do followers[i] = stream:integer(40) end
    words[w] = { text = table.concat(letters) .. ' ', followers = followers }
  end
  local word = 1
  while length < characters do
    text[#text + 1], length = words[word].text, length + #words[word].text
    word = words[word].followers[stream:integer(4)]
  end
  core.write_file(path, table.concat(text):sub(1, characters))
end

--- By name: usual epochs and learning rate, a network and its options, how many rows of the file samples are, and the
--- function that writes a number of samples.
data.tasks = {
  images = { epochs = 12, learning_rate = 0.04, ending = '.safetensors', model = 'mlp',
    of_model = { inputs = pixels, hidden = { 128, 64 }, classes = 10 },
    rows = function(samples) return samples end, write = pictures },
  characters = { epochs = 16, learning_rate = 0.3, ending = '.txt', model = 'rnnlm',
    of_model = { sequence = steps, hidden = 128, layers = 1, vocabulary = alphabet },
    rows = function(samples) return samples * steps + 1 end, write = write_text },
}

--- Writes the data of a task: `samples` samples to train on, and 1000 more that are held out. Returns the file, which
--- the caller removes with data.remove, and the number of rows for training.
function data.write(task, samples)
  local path = os.tmpname()
  core.remove_tree(path)
  path = path .. task.ending
  task.write(path, task.rows(samples) + task.rows(held_out))
  return path, task.rows(samples)
end

--- Removes it.
function data.remove(path) core.remove_tree(path) end

return data
