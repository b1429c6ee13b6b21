-- Training on data: files of every kind, samples by seed whatever the strategy, accuracy, checkpoints, malformed files.

local core = require 'trinity.core'
local trinity = require 'trinity'
local util = require 'trinity.base.util'

with_torch()

local folder = temporary()
os.execute("mkdir '" .. folder .. "'")

local function write(name, text)
  core.write_file(folder .. '/' .. name, text)
  return folder .. '/' .. name
end

--- Rows of two numbers and a class, which is whether the first is larger.
local function table_text(rows)
  local random, lines = trinity.random(5, 'rows'), {}
  for i = 1, rows do
    local a, b = random:uniform(), random:uniform()
    lines[i] = ('%.6f,%.6f,%d'):format(a, b, a > b and 1 or 0)
  end
  return table.concat(lines, '\n') .. '\n'
end

local function problem_of(options, devices)
  return trinity.problem { graph = trinity.model('mlp', util.merged({ inputs = 2, hidden = { 8 }, classes = 2, batch_size = 5 },
    options)), cluster = trinity.cluster('p100x' .. devices) }
end

local function train(strategy, devices, options, of)
  local problem = problem_of(of or {}, devices)
  return trinity.execute(problem, problem:strategy(strategy), util.merged({ quiet = true, learning_rate = 0.5,
    keep_weights = true }, options))
end

local rows = write('rows.csv', table_text(120))
local some = { data = rows, train_rows = 100, epochs = 30 }

