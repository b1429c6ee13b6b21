-- trinity.tensor: values against hand-computed ones, gradients against finite differences, errors, memory.

local trinity = require 'trinity'
local core = require 'trinity.core'
local array = require 'trinity.base.array'
with_torch()
local tensor = trinity.tensor

local compare = dofile(root .. '/tests/lua/support/gradients.lua')(expect)
local double, close_to = compare.double, compare.close_to

local function text(value)
  if type(value) ~= 'table' then return type(value) == 'number' and ('%.12g'):format(value) or tostring(value) end
  local parts = {}
  for i, v in ipairs(value) do parts[i] = text(v) end
  return '{' .. table.concat(parts, ',') .. '}'
end

-- A tensor holds exactly these nested lists.
local function holds(x, value) expect(text(x:totable())):equals(text(value)) end

describe('making tensors', function()
  it('from nested lists, numbers and arrays', function()
    local x = tensor.new { { 1, 2, 3 }, { 4, 5, 6 } }
    holds(x, { { 1, 2, 3 }, { 4, 5, 6 } })
    expect(x.dtype):equals 'float32'
    expect(x.device):equals 'cpu'
    expect(text(x:size())):equals '{2,3}'
    expect(x:size(1)):equals(2)
    expect(x:size(-1)):equals(3)
    expect(#x):equals(2)
    expect(x:dim()):equals(2)
    expect(x:numel()):equals(6)
    expect(tensor.new(2.5):item()):equals(2.5)
    expect(tensor.new { { true, false } }.dtype):equals 'bool'
    holds(tensor.new { { true, false } }, { { true, false } })
    local a = array.double(3)
    a[1], a[2], a[3] = 0.1, 0.2, 0.3
    local y = tensor.new(a)
    a[1] = 7
    expect(y.dtype):equals 'float64'
    holds(y, { 0.1, 0.2, 0.3 })
    local b = array.int32(2)
    b[1], b[2] = 4, 5
    expect(tensor.new(b).dtype):equals 'int64'
    holds(tensor.new(b, { dtype = 'float32' }), { 4, 5 })
    local back = y:to_array()
    expect(#back):equals(3)
    expect(back[2]):equals(0.2)
  end)
  it('filled, counted, unit', function()
    holds(tensor.zeros { 2, 2 }, { { 0, 0 }, { 0, 0 } })
    holds(tensor.ones(3), { 1, 1, 1 })
    holds(tensor.full({ 2 }, 7, { dtype = 'int64' }), { 7, 7 })
    holds(tensor.full({ 2 }, true), { true, true })
    holds(tensor.arange(1, 4), { 1, 2, 3, 4 })
    holds(tensor.arange(1, 0), {})
    holds(tensor.arange(4, 0, -2), { 4, 2, 0 })
    holds(tensor.eye(2), { { 1, 0 }, { 0, 1 } })
    expect(tensor.zeros({}):dim()):equals(0)
    expect(tensor.zeros({ 0, 3 }):numel()):equals(0)
  end)
  it('from our random streams: the same seed gives the same numbers', function()
    local function draw(seed)
      local stream = trinity.random(seed, 'test')
      return text { tensor.uniform({ 2, 3 }, stream, -1, 1):totable(), tensor.normal(4, stream, { dtype = 'float64' }):totable() }
    end
    expect(draw(1)):equals(draw(1))
    expect(draw(1) ~= draw(2)):truthy()
    local stream, other = trinity.random(3, 'x'), trinity.random(3, 'x')
    expect(tensor.uniform(1, stream, 2, 4, { dtype = 'float64' }):item()):equals(2 + 2 * other:uniform())
    local x = tensor.normal(20000, trinity.random(1, 'normal'))
    expect(x:mean():item()):near(0, 0.03)
    expect(x:std():item()):near(1, 0.03)
  end)
  it('changes dtype and copies', function()
    local x = tensor.new { 1, 2 }
    expect(x:to { dtype = 'int64' }.dtype):equals 'int64'
    local y = x:clone()
    y:fill_(5)
    holds(x, { 1, 2 })
    holds(y, { 5, 5 })
    expect(x:transpose(1, 1):contiguous():numel()):equals(2)
  end)
end)

describe('operations', function()
  local x = tensor.new { { 1, -2 }, { 3, 4 } }
  it('elementwise', function()
    holds(x + 1, { { 2, -1 }, { 4, 5 } })
    holds(1 - x, { { 0, 3 }, { -2, -3 } })
    holds(x * x, { { 1, 4 }, { 9, 16 } })
    holds(2 / tensor.new { 1, 4 }, { 2, 0.5 })
    holds(tensor.new { 1, 3 } ^ 2, { 1, 9 })
    holds(2 ^ tensor.new { 1, 4 }, { 2, 16 })
    holds(-x, { { -1, 2 }, { -3, -4 } })
    holds(x + tensor.new { 10, 20 }, { { 11, 18 }, { 13, 24 } })
    holds(x:clamp(0, 3), { { 1, 0 }, { 3, 3 } })
    holds(x:clamp(nil, 2), { { 1, -2 }, { 2, 2 } })
    holds(x:pow(2), { { 1, 4 }, { 9, 16 } })
    holds(x:minimum(2), { { 1, -2 }, { 2, 2 } })
    holds(x:maximum(tensor.zeros { 2, 2 }), { { 1, 0 }, { 3, 4 } })
    holds(x:gt(1), { { false, false }, { true, true } })
    holds(x:eq(x), { { true, true }, { true, true } })
    holds(tensor.where(x:gt(0), x, 0), { { 1, 0 }, { 3, 4 } })
    holds(x:masked_fill(x:lt(0), 9), { { 1, 9 }, { 3, 4 } })
    expect((tensor.new({ 1, 2 }, { dtype = 'int64' }) + 1).dtype):equals 'int64'
    expect((tensor.new({ 1, 2 }, { dtype = 'int64' }) * 0.5).dtype):equals 'float32'
    expect((double { 1 } + 0.5).dtype):equals 'float64'
    expect((tensor.ones(1) + 0.5).dtype):equals 'float32'
    close_to(tensor.new { 0, 1 }:exp(), { 1, math.exp(1) })
    close_to(double { 1 }:gelu(), { 0.8413447460685429 }, 1e-12)
    close_to(double { 0.5 }:sigmoid(), { 1 / (1 + math.exp(-0.5)) }, 1e-15)
  end)
  it('reductions', function()
    expect(x:sum():item()):equals(6)
    holds(x:sum(1), { 4, 2 })
    holds(x:sum(-1, true), { { -1 }, { 7 } })
    holds(x:sum { 1, 2 }, 6)
    expect(x:mean():item()):equals(1.5)
    expect(x:prod():item()):equals(-24)
    holds(x:prod(2), { -2, 12 })
    expect(x:max():item()):equals(4)
    local values, places = x:max(2)
    holds(values, { 1, 4 })
    holds(places, { 1, 2 })
    values, places = x:min(1)
    holds(values, { 1, -2 })
    holds(places, { 1, 1 })
    expect(x:argmax():item()):equals(4)
    holds(x:argmin(2), { 2, 1 })
    expect(tensor.new({ 1, 2, 3, 4 }):var():item()):near(5 / 3, 1e-6) -- by n - 1
    expect(tensor.new({ 1, 2, 3, 4 }):std():item()):near(math.sqrt(5 / 3), 1e-6)
    expect(tensor.new({ 3, 4 }):norm():item()):equals(5)
    expect(double({ 0, math.log(3) }):logsumexp():item()):near(math.log(4), 1e-15)
    close_to(double { 0, math.log(3) }:softmax(), { 0.25, 0.75 }, 1e-15)
    close_to(double { 0, math.log(3) }:log_softmax(1), { math.log(0.25), math.log(0.75) }, 1e-15)
    holds(tensor.new { 1, 2, 3 }:cumsum(), { 1, 3, 6 })
  end)
  it('matrix multiplication and shapes', function()
    holds(x:matmul(tensor.new { { 1, 0 }, { 1, 1 } }), { { -1, -2 }, { 7, 4 } })
    holds(x:matmul(tensor.new { 1, 1 }), { -1, 7 })
    holds(tensor.new { { { 1, 2 } } }:bmm(tensor.new { { { 3 }, { 4 } } }), { { { 11 } } })
    holds(x:transpose(), { { 1, 3 }, { -2, 4 } })
    holds(x:transpose(1, 2), { { 1, 3 }, { -2, 4 } })
    expect(text(tensor.zeros({ 2, 3, 4 }):permute({ 3, 1, 2 }):size())):equals '{4,2,3}'
    holds(x:reshape { 4 }, { 1, -2, 3, 4 })
    holds(x:reshape { -1, 1 }, { { 1 }, { -2 }, { 3 }, { 4 } })
    holds(x:narrow(1, 2, 1), { { 3, 4 } })
    holds(x:select(2, 1), { 1, 3 })
    holds(x:select(2, -1), { -2, 4 })
    holds(x:index_select(1, { 2, 2, 1 }), { { 3, 4 }, { 3, 4 }, { 1, -2 } })
    holds(x:gather(2, tensor.new({ { 2 }, { 1 } }, { dtype = 'int64' })), { { -2 }, { 3 } })
    holds(tensor.zeros(3):scatter_add(1, tensor.new({ 1, 3, 1 }, { dtype = 'int64' }), tensor.new { 1, 2, 3 }), { 4, 0, 2 })
    holds(tensor.zeros({ 2, 2 }):index_add(1, { 2, 2 }, x), { { 0, 0 }, { 4, 2 } })
    holds(tensor.cat({ x, x }, 2), { { 1, -2, 1, -2 }, { 3, 4, 3, 4 } })
    holds(tensor.cat { x, tensor.ones { 1, 2 } }, { { 1, -2 }, { 3, 4 }, { 1, 1 } })
    holds(tensor.stack({ tensor.ones(2), tensor.zeros(2) }, -1), { { 1, 0 }, { 1, 0 } })
    local parts = tensor.arange(1, 5):chunk(2)
    holds(parts[1], { 1, 2, 3 })
    holds(parts[2], { 4, 5 })
    expect(text(tensor.zeros({ 1, 2, 1 }):squeeze():size())):equals '{2}'
    expect(text(tensor.zeros({ 1, 2, 1 }):squeeze(1):size())):equals '{2,1}'
    expect(text(tensor.zeros(2):unsqueeze(-1):size())):equals '{2,1}'
    holds(tensor.new { { 1 }, { 2 } }:expand { 2, 2 }, { { 1, 1 }, { 2, 2 } })
    local values, places = tensor.new { 3, 1, 3, 2 }:sort(1, true)
    holds(values, { 3, 3, 2, 1 })
    holds(places, { 1, 3, 4, 2 }) -- equal values keep their order
    values, places = tensor.new { 3, 1, 4 }:topk(2)
    holds(values, { 4, 3 })
    holds(places, { 3, 1 })
    holds(tensor.new({ 2, 1 }, { dtype = 'int64' }):one_hot(3), { { 0, 1, 0 }, { 1, 0, 0 } })
    holds(tensor.ones({ 2, 2 }):tril(), { { 1, 0 }, { 1, 1 } })
    holds(tensor.ones({ 2, 2 }):tril(-1), { { 0, 0 }, { 1, 0 } })
  end)
  it('== is identity, tostring a small matrix', function()
    expect(x == x):truthy()
    expect(tensor.ones(1) == tensor.ones(1)):equals(false)
    expect(tostring(x)):equals '  1  -2\n  3   4\n[2 x 2 float32]'
    expect(tostring(tensor.new { 0.5, 12 })):equals ' 0.5   12\n[2 float32]'
    expect(tostring(tensor.new(3, { dtype = 'int64' }))):equals '3 [int64]'
    expect(tostring(tensor.zeros { 0 })):equals '[0 float32]'
    expect(#tostring(tensor.zeros { 1000, 1000 })):below(2000)
    expect(#tostring(tensor.zeros { 50, 50, 50, 4 })):below(10000)
    expect(tostring(tensor.zeros { 2, 1, 1 })):equals ' 0\n 0\n[2 x 1 x 1 float32]'
    expect(tostring(tensor.new { 1 / 0, 0 / 0 })):matches 'inf'
  end)
  it('samples categories from our streams', function()
    local logits = double { { 0, -1 / 0, math.log(3) }, { -1 / 0, 5, -1 / 0 } }
    local counts, stream = { 0, 0, 0 }, trinity.random(1, 'categories')
    for _ = 1, 4000 do
      local drawn = tensor.categorical(logits, stream):totable()
      counts[drawn[1]] = counts[drawn[1]] + 1
      if drawn[2] ~= 2 then error 'drew a category of probability zero' end
    end
    expect(counts[2]):equals(0)
    expect(counts[3] / 4000):near(0.75, 0.03)
    expect(text(tensor.categorical(tensor.zeros { 5, 4, 3 }, stream):size())):equals '{5,4}'
    expect(tensor.categorical(tensor.zeros(3), stream):dim()):equals(0)
    local function draw() return text(tensor.categorical(tensor.zeros { 50, 7 }, trinity.random(9, 'x')):totable()) end
    expect(draw()):equals(draw())
  end)
end)

describe('gradients', function()
  it('accumulate in leaves', function()
    local x = tensor.new({ 1, 2 }, { requires_grad = true })
    expect(x.grad):equals(nil);
    (x * x):sum():backward()
    holds(x.grad, { 2, 4 });
    (x * 3):sum():backward()
    holds(x.grad, { 5, 7 })
    x:zero_grad()
    expect(x.grad):equals(nil)
    x.requires_grad = false
    expect(x.requires_grad):equals(false)
    expect((x * 2).requires_grad):equals(false)
    x:requires_grad_(true)
    expect((x * 2).requires_grad):equals(true)
    expect((x * 2):detach().requires_grad):equals(false)
  end)
  it('of one value by several, and of gradients', function()
    local x, y = double({ 2 }, true), double({ 3 }, true)
    local g = tensor.grad((x * x * y):sum(), { x, y }, { create_graph = true })
    expect(g[1]:item()):equals(12)
    expect(g[2]:item()):equals(4)
    expect(tensor.grad(g[1]:sum(), { x })[1]:item()):equals(6)
    expect(x.grad):equals(nil)
    holds(tensor.grad(x:expand { 3 } * 2, { x }, { gradient = double { 1, 10, 100 } })[1], { 222 })
  end)
  it('no_grad restores, also after errors, and returns what the function returns', function()
    local x = double({ 2 }, true)
    local y, z = tensor.no_grad(function(a, b) return x * a, b end, 3, nil)
    expect(y.requires_grad):equals(false)
    expect(z):equals(nil)
    expect(pcall(tensor.no_grad, function() error 'inside' end)):equals(false)
    expect((x * 2).requires_grad):equals(true)
    expect(function() tensor.no_grad(function() error 'inside' end) end):raises ': inside'
    local thrown = { code = 7 }
    expect(select(2, pcall(tensor.no_grad, error, thrown))):equals(thrown)
    tensor.no_grad(function()
      x:add_(1)
      x:mul_(2)
    end)
    expect(x:item()):equals(6)
    expect(function() x:add_(1) end):raises 'tensor:add_: .*inside tensor.no_grad'
  end)
end)

-- Arguments of every differentiable operation. x is [2 x 3], y too, both away from kinks and ties.
local x, y = { { 0.3, -1.2, 0.7 }, { 0.9, -1.4, 0.5 } }, { { 1.1, 0.4, -0.6 }, { -0.8, 1.3, 0.2 } }
local positive = { { 0.3, 1.2, 0.7 }, { 0.9, 1.4, 0.5 } }
local index = tensor.new({ { 3, 1 }, { 2, 2 } }, { dtype = 'int64' })
local mask = tensor.new { { true, false, true }, { false, true, true } }
local function first(name, ...)
  local arguments = { ... }
  return function(a) return (a[name](a, unpack(arguments))) end
end
local differentiable = {
  add = { function(a, b) return a + b end, x, y }, sub = { function(a, b) return a - b end, x, y },
  mul = { function(a, b) return a * b end, x, y }, div = { function(a, b) return a / b end, x, y },
  pow = { function(a, b) return a:pow(b) end, positive, y }, minimum = { function(a, b) return a:minimum(b) end, x, y },
  maximum = { function(a, b) return a:maximum(b) end, x, y }, clamp = { first('clamp', -1, 0.6), x },
  masked_fill = { first('masked_fill', mask, 2), x }, prod = { first 'prod', x },
  max = { first('max', 2), x }, min = { first 'min', x },
  matmul = { function(a, b) return a:matmul(b:transpose()) end, x, y },
  bmm = { function(a, b) return a:unsqueeze(1):bmm(b:unsqueeze(1):transpose(2, 3)) end, x, y },
  transpose = { first('transpose', 1, 2), x }, permute = { first('permute', { 2, 1 }), x },
  reshape = { first('reshape', { 3, 2 }), x }, flatten = { first 'flatten', x },
  expand = { function(a) return a:unsqueeze(1):expand { 4, 2, 3 } end, x }, squeeze = { first 'squeeze', { { 1, 2 } } },
  unsqueeze = { first('unsqueeze', 2), x }, narrow = { first('narrow', 2, 2, 2), x }, select = { first('select', 1, 2), x },
  index_select = { first('index_select', 2, { 3, 3, 1 }), x }, gather = { first('gather', 2, index), x },
  scatter_add = { function(a, b) return a:scatter_add(2, index, b) end, x, { { 1, 2 }, { 3, 4 } } },
  index_add = { function(a, b) return a:index_add(1, { 2, 2 }, b) end, x, y },
  chunk = { function(a) return a:chunk(2, 2)[1] end, x }, sort = { first('sort', 2), x }, topk = { first('topk', 2, 2), x },
  tril = { first 'tril', x }, contiguous = { first 'contiguous', x }, to = { first('to', { dtype = 'float64' }), x },
  clone = { first 'clone', x }, log = { first 'log', positive }, sqrt = { first 'sqrt', positive },
}
for _, name in ipairs { 'neg', 'exp', 'abs', 'tanh', 'sigmoid', 'relu', 'gelu', 'silu', 'softplus', 'log_sigmoid', 'sin',
  'cos', 'softmax', 'log_softmax', 'cumsum' } do
  differentiable[name] = { first(name), x }
end
for _, name in ipairs { 'sum', 'mean', 'var', 'std', 'norm', 'logsumexp' } do differentiable[name] = { first(name, 2), x } end
local constant = {}
for name in ('size dim numel item totable to_array detach eq ne lt le gt ge argmax argmin one_hot fill_ copy_ add_ mul_ '
  .. 'backward requires_grad_ zero_grad close'):gmatch '%S+' do constant[name] = true end
local functions = {
  cat = { function(a, b) return tensor.cat({ a, b }, 2) end, x, y }, stack = { function(a, b) return tensor.stack { a, b } end, x, y },
  where = { function(a, b) return tensor.where(mask, a, b) end, x, y },
}
local no_derivative = {}
for name in ('new zeros ones full arange eye uniform normal categorical live_bytes grad no_grad is save load'):gmatch '%S+' do
  no_derivative[name] = true
end

-- Autograd against central differences of a weighted sum of f's result, in float64.
local function check_gradient(f, ...)
  local inputs = {}
  for i, values in ipairs { ... } do inputs[i] = double(values, true) end
  local weights = tensor.normal(f(unpack(inputs)):size(), trinity.random(1, 'weights'), { dtype = 'float64' })
  compare.check_gradient(function() return (f(unpack(inputs)) * weights):sum() end, inputs)
end

describe('derivatives against finite differences', function()
  for name, case in trinity.system.sorted_pairs(differentiable) do
    it('x:' .. name, function() check_gradient(unpack(case)) end)
  end
  for name, case in trinity.system.sorted_pairs(functions) do
    it('tensor.' .. name, function() check_gradient(unpack(case)) end)
  end
  it('leave no operation out', function()
    local names = 0
    for name in trinity.system.sorted_pairs(core.tensor.methods) do
      names = names + 1
      if not differentiable[name] and not constant[name] then error('tensor:' .. name .. ' has no test here') end
    end
    for name in trinity.system.sorted_pairs(tensor) do
      if not functions[name] and not no_derivative[name] then error('tensor.' .. name .. ' has no test here') end
    end
    expect(50):below(names)
  end)
end)

describe('files of tensors', function()
  local path = temporary()
  it('bring back the same bits', function()
    local saved = { a = tensor.normal({ 2, 3 }, trinity.random(1, 'a')), ['b.c'] = double { 1 / 3 },
      n = tensor.new({ 1, 2 ^ 53 }, { dtype = 'int64' }), flags = tensor.new { true, false }, none = tensor.zeros { 0, 2 } }
    tensor.save(path, saved)
    local first_bytes = core.read_file(path)
    local loaded = tensor.load(path)
    for name, value in trinity.system.sorted_pairs(saved) do
      expect(loaded[name].dtype):equals(value.dtype)
      expect(text(loaded[name]:size())):equals(text(value:size()))
      expect(text(loaded[name]:totable())):equals(text(value:totable()))
    end
    tensor.save(path, loaded)
    expect(core.read_file(path)):equals(first_bytes)
  end)
  it('refuse headers that lie', function() -- every byte and length: damaged_spec
    local function file(header, data) core.write_file(path, string.char(#header % 256, math.floor(#header / 256), 0, 0, 0, 0, 0, 0) .. header .. data) end
    file('{"a":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}}', '')
    expect(function() tensor.load(path) end):raises 'do not fit'
    file('{"a":{"dtype":"F32","shape":[2],"data_offsets":[8,16]}}', '12345678')
    expect(function() tensor.load(path) end):raises 'do not fit'
    file('{"a":{"dtype":"F16","shape":[1],"data_offsets":[0,2]}}', '12')
    expect(function() tensor.load(path) end):raises 'expected dtype F32, F64, I64 or BOOL, got F16'
    expect(function() tensor.load '/no/such/file' end):raises '/no/such/file'
  end)
end)

describe('memory', function()
  it('10,000 dead tensors of 1 MB stay below 1 GB', function()
    local function resident_bytes()
      return tonumber(io.open '/proc/self/status':read '*a':match 'VmRSS:%s+(%d+)') * 1024
    end
    local highest, before = 0, resident_bytes() -- with what other specs have left
    for _ = 1, 10000 do
      local big = tensor.zeros { 512, 512 }
      highest = math.max(highest, tensor.live_bytes())
      if #big ~= 512 then error 'wrong size' end
    end
    expect(highest):below(1e9)
    expect(resident_bytes() - before):below(1e9)
  end)
  it('close() frees at once', function()
    collectgarbage()
    local before = tensor.live_bytes()
    local big = tensor.zeros { 1024, 1024 }
    expect(tensor.live_bytes()):equals(before + 4 * 1024 * 1024 + (tensor.live_bytes() - before) % 4096)
    big:close()
    big:close()
    expect(tensor.live_bytes()):equals(before)
  end)
  it('graphs of gradients count', function()
    local highest, w = 0, tensor.ones({ 256, 256 }, { requires_grad = true })
    for _ = 1, 300 do
      local z = w
      for _ = 1, 20 do z = (z * w):tanh() end
      highest = math.max(highest, tensor.live_bytes())
    end
    expect(highest):below(1e9)
  end)
end)

describe('errors', function()
  local function fails(body, pattern) expect(body):raises('tensor_spec.lua:%d+: .-' .. pattern) end
  local a = tensor.ones { 2, 3 }
  it('name function and argument', function()
    fails(function() a:matmul(tensor.ones { 2, 3 }) end,
      "tensor:matmul: argument 1 %('other'%): matmul: expected equal inner dimensions, got %[2 x 3%] after %[2 x 3%]")
    fails(function() a:matmul(a:to { dtype = 'float64' }:transpose()) end, "tensor:matmul: argument 1 %('other'%): ")
    fails(function() return a + tensor.ones(4) end, "tensor:add: argument 1 %('other'%): shape %[4%] does not broadcast with %[2 x 3%]")
    fails(function() return a + nil end, "tensor:add: argument 1 %('other'%): expected a tensor or a number, got nil")
    fails(function() return {} * a end, "tensor:mul: the object before ':' %('tensor'%): expected a tensor or a number, got table")
    fails(function() a:bmm(a) end, "tensor:bmm: argument 1 %('other'%): ")
    fails(function() a:sum(3) end, "tensor:sum: argument 1 %('dimension'%): expected a dimension from 1 to 2 %(or %-2 to %-1%), got 3")
    fails(function() a:sum { 1, 0 } end, "tensor:sum: argument 1 %('dimension'%)")
    fails(function() a:sum { 1, 1 } end, "tensor:sum: argument 1 %('dimension'%)")
    fails(function() a:select(1, 3) end, "tensor:select: argument 2 %('index'%): expected an integer from %-2 to 2, got 3")
    fails(function() a:narrow(2, 2, 3) end, "tensor:narrow: argument 3 %('count'%)")
    fails(function() a:reshape { 4 } end, "tensor:reshape: argument 1 %('shape'%): ")
    fails(function() a:reshape { -2, 3 } end, "entry 1: expected an integer from %-1, got %-2")
    fails(function() a:index_select(1, { 0 }) end, "index 0 is outside 1 to 2")
    fails(function() a:index_select(1, tensor.ones(1)) end, 'expected an int64 tensor of indices, got %[1 float32%]')
    fails(function() a:gather(2, tensor.full({ 1, 1 }, 4, { dtype = 'int64' })) end, 'index 4 is outside 1 to 3')
    fails(function() a:item() end, 'expected one element, got %[2 x 3 float32%]')
    fails(function() a:softmx() end, "a tensor has no field 'softmx', did you mean 'softmax'%?")
    fails(function() a.x = 1 end, "a tensor's field 'x' cannot be assigned")
    fails(function() a.requires_grad = 1 end, 'expected true or false')
    fails(function() tensor.cat {} end, 'expected a list of tensors, got an empty one')
    fails(function() tensor.cat { a, 1 } end, 'entry 2: expected a tensor, got 1')
    fails(function() tensor.cat { a, tensor.ones(2) } end, "tensor.cat: argument 1 %('tensors'%)")
    fails(function() tensor.where(a, a, a) end, 'expected a bool tensor, got %[2 x 3 float32%]')
    fails(function() tensor.categorical(double { 0 / 0 }, trinity.random(1, 'x')) end, "row 1: expected numbers below infinity, got %-?nan")
    fails(function() tensor.categorical(double { { 1 }, { -1 / 0 } }, trinity.random(1, 'x')) end, 'row 2: expected at least one category above %-infinity')
    fails(function() a:log_softmax(5) end, "tensor:log_softmax: argument 1 %('dimension'%)")
    fails(function() a:to { device = 'gpu' } end, "unknown device 'gpu'")
  end)
  it('of derivatives', function()
    local w = tensor.ones({ 2 }, { requires_grad = true })
    fails(function() a:backward() end, 'nothing to differentiate')
    fails(function() (w * 2):backward() end, "tensor:backward: argument 1 %('gradient'%): needed for more than one element")
    fails(function() (w * 2):backward(a) end, 'expected shape %[2%], got %[2 x 3 float32%]')
    local z = (w * w):sum()
    z:backward()
    fails(function() z:backward() end, 'tensor:backward: .*second time')
    fails(function() tensor.grad(w:sum(), { a }) end, "tensor.grad: argument 2 %('inputs'%)")
    fails(function() tensor.new({ 1 }, { dtype = 'int64' }):requires_grad_(true) end, 'only floating point has gradients')
    fails(function() z.requires_grad = false end, 'use detach')
  end)
  it('of data', function()
    fails(function() tensor.new {} end, "tensor.new: argument 1 %('data'%): expected numbers, got an empty list")
    fails(function() tensor.new { { 1, 2 }, { 1, 2, 3 } } end, 'row 2 has 3 entries, expected 2')
    fails(function() tensor.new { { 1, 2 }, 3 } end, 'row 2 is a 3, not a list')
    fails(function() tensor.new { { 1, 2 }, { 3, 'x' } } end, "row 2, entry 2: expected a number, got string 'x'")
    fails(function() tensor.new { 1, true } end, 'entry 2: expected a number, got boolean')
    fails(function() tensor.new { 1, { 2 } } end, 'entry 2: expected a number, got table')
    fails(function() tensor.new { 'x' } end, "entry 1: expected a number, got string 'x'")
    fails(function() tensor.new({ 1.5 }, { dtype = 'int64' }) end, '1.5 is not an integer')
    local loop = {}
    loop[1] = loop
    fails(function() tensor.new(loop) end, 'nested deeper than 16 lists')
  end)
  it('of sizes, before anything is allocated', function()
    fails(function() tensor.zeros { 2 ^ 20, 2 ^ 20 } end, 'more than 2%^31')
    fails(function() tensor.zeros { 2 ^ 62, 2 ^ 62, 2 ^ 62 } end, "tensor.zeros: argument 1 %('shape'%)")
    fails(function() tensor.zeros { -1 } end, 'entry 1: expected an integer from 0, got %-1')
    fails(function() tensor.zeros(0 / 0) end, 'expected an integer')
    fails(function() tensor.zeros { 1, 'x' } end, 'entry 2')
    fails(function() tensor.zeros { 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1 } end, 'more than 16 dimensions')
    fails(function() tensor.arange(1, 1e12) end, 'more than 2%^31')
    fails(function() tensor.arange(1, 10, 0) end, 'not 0')
    fails(function() tensor.eye(1e6) end, 'from 0 to 46340')
    fails(function() tensor.ones({ 1 }):expand { 2 ^ 32 } end, 'more than 2%^31')
    local row = tensor.ones { 1, 2 ^ 17 }
    fails(function() return row + row:transpose() end, 'more than 2%^31')
    local wide = tensor.ones({ 1, 1 }):expand { 1, 2 ^ 30 }
    fails(function() wide:transpose():matmul(wide) end, 'no memory for')
  end)
  it('of closed tensors, everywhere', function()
    local gone = tensor.ones(1)
    gone:close()
    expect(tostring(gone)):equals 'tensor (closed)'
    for name, method in trinity.system.sorted_pairs(core.tensor.methods) do
      if name ~= 'close' then
        fails(function() method(gone) end, "tensor:" .. name .. ": the object before ':' %('tensor'%): this tensor is closed")
      end
    end
    fails(function() return gone.dtype end, 'this tensor is closed')
    fails(function() return #gone end, 'this tensor is closed')
    fails(function() return a + gone end, 'this tensor is closed')
    fails(function() tensor.cat { a, gone } end, 'entry 2: expected a tensor, got a closed one')
  end)
end)
