-- --safe and the formats of other programs: whatever reads or writes one stays below the folders that a script of a
-- stranger has; and what of models and clusters is the library's own is there for it.

local core = require 'trinity.core'

-- A folder with the safe script, and beside it, out of its reach, files that would be read if it got there: `hidden`, to
-- which the link `out` leads.
local function place(script)
  local folder = temporary()
  os.execute(("mkdir -p '%s/hidden/decoder' '%s/inside' && ln -s ../hidden '%s/inside/out' && cp '%s'/tests/data/traces/tiny.pt2 "
    .. "'%s'/tests/data/traces/unet.* '%s/hidden' && cp '%s/hidden/tiny.pt2' '%s/inside'"):format(folder, folder, folder, root,
    root, folder, folder, folder))
  core.write_file(folder .. '/hidden/decoder/config.json', '{"model_type":"llama","hidden_size":64,"num_hidden_layers":1,'
    .. '"num_attention_heads":4,"intermediate_size":128,"vocab_size":100,"max_position_embeddings":16}')
  core.write_file(folder .. '/inside/script.lua', script)
  return folder, output_of(("cd '%s/inside' && touch begun && unset TRINITY_RUNS; timeout 100 '%s' --safe script.lua --run r 2>&1"):format(
    folder, program))
end

it('files of other programs are read and written below the folders of a safe script alone', function()
  with_torch()
  local folder, output = place [[
    local trinity = require 'trinity'
    local exported = trinity.model 'tiny.pt2'
    local function gpt2(micro_batch)
      return trinity.model('gpt2', { batch_size = micro_batch, layers = 2, fused = false, dropout = 0, hidden = 64, heads = 4,
        vocabulary = 100, sequence = 16, positions = 16 })
    end
    local planned = trinity.plan { graph = gpt2, cluster = trinity.cluster 'dgx_a100x1', global_batch = 8, simulations = 2,
      quiet = true }.plans[1].strategy
    local small = trinity.problem { graph = trinity.model('mlp', { training = true }), cluster = trinity.cluster 'p100x2' }
    local placed = trinity.methods.contiguous(small, { quiet = true })
    local weights = trinity.rankers.new { hidden = { 2 } }
    for _, at in ipairs { '../hidden/', 'out/', '/tmp/trinity-hidden/', '.hidden/' } do
      local calls = {
        function() return trinity.model(at .. 'tiny.pt2') end,
        function() return trinity.model(at .. 'decoder') end,
        function() return trinity.profile.trace(exported, { kineto = at .. 'unet.kineto.json' }) end,
        function() return trinity.rankers.load(at .. 'w') end,
        function() return trinity.schedulers.load(at .. 'w') end,
        function() return trinity.select(at .. 'unet.et.json') end,
        function() return trinity.formats.read_schedule(at .. 'x.csv') end,
        function() return trinity.files.list(at) end,
        function() return trinity.json.read(at .. 'unet.et.json') end,
        function() return planned:export { format = 'autoparallel', nodes = at .. 'unet.et.json' } end,
        function() return planned:export { format = 'megatron', folder = at .. 'made' } end,
        function() return planned:export { format = 'chakra', folder = at .. 'made' } end,
        function() return trinity.formats.export(placed, { format = 'accelerate', folder = at .. 'made', cut_blocks = true }) end,
        function() return planned:save(at .. 'plan.json') end,
        function() return weights:save(at .. 'w') end,
        function() return trinity.rankers.trainer(weights, { seed = 1 }):save(at .. 'w', {}) end,
        function() return trinity.plot.csv(at .. 'x.csv', { 'a' }, { { 1 } }) end,
        function() return trinity.plot.lines(at .. 'x', { x = 'x', y = 'y', series = { { name = 'a', points = { { 1, 2 } } } } }) end,
        function() return trinity.execute(small, placed, { steps = 1, warm_up = 0, data = at .. 'd.csv' }) end,
      }
      for i, call in ipairs(calls) do
        local ok, message = pcall(call)
        message = tostring(message)
        if ok or not (message:find('which a safe script may not leave', 1, true) or message:find('a hidden file', 1, true)) then
          print('REACHED', at, i, ok, message)
        end
      end
    end
    print 'all tried']]
  expect(output:gsub('trinity: warning[^\n]*\n', ''):gsub('^run:[^\n]*\n', '')):equals 'all tried\n'
  expect(output_of(("cd '%s' && find hidden inside -newer inside/begun -type f -not -path 'inside/runs/r/*' -not -name begun")
    :format(folder))):equals ''
end)

it('every model and cluster of the library is there for a safe script', function()
  local _, output = place [[
    local trinity = require 'trinity'
    local count = 0
    for folder, make in trinity.sorted_pairs { ['models'] = trinity.model, ['models/clusters'] = trinity.cluster } do
      for _, file in ipairs(trinity.files.list(trinity.home .. '/' .. folder)) do
        local name = file:match '^(.*)%.lua$'
        if name then
          count = count + 1
          local ok, message = pcall(make, name)
          if not ok then print(name, message) end
        end
      end
    end
    print(count > 20)]]
  expect(output):equals 'true\n'
end)
