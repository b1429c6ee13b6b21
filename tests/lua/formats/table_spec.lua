-- The one table of formats: what `trinity help formats` prints is what the code writes and reads, and each reader is a
-- target of tests/fuzz.

local core = require 'trinity.core'
local trinity = require 'trinity'

local data = root .. '/tests/data/'
local written, read = trinity.formats.table()

local function model(path) return trinity.model(path, { training = false }).operators > 0 end

-- Every format that is read: its target in tests/fuzz, and a file that is read here.
local readers = {
  chakra = { 'chakra', function()
    local record = trinity.files.json.read(data .. 'clients/chakra_own.json').traces['two_comp_nodes_dependent.0.et']
    return model(file_with(record.hex:gsub('%x%x', function(digits) return string.char(tonumber(digits, 16)) end), '.0.et'))
  end },
  pytorch_schedule = { 'formats', function()
    local problem = trinity.problem { graph = trinity.model(data .. 'clients/models/llama.json', { sequence = 32 }),
      cluster = trinity.cluster 'p100x2' }
    return problem:strategy({ mesh = { pipeline = 2 }, tasks = file_with('0F0,0B0\r\n1F0,1B0\r\n', '.csv') }).schedule == 'gpipe'
  end },
  onnx = { 'onnx', function() return model(data .. 'onnx/lstm.onnx') end },
  pt2 = { 'exported', function() return model(data .. 'exported/lstm.pt2') end },
  ['config.json'] = { 'decoder', function() return model(data .. 'clients/models/llama.json') end },
  json = { 'graph_json', function() return model(file_with(trinity.model('mlp'):to_json(), '.json')) end },
  ['dnn-partitioning'] = { 'instances', function() return model(data .. 'pipeline/training.json') end },
  piper = { 'instances', function() return model(data .. 'pipeline/piper.json') end },
  pipedream = { 'profiles', function() return model(data .. 'profiles/small.graph.txt') end },
  doppler = { 'profiles', function() return model(data .. 'doppler/ties.txt') end },
}

--- Names of the targets of tests/fuzz, as the sources of `build/fuzz` list them.
local function targets()
  local set = {}
  for _, file in ipairs { 'targets_formats.cpp', 'targets_lua.cpp' } do
    local text = core.read_file(root .. '/tests/fuzz/' .. file)
    for name in text:gmatch '[({]"([%w_]+)",%s*"' do set[name] = true end
  end
  return set
end

describe('the table of formats', function()
  it('is what help prints', function()
    local text, rows = trinity_says('help formats', 0, '^formats that strategies are exported to', '\nfiles that can be read '), 0
    for _ in text:gmatch '\n  [^\n]+' do rows = rows + 1 end
    expect(rows):equals(#written + #read)
    for _, list in ipairs { written, read } do
      for _, row in ipairs(list) do
        expect(text:find(('\n  %s '):format(row[1]), 1, true) ~= nil):equals(true)
        expect(text:find(('%s (%s)'):format(row[2], row[3]), 1, true) ~= nil):equals(true)
      end
    end
  end)

  it('has every module that writes a plan, and no other', function()
    local rooms = {}
    for _, name in ipairs(trinity.files.list(root .. '/lib/trinity/formats')) do
      local module = name:match '^(.*)%.lua$'
      local room = module ~= 'init' and require('trinity.formats.' .. module)
      if type(room) == 'table' and room.write then
        expect(room.name):equals(module)
        rooms[#rooms + 1] = module
      end
    end
    table.sort(rooms)
    expect(table.concat(rooms, ' ')):equals(table.concat(trinity.formats.names(), ' '))
    expect(#written):equals(#rooms)
  end)

  for _, row in ipairs(read) do
    it('names what is read, by a target of tests/fuzz, too: ' .. row[1], function()
      local reader = readers[row[1]]
      if not reader then error('no file of this format is read here', 0) end
      expect(reader[2]()):equals(true)
      expect(targets()[reader[1]]):equals(true)
    end)
  end

  it('names all that is tried here', function()
    local known = {}
    for _, row in ipairs(read) do known[row[1]] = true end
    for name in trinity.system.sorted_pairs(readers) do expect(known[name]):equals(true) end
  end)
end)

describe('JSON', function()
  local mark = '\239\187\191' -- after a byte order mark the reader with a document in between reads

  --- Both readers take a text for the same, or refuse it in the same words.
  local function compare(text)
    local results = {}
    for i, words in ipairs { text, mark .. text } do
      results[i] = { pcall(core.from_json, words, 'x') }
      if not results[i][1] then results[i][2] = tostring(results[i][2]):gsub('^.-trinity%.from_json: ', '') end
    end
    local ok, value, also, other = results[1][1], results[1][2], results[2][1], results[2][2]
    if ok ~= also or (ok and core.to_json(value) ~= core.to_json(other)) or not ok and value ~= other then
      error(('%q: %s, %s'):format(text, tostring(value), tostring(other)), 0)
    end
    return ok
  end

  it('is the same to both of its readers, also where it is none', function()
    local texts = { 'null', '0', '-0', '-0.0', '1e400', '-1e400', '1e-400', '4.9e-324', '123456789012345678901234567890',
      '9007199254740993', '0.1', '01', '1.', '.5', '-', '+1', 'NaN', '"\\ud83d\\ude00"', '"\\ud800"', '"\\udc00"', '"\\u0000"',
      '"\237\160\128"', '"\237\159\191"', '"\255"', '"\1"', '"\127"', '{"a":1,"a":2}', '{"a":null,"a":2}', '{"a":2,"a":null}',
      '{"":{}}', '[1,null,"x",2,[3,[],{}],null]', '[null]', '[[],[[]],{}]', '[1,2', '[1,]', '{"a"}', '{"a":}', '{,}', '1 2',
      '[1]x', '', ' ', '[1]\0', '\0', '"a\0b"', '[1]\n ', '// x', '[1]//', ('['):rep(63) .. (']'):rep(63), ('['):rep(64) .. (']'):rep(64),
      ('['):rep(65) .. (']'):rep(65), ('{"a":'):rep(65), '[true,false]', 'tru', '{"a":true}' }
    local many = {}
    for i = 1, 40 do many[i] = ('"k%d":null'):format(i) end
    texts[#texts + 1] = '{' .. table.concat(many, ',') .. '}'
    texts[#texts + 1] = '{' .. table.concat(many, ',') .. ',"k40":1}'
    for _, text in ipairs(texts) do compare(text) end
    local random, refused = trinity.random(1, 'JSON'), 0
    local whole = core.read_file(data .. 'clients/models/llama.json') .. '[1,-2.5e-3,{"x":[null,true,"\\u00e9"]}]'
    for _, base in ipairs { core.read_file(data .. 'clients/models/llama.json'), '[1,-2.5e-3,{"x":[null,true,"\\u00e9",[]],"y":null}]', whole } do
      for _ = 1, 1000 do
        local at, to = random:integer(#base), random:integer(#base)
        if not compare(base:sub(1, at - 1) .. base:sub(to, to) .. base:sub(at + random:integer(3) - 1)) then refused = refused + 1 end
      end
    end
    expect(refused > 500 and refused < 2990):equals(true)
    expect(#core.from_json('[[1,2],[]]', 'x')[1]):equals(2)
  end)
  it('is refused for what is wrong with it, whatever words it quotes', function()
    expect(function() core.from_json([[{"can't allocate memory]], 'x') end):raises 'x:1:23: not valid JSON'
  end)
end)
