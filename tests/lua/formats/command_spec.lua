-- Plans in every format by the command: standard output and standard error, what --lossless refuses,
-- and files of each reader that are cut off, empty, folders or noise: one sentence that begins with their name.

local core = require 'trinity.core'
local trinity = require 'trinity'

local data = core.home .. '/tests/data/'
local model = data .. 'clients/models/llama.json'

--- The words of `trinity export` for a plan of Llama, which is saved.
local function exported(cluster, plan)
  local problem = trinity.problem { graph = trinity.model(model), cluster = trinity.cluster(cluster) }
  local path = temporary '.json'
  problem:strategy(plan):save(path)
  return ("export '%s' --cluster %s --strategy '%s' --run none"):format(model, cluster, path)
end

local pipeline = exported('p100x4', { mesh = { pipeline = 2, data = 2 }, micro_batches = 4, stages = { 3, 5 }, zero_stage = 1 })

--- Status, standard output and standard error.
local function parts_of(words)
  local errors = temporary()
  local output, status = output_of(("cd '%s' && timeout -k 5 300 '%s' %s 2> '%s'; echo status=$?"):format(root, program, words,
    errors)):match '^(.*)status=(%d+)\n$'
  return tonumber(status), output, trinity.files.read(errors)
end

describe('trinity export', function()
  it('needs a format with a strategy, and a strategy with a format of meshes', function()
    trinity_says('export --strategy nothing.json', 2, "option '%-%-format': required with %-%-strategy; one of dot, json,")
    trinity_says('export --format megatron', 2, "option '%-%-strategy': required with %-%-format megatron")
  end)
  it('has its devices of equal numbers in one line', function()
    local path = temporary '.json'
    local problem = trinity.problem { graph = trinity.model('mlp', { batch_size = 16 }), cluster = trinity.cluster 'dgx_h100x2' }
    problem:strategy({ mesh = { data = 16 } }):save(path)
    trinity_says(('simulate --strategy %s'):format(path), 0, '\nn0/gpu0 to n1/gpu7 each computes',
      'of all placements of the graph that its mesh lowers to\n')
  end)
  it('of other files says what they are', function()
    local path = temporary '.json'
    core.write_file(path, '{"model_type": "llama"}')
    trinity_says(('simulate --strategy %s'):format(path), 2, "got a Hugging Face config; 'trinity plan")
    core.write_file(path, '{"format": "trinity-strategy", "version": 1}')
    trinity_says(('simulate %s'):format(path), 1, 'got a strategy .*; use %-%-strategy ')
    trinity_says('plan gpt2 --sequence 100000000', 2, "option '%-%-sequence': expected an integer from 1 to 16777216, got")
    trinity_says('info mlp', 0, 'one forward pass on one')
    trinity_says('info mlp --training', 0, 'one training step on one')
    trinity_says('info alexnett', 2, "option '%-%-model': no model 'alexnett', did you mean 'alexnet'%?")
    trinity_says('plan llama-3-80b', 2, "option '%-%-model': no model 'llama%-3%-80b', did you mean")
    trinity_says('plan llama-3-8b --cluster dgx_h1000', 2, "option '%-%-cluster': no cluster 'dgx_h1000', did you mean")
    trinity_says('info mlp --cluster A100x3:9', 1, 'NAME:GxN: N machines of G GPUs each')
  end)
  it('writes one file to standard output with nothing else, names the rest on standard error or refuses it', function()
    for format, words in trinity.system.sorted_pairs { accelerate = pipeline, pytorch_schedule = pipeline } do
      words = ('%s --format %s'):format(words, format)
      local status, output, errors = parts_of(words)
      expect(status):equals(0)
      if format == 'pytorch_schedule' then
        expect(output):matches '^0F0,[%dFB,]+\n1F0,[%dFB,]+\n$'
      else
        expect(type(trinity.files.json.decode(output))):equals 'table'
      end
      expect(errors):matches(('^trinity: warning: export: %s cannot represent '):format(format))
      status, output, errors = parts_of(words .. ' --lossless')
      expect(status):equals(1)
      expect(output):equals ''
      expect(errors):matches(('^trinity: export: %s cannot represent: [^\n]* %%(required by lossless%%)\n$'):format(format))
    end
  end)
  it('prints no losses where the file expresses the whole plan', function()
    local status, output, errors = parts_of(pipeline .. ' --format megatron --lossless')
    expect(status):equals(0)
    expect(errors):equals ''
    expect(output):matches '^# llama: .*MODEL_PARALLEL_ARGS=%(\n.*\n%)\n$'
  end)
  it('writes several files into a folder alone', function()
    local zero_bubble = exported('p100x4', { mesh = { pipeline = 4 }, micro_batches = 8, schedule = 'zb-h1' })
    local status, output, errors = parts_of(zero_bubble .. ' --format torchtitan')
    expect(status):equals(1)
    expect(output):equals ''
    expect(errors):matches '^trinity: export: torchtitan: expected a folder for the 2 files %(parallelism.py and others%)[^\n]*%-%-output%-dir'
    trinity_says(("%s --format torchtitan --output_dir '%s'"):format(zero_bubble, temporary '.d'), 0,
      'wrote [^\n]*parallelism.py\nwrote [^\n]*schedule.csv\n')
  end)
  it('writes to one place', function()
    trinity_says(pipeline .. ' --format megatron --output_dir a --output b', 2, "^trinity: options '%-%-output%-dir' and '%-%-output': expected one")
    trinity_says(pipeline .. ' --format json --output_dir a', 2, "^trinity: option '%-%-output%-dir': format 'json' is one file")
  end)
  it('knows no other format', function()
    trinity_says(pipeline .. ' --format megatorn', 2, "^trinity: option '%-%-format': unknown format 'megatorn', did you mean 'megatron'%?")
  end)
end)