local function expect_same(found, expected)
  expect(#found.losses):equals(#expected.losses)
  for i, loss in ipairs(expected.losses) do expect(found.losses[i]):near(loss, 1e-5) end
  for i, weight in ipairs(expected.weights) do
    for k, value in ipairs(weight.values) do expect(found.weights[i].values[k]):near(value, 1e-5) end
  end
end

local function same(a, b)
  for k, value in ipairs(a) do
    if b[k] ~= value then return false end
  end
  return #a == #b
end

describe('training on a table', function()
  it('learns what it has not seen, and says how well', function()
    local run = train({ mesh = {}, micro_batches = 2 }, 1, some)
    expect(#run.losses):equals(300)
    expect(run.held_out_samples):equals(20)
    expect(#run.accuracies):equals(30)
    expect(run.accuracies[30]):equals(run.accuracy)
    expect(run.accuracy >= 0.9):equals(true)
    expect(run.losses[300] < 0.5 * run.losses[1]):equals(true)
  end)
  it('says loss, samples a second and accuracy as it goes', function()
    local progress, said = require 'trinity.base.progress', {}
    local before = progress.listener
    progress.listener = function(_, state) said[#said + 1] = state.text end
    local ok, run = pcall(train, { mesh = { data = 2 } }, 2, util.merged(some, { epochs = 2 }))
    progress.listener = before
    expect(ok):equals(true)
    expect(#said):equals(20) -- 100 samples of which a step has 5 on each of two replicas, twice
    for step, text in ipairs(said) do
      expect(text):matches(('step %d/20  loss %%d[^ ]*  [^ ]+ s  [^ ]+ samples/s'):format(step))
      expect(tonumber(text:match 'loss ([^ ]+)')):near(run.losses[step], 1e-5)
      local rate = 10 / run.step_times_s[step]
      expect(tonumber(text:match '([^ ]+) samples/s')):near(rate, 2e-3 * rate)
      local epoch = math.floor(step / 10)
      expect(text:match 'accuracy (.*)'):equals(epoch > 0 and ('%.4f'):format(run.accuracies[epoch]) or nil)
    end
    expect(run.samples_per_s):near(10 / run.step_time_s, 1e-9 * run.samples_per_s)
  end)
  it('has the same samples whatever the strategy', function()
    local one = train({ mesh = {}, micro_batches = 2 }, 1, some)
    expect_same(train({ mesh = { data = 2 } }, 2, some), one)
    expect_same(train({ mesh = { data = 2 }, zero_stage = 2 }, 2, some), one)
    expect_same(train({ mesh = { pipeline = 2 }, micro_batches = 2 }, 2, some), one)
    expect_same(train({ mesh = { tensor = 2 }, micro_batches = 2 }, 2, some), one)
    local other = train({ mesh = {}, micro_batches = 2 }, 1, util.merged(some, { seed = 2 }))
    expect(other.losses[1] == one.losses[1]):equals(false)
  end)
  it('reads what gzip compressed, in pieces, too', function()
    local one = train({ mesh = {} }, 1, util.merged(some, { epochs = 1 }))
    os.execute(("cd '%s' && (head -n 50 rows.csv | gzip; tail -n +51 rows.csv | gzip; head -c 512 /dev/zero) > pieces.csv.gz"
      .. ' && (gzip -c rows.csv; echo more) > more.csv.gz'):format(folder))
    expect(train({ mesh = {} }, 1, util.merged(some, { epochs = 1, data = folder .. '/pieces.csv.gz' })).losses[20])
      :equals(one.losses[20])
    expect(function() train({ mesh = {} }, 1, { data = folder .. '/more.csv.gz', epochs = 1 }) end)
      :raises "more.csv.gz: byte %d+: expected a complete gzip file"
  end)
  it("reads what UTF-8's mark begins as without it", function()
    local marked = train({ mesh = {} }, 1, util.merged(some, { epochs = 1, data = write('marked.csv', '\239\187\191' .. table_text(120)) }))
    expect(marked.losses[3]):equals(train({ mesh = {} }, 1, util.merged(some, { epochs = 1 })).losses[3])
  end)
  it('scales its numbers', function()
    local big = write('big.csv', (table_text(120):gsub('(%d)%.(%d%d%d%d%d%d)', '%1%2')))
    local short = util.merged(some, { epochs = 1 })
    local scaled = train({ mesh = {} }, 1, util.merged(short, { data = big, scale = 1e-6 }))
    expect(scaled.losses[3]):near(train({ mesh = {} }, 1, short).losses[3], 1e-5)
  end)
end)

describe('a checkpoint', function()
  for _, optimiser in ipairs { 'sgd', 'momentum', 'adam' } do
    it('goes on to the same bytes, under another strategy too: ' .. optimiser, function()
      local file, of = folder .. '/' .. optimiser .. '.safetensors', { optimizer = optimiser }
      local few = { data = rows, train_rows = 100, learning_rate = 0.05 }
      local whole = train({ mesh = {}, micro_batches = 2 }, 1, util.merged(few, { epochs = 4 }), of)
      train({ mesh = {}, micro_batches = 2 }, 1, util.merged(few, { epochs = 2, checkpoint = file }), of)
      core.write_file(file .. '.2', core.read_file(file))
      local rest = train({ mesh = {}, micro_batches = 2 }, 1, util.merged(few, { epochs = 4, checkpoint = file }), of)
      expect(rest.steps_done):equals(whole.steps_done)
      expect(#rest.losses):equals(20)
      for i = 1, 20 do expect(rest.losses[i]):equals(whole.losses[20 + i]) end
      for i, weight in ipairs(whole.weights) do expect(same(rest.weights[i].values, weight.values)):equals(true) end
      local sharded = train({ mesh = { data = 2 }, zero_stage = 3 }, 2, util.merged(few, { epochs = 4, checkpoint = file .. '.2' }), of)
      for i = 1, 20 do expect(sharded.losses[i]):near(whole.losses[20 + i], 1e-5) end
      expect(function() train({ mesh = {}, micro_batches = 2 }, 1, util.merged(few, { epochs = 4, checkpoint = file }), of) end)
        :raises "'checkpoint': .*: expected fewer than the 40 steps of this training, got 40" -- beyond its end
    end)
  end
  it('weights are saved and loaded by the names of the graph', function()
    local file = folder .. '/weights.safetensors'
    local saved = train({ mesh = { tensor = 2 } }, 2, util.merged(some, { epochs = 1, save = file }))
    local text = core.read_file(file)
    expect(text):matches '"layer_1/linear/weight":{"dtype":"F32","shape":%[8,2%]'
    local loaded = train({ mesh = {} }, 1, { data = rows, train_rows = 100, steps = 1, learning_rate = 0, load = file })
    for i, weight in ipairs(saved.weights) do expect(same(loaded.weights[i].values, weight.values)):equals(true) end
  end)
end)

describe('other files', function()
  it('a text is learnt byte by byte', function()
    local text = write('text.txt', ('the quick brown fox jumps over the lazy dog. '):rep(60))
    local graph = trinity.model('gpt2', { batch_size = 4, sequence = 16, layers = 2, hidden = 32, heads = 4, vocabulary = 256,
      positions = 16, fused = false, dropout = 0, optimizer = 'adam' })
    local problem = trinity.problem { graph = graph, cluster = trinity.cluster 'p100x2' }
    local run = trinity.execute(problem, problem:strategy { mesh = { tensor = 2 } },
      { data = text, steps = 60, learning_rate = 0.01, quiet = true })
    expect(run.losses[60] < 0.3 * run.losses[1]):equals(true)
    expect(run.accuracy > 0.7):equals(true)
  end)
  it('batches of CIFAR-10, a folder of them', function()
    os.execute(("mkdir '%s/cifar'"):format(folder))
    local images = {}
    for i = 0, 19 do images[#images + 1] = string.char(i % 10) .. string.char(i):rep(3072) end
    write('cifar/data_batch_1.bin', table.concat(images))
    write('cifar/test_batch.bin', table.concat(images))
    local run = train({ mesh = {} }, 1, { data = folder .. '/cifar', epochs = 2 }, { inputs = 3072, classes = 10 })
    expect(#run.losses):equals(8)
    expect(run.held_out_samples):equals(20)
  end)
  it('the words of the Penn Treebank', function()
    os.execute(("mkdir '%s/ptb'"):format(folder))
    write('ptb/ptb.train.txt', (' a <unk> b c \n'):rep(40))
    write('ptb/ptb.valid.txt', (' a d b c \n'):rep(10))
    local problem = trinity.problem { graph = trinity.model('rnnlm', { batch_size = 2, sequence = 5, hidden = 8, layers = 1,
      vocabulary = 5 }), cluster = trinity.cluster 'p100' }
    local run = trinity.execute(problem, problem:placement(), { data = folder .. '/ptb', epochs = 1, quiet = true })
    expect(#run.losses):equals(19) -- 199 labels are 39 rows of 5, of which a step has 2
    expect(run.held_out_samples):equals(9)
  end)
end)

describe('a malformed file is named with its place:', function()
  local function refused(name, text, pattern)
    it(name, function()
      local file = write(name, text)
      expect(function() train({ mesh = {} }, 1, { data = file, epochs = 1 }) end):raises(pattern)
    end)
  end
  refused('word.csv', '1,2,0\n1,x,1\n', "word.csv: line 2, field 2: expected a number, got 'x'")
  refused('short.csv', '1,2,0\n\n1,1\n', 'short.csv: line 3, field 2: expected 3 fields, as in the lines before, got 2')
  refused('far.csv', '1,2,0\n1,-1e39,1\n', 'far.csv: line 2, field 2: expected a number of float32, got %-1e%+39')
  refused('nan.csv', '1,nan,0\n', "nan.csv: line 1, field 2: expected a number, got 'nan'")
  refused('end.csv', '1,2,0\r\n1,2,\r\n', "end.csv: line 2, field 3: expected a number, got ''")
  refused('class.csv', '1,2,0.5\n', 'class.csv: line 1, field 3: expected a class, a whole number from 0, got 0.5')
  refused('empty.csv', '', 'empty.csv: expected lines of numbers, got none')
  refused('cut.csv.gz', '\31\139\8\0\0\0\0\0', 'cut.csv.gz: byte 8: expected a complete gzip file')
  refused('nul.csv', '1,2,0\n1,\0,1\n', "nul.csv: line 2, field 2: expected a number, got '\\x00'$")
  refused('cut.bin', ('x'):rep(100), 'cut.bin: byte 0: expected images of 3073 bytes each, got 100 bytes')
  refused('rest.bin', ('\1'):rep(2 * 3073) .. 'abc', 'rest.bin: byte 6146: expected images of 3073 bytes each, got 3 bytes')
  refused('class.bin', '\12' .. ('x'):rep(3072), 'class.bin: byte 0: expected a class from 0 to 9, got 12')
  refused('few.csv', '1,2,0\n', 'expected at least the 5 samples that a step trains')
  refused('wide.csv', ('1,2,3,0\n'):rep(9), "input 'inputs' takes samples of 2 numbers, the data have samples of 3")
  refused('classes.csv', ('1,2,7\n'):rep(9), "input 'labels' takes numbers below 2, the data have 7")
  refused('no.safetensors', 'nonsense', 'no.safetensors')
  --- Two samples of two numbers and their classes, in a file of 8 bytes of length, a header, 32 bytes: labels from `labels`.
  local function tensors(labels, behind, header)
    header = header or ('{"inputs":{"dtype":"F32","shape":[2,2],"data_offsets":[0,16]},'
      .. '"labels":{"dtype":"I64","shape":[2],"data_offsets":[%d,%d]}}'):format(labels, labels + 16)
    return string.char(#header) .. ('\0'):rep(7) .. header .. ('\0'):rep(32) .. behind
  end
  refused('over.safetensors', tensors(12, ''), "over.safetensors: tensor 'labels': data_offsets begin at 12, expected 16, where")
  refused('hole.safetensors', tensors(20, 'abcd'), "hole.safetensors: tensor 'labels': data_offsets begin at 20, expected 16")
  refused('behind.safetensors', tensors(16, 'abc'), 'behind.safetensors: 3 bytes after the last tensor')
  refused('whole.safetensors', tensors(16, ''), 'expected at least the 5 samples that a step trains')
  refused('header.safetensors', tensors(16, '', '{"inputs":'), 'header.safetensors: not a safetensors file: its header, from byte 9: ')
  it('tensors of which one is no number', function()
    local tensor, file = trinity.tensor, folder .. '/nan.safetensors'
    local x = {}
    for i = 1, 20 do x[i] = i == 14 and 0 / 0 or i end
    tensor.save(file, { inputs = tensor.new(x):reshape { 10, 2 }, labels = tensor.zeros({ 10 }, { dtype = 'int64' }) })
    expect(function() train({ mesh = {} }, 1, { data = file, epochs = 1 }) end)
      :raises "nan.safetensors: .*'inputs' %[6, 1%]: expected a number of float32, got %-?nan"
  end)
  it('tensors of other extents', function()
    local tensor, file = trinity.tensor, folder .. '/extents.safetensors'
    tensor.save(file, { inputs = tensor.zeros { 10, 2 }, labels = tensor.zeros({ 9 }, { dtype = 'int64' }) })
    expect(function() train({ mesh = {} }, 1, { data = file, epochs = 1 }) end)
      :raises "extents.safetensors: .*'labels' %[samples%] and 'inputs' %[samples, ...%] of the same number of samples, got %[9%] and %[10, 2%]"
  end)
  it('words that the training text has not, and a text of none', function()
    os.execute(("mkdir '%s/words'"):format(folder))
    write('words/ptb.train.txt', ' a b \n')
    write('words/ptb.valid.txt', ' a b \n b c \n')
    local function read() return core.data_set(folder .. '/words', {}) end
    expect(read):raises "ptb.valid.txt: line 2: word 'c' is not in the training file"
    write('words/ptb.valid.txt', ' \t ')
    expect(read):raises 'ptb.valid.txt: expected words, got none'
    write('words/ptb.train.txt', '')
    expect(read):raises 'ptb.train.txt: expected words, got none'
  end)
  it('a folder of other things', function()
    os.execute(("mkdir '%s/other'"):format(folder))
    expect(function() train({ mesh = {} }, 1, { data = folder .. '/other' }) end)
      :raises 'other: expected a folder with data_batch_1.bin %(CIFAR%-10%) or ptb.train.txt in it'
  end)
  it('by the command before it begins a run', function()
    local processes = dofile(root .. '/tests/lua/support/processes.lua')
    for name, text in trinity.system.sorted_pairs { ['word.csv'] = '1,2,0\n1,x,1\n', ['cut.csv.gz'] = '\31\139\8\0', ['no.safetensors'] = 'nonsense',
      ['text.json'] = '{ "a": 1 }' } do
      write(name, text)
      local status, output = processes.shell(('cd %s && "$T" execute --model mlp --set inputs=2,classes=2 --data %s --epochs 1')
        :format(folder, name), 'TRINITY_RUNS=' .. folder .. '/runs')
      expect(status):equals(1)
      expect(output):matches('^trinity: [^\n]*' .. name:gsub('%p', '%%%0') .. '[^\n]*\n$')
    end
    expect(util.exists(folder .. '/runs')):equals(false)
  end)
  it('one that is not there', function()
    expect(function() train({ mesh = {} }, 1, { data = folder .. '/none.csv' }) end):raises 'none.csv'
  end)
end)
