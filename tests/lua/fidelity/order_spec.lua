-- What fits minimise beside errors: pairs of a group that are told in the other order.

local fit = require 'trinity.fidelity.fit'
local order = require 'trinity.fidelity.order'
local util = require 'trinity.base.util'

local function rows_of(group, ...)
  return util.map({ ... }, function(seconds) return { group = group, measured_s = seconds } end)
end

local function squares(list)
  local sum = 0
  for _, one in ipairs(list) do sum = sum + one * one end
  return sum
end

--- Logarithms of told over measured.
local function off(rows, told)
  return util.map(rows, function(row, i) return math.log(told[i] / row.measured_s) end)
end

describe('pairs in the order of told times', function()
  local rows = rows_of('one', 1, 2, 4, 8)
  local residuals = order.residuals(rows, 4, 0.03, 100)
  it('cost nothing where told is what was given, and next to nothing where the order is sure', function()
    expect(squares(residuals { 0, 0, 0, 0 })):equals(0)
    expect(squares(residuals(off(rows, { 3, 6, 10, 16 })))):near(0, 1e-6)
  end)
  it('cost their share in the other order, however far they are off, and a part where it is not sure', function()
    expect(squares(residuals(off(rows, { 1, 2, 8, 4 })))):near(100 / 6, 1e-6)
    expect(squares(residuals(off(rows, { 1, 2, 800, 4 })))):near(100 / 6, 1e-6)
    expect(squares(residuals(off(rows, { 8, 4, 2, 1 })))):near(100, 1e-6)
    expect(squares(residuals(off(rows, { 1, 2, 4, 4 })))):near(100 / 6 / 4, 1e-6)
  end)
  it('count group by group alike, those that are large enough alone', function()
    local all = rows_of('one', 1, 2, 4, 8)
    for _, row in ipairs(rows_of('two', 1, 2, 4, 8, 16)) do all[#all + 1] = row end
    for _, row in ipairs(rows_of('few', 1, 2, 4)) do all[#all + 1] = row end
    local found = order.residuals(all, 4, 0.03, 100)
    expect(#found(util.map(all, function() return 0 end))):equals(6 + 10)
    expect(squares(found(off(all, { 8, 4, 2, 1, 1, 2, 4, 8, 16, 4, 2, 1 })))):near(50, 1e-6)
    expect(squares(found(off(all, { 1, 2, 4, 8, 16, 8, 4, 2, 1, 1, 2, 4 })))):near(50, 1e-6)
  end)
end)

describe('a fit that counts order', function()
  it('ranks rows that errors alone leave in the other order', function()
    -- Told: 1, a, a ^ 2 / 1.2 and 2; a is 1.1 by the second row, and 1.17 by the third, which is then behind the second.
    local rows = rows_of('one', 1, 1.1, 1.141, 2)
    local list = { { name = 'a', start = 1.1, least = 1, most = 2, spread = 10 } }
    local function told(values) return { 1, values.a, values.a ^ 2 / 1.2, 2 } end
    local function errors_of(values) return off(rows, told(values)) end
    local function found(more) return told(fit.constants(list, errors_of, 0.01, 30, more)) end
    local plain = found()
    expect(plain[3] < plain[2]):truthy()
    local ranked = found(order.residuals(rows, 4, 0.03, 2 * #rows / 0.01))
    expect(ranked[3] > ranked[2]):truthy()
  end)
end)
