-- Files of ours that are damaged, cut short, of another version or for another model are refused by name. Some 60 bits
-- and 40 lengths of each format; with DAMAGE=4000 in the environment some 4,000 of each (all, of smaller files), counted.

local commands = require 'trinity.command.commands'
local core = require 'trinity.core'
local graphs = dofile(root .. '/tests/lua/support/graphs.lua')
local kept = dofile(root .. '/tests/lua/support/kept.lua')
local trinity = require 'trinity'

local damage = assert(loadfile(root .. '/tests/lua/support/damage.lua'))()
local folder = temporary()
os.execute(("mkdir '%s'"):format(folder))
local path = folder .. '/file'
local most = tonumber(os.getenv 'DAMAGE')

for _, format in ipairs(damage.formats()) do
  local own_path = path .. (format.ending or '')
  describe('a damaged ' .. format.name, function()
    it('is refused by name, or read as a legal file', function()
      format.write(own_path)
      local size = #core.read_file(own_path)
      local counts, wrong = damage.try(format, own_path, math.max(1, math.floor(size / (most or 60))),
        math.max(1, math.floor(size / (most or 40))))
      if most then
        print(('%s: %d bytes, %d cases, %d refused, %d read as they were, %d other legal files, %d wrong'):format(format.name,
          counts.bytes, counts.cases, counts.refused, counts.same, counts.other, #wrong))
      end
      expect(wrong[1]):equals(nil)
      expect(counts.refused > counts.cases / 4):equals(true)
      if format.summed then expect(counts.refused):equals(counts.cases) end
    end)
    it('of another kind is refused by name', function()
      for _, text in ipairs { '', 'x', '{}', '[]', 'null', '\0', ('['):rep(1e5), '{"format": "trinity"}', ('\255'):rep(100) } do
        core.write_file(own_path, text)
        local ok, message = pcall(format.read, own_path)
        expect(ok):equals(false)
        expect(tostring(message):find(own_path, 1, true) ~= nil):equals(true)
        expect(tostring(message):find('\n', 1, true)):equals(nil)
      end
      os.remove(own_path)
      expect(function() format.read(own_path) end):raises '[Nn]o %l+ file'
      os.execute(("mkdir '%s'"):format(own_path))
      expect(function() format.read(own_path) end):raises 'a directory'
      os.execute(("rm -r '%s'"):format(own_path))
    end)
  end)
end

describe('a strategy that a command is given', function()
  it('is refused in one sentence by each of them where it is damaged, missing or for another network', function()
    local names, sound = {}, path .. '.json'
    for _, name in ipairs(commands.names()) do
      if commands.about(name).options.strategy then names[#names + 1] = name end
    end
    expect(#names):equals(3)
    local small = trinity.problem { graph = trinity.model('alexnet', { batch_size = 4 }),
      cluster = trinity.cluster 'p100x2' }
    trinity.methods.metis(small, { quiet = true }):save(sound)
    local text = core.read_file(sound)
    local cases = { '', '{"format":"trinity-strategy"}', text:sub(1, #text / 2), (text:gsub('"version": %d', '"version": 99')),
      (text:gsub('"conv_1"', '"conv_9"')), (text:gsub('"operators": %d+', '"operators": "\27[2J"')) }
    for _, name in ipairs(names) do
      local format = name == 'export' and ' --format placement' or ''
      local function refused(file, content)
        local output = output_of(("'%s' %s --model alexnet --batch_size 4 --cluster p100x2 --runs none%s --strategy '%s'"
          .. " 2>&1; echo status=$?"):format(program, name, format, file))
        if not output:match "^trinity: option '%-%-strategy': [^\n\27]+\nstatus=2\n$" then
          error(('%s of %q: %s'):format(name, content, output))
        end
      end
      for _, content in ipairs(cases) do
        core.write_file(sound, content)
        refused(sound, content)
      end
      refused(path .. '.none', 'no file')
      refused(folder, 'a folder')
    end
    os.remove(sound)
  end)
  it('with a mesh is simulated as one, and refused where every operator is on one device', function()
    local small = trinity.problem { graph = trinity.model('gpt2', { layers = 2, batch_size = 1, fused = false }),
      cluster = trinity.cluster 'dgx_a100x1' }
    local found = small:strategy { mesh = { data = 2, tensor = 2 }, micro_batches = 2 }
    found:save(path .. '.json')
    local function output(words)
      return output_of(("cd '%s' && '%s' %s --model gpt2 --set layers=2,fused=false --batch_size 1 --cluster dgx_a100x1 "
        .. "--runs none --strategy '%s.json' 2>&1"):format(folder, program, words, path))
    end
    expect(output('simulate --trace trace.json'):find(('step time       %.6g s, '):format(found.metrics.step_time_s), 1, true) ~= nil):truthy()
    expect(output 'simulate --schedule gpipe'):matches 'the strategy has a mesh, which fixes both'
    expect(output 'export --format placement'):matches 'has a mesh; expected a strategy'
  end)
end)

describe('a file for something else', function()
  local function problem(operators, cluster)
    local graph = graphs.chain(operators, function(i) return { time_s = i * 1e-3 } end)
    return trinity.problem { graph = graph, cluster = trinity.cluster(cluster) }
  end
  it('is refused where it is a checkpoint with another byte next to its check sum', function()
    local here = problem(4, 'p100x2')
    local options = { evaluations = 24, samples = 2, groups = 2, hidden = 2, epochs = 1, quiet = true, policy = 1 }
    local function search() return trinity.methods.trinity(here, options) end
    kept.search(path, search)
    local text = core.read_file(path)
    local first, last = text:find '"sum": *"%x+"'
    for _, at in ipairs { first - 1, last + 1 } do
      core.write_file(path, text:sub(1, at - 1) .. '\t' .. text:sub(at + 1))
      expect(function() kept.search(path, search, true) end):raises 'changed or cut short'
    end
  end)
  it('is refused where it is a strategy of another model or cluster', function()
    local here = problem(4, 'p100x2')
    here:strategy(here:placement()):save(path)
    expect(function() problem(5, 'p100x2'):load(path) end):raises "this is another network %('chain'%); use"
    expect(function() problem(5, 'p100x2'):load(path, { reevaluate = true }) end)
      :raises "placement: operator 'op5' of graph '[^']*' is missing"
    expect(function() problem(4, 'p100x4'):load(path) end):raises
      "made for [^\n]*, on p100x2; this is another cluster %('p100x4'%); use reevaluate = true"
    expect(problem(4, 'p100x4'):load(path, { reevaluate = true }).reevaluated):matches 're%-evaluated for [^ ]+ on p100x4'
    local changed = core.read_file(path):gsub('"op1": "gpu0"', '"op1": "gpu9"', 1)
    core.write_file(path, changed)
    expect(function() here:load(path) end):raises "placement of operator 'op1': no device 'gpu9' in cluster 'p100x2'"
  end)
  it('is refused where it is a policy of another version', function()
    local here = problem(4, 'p100x2')
    local small = { samples = 2, groups = 2, hidden = 2, resume = path }
    core.write_file(path, 'trinity policy\n\1\0\0\0')
    expect(function() trinity.learn.agent(here, small) end):raises
      'file: a policy saved by an older version of trinity, [^\n]*: run its search again'
  end)
end)