describe('the best plan', function()
  it('is exported from the file that trinity plan writes', function()
    local path = temporary '.json'
    trinity_says(("plan '%s' --global_batch 8 --simulations 2 --data 2 --tensor 1 --pipeline 2 --cluster p100x4 --run none "
      .. "--quiet --output '%s'"):format(model, path), 0)
    local status, output = parts_of(("export --strategy '%s' --format accelerate --run none"):format(path))
    expect(status):equals(0)
    expect(trinity.files.json.decode(output)['lm_head']):equals(1)
  end)
end)

describe('files of other programs', function()
  local folder = temporary '.d'
  trinity.problem { graph = trinity.model(model), cluster = trinity.cluster 'p100x2' }:strategy({ mesh = { data = 2 } })
    :export { format = 'chakra', folder = folder }
  local function says(file, what) return ("%s '%s' --run none"):format(what, file) end
  -- Name, ending, a good file, and how it is read.
  local readers = {
    { 'pt2', '.pt2', data .. 'exported/lstm.pt2', function(file) return says(file, 'info') end },
    { 'onnx', '.onnx', data .. 'onnx/lstm.onnx', function(file) return says(file, 'info') end },
    { 'config.json', '.json', model, function(file) return says(file, 'info') end },
    { 'chakra', '.0.et', folder .. '/trace.0.et', function(file) return says(file, 'info') end },
    { 'pytorch_schedule', '.csv', '', function(file)
      return ("%s --schedule_csv '%s'"):format(pipeline:gsub("^export '[^']*'", ("simulate --model '%s'"):format(model)), file)
    end },
  }
  local function damaged(text)
    return { cut = text:sub(1, math.floor(#text / 2)), empty = '', noise = ('\240\159\1\0\255{'):rep(40) }
  end
  for _, reader in ipairs(readers) do
    it(('are refused in one sentence where they are damaged: %s'):format(reader[1]), function()
      local good = reader[3] == '' and '0F0,0F1,0B0,0B1,0F2,0B2\r\n1F0' or trinity.files.read(reader[3])
      for kind, text in trinity.system.sorted_pairs(damaged(good)) do
        local path = file_with(text, reader[2])
        local status, output, errors = parts_of(reader[4](path))
        if status ~= 1 or output ~= '' or not errors:find('^trinity: [^\n]*\n$') or errors:find('trinity.read', 1, true)
          or not errors:find(path:match '[^/]*$', 1, true) then
          error(('%s, %s: status %s: %s%s'):format(reader[1], kind, status, output, errors), 0)
        end
      end
      local path = temporary(reader[2])
      for _, there in ipairs { false, true } do
        if there then trinity.files.write(path .. '/x', '') end
        local status, _, errors = parts_of(reader[4](path))
        expect(status):equals(1)
        expect(errors):matches '^trinity: [^\n]*\n$'
        expect(errors:find(path:match '[^/]*$', 1, true) ~= nil):equals(true)
      end
    end)
  end
end)
