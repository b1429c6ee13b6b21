-- References for the specs of tensors, networks and losses: values, and central differences of a loss.

return function(expect)
  local tensor, compare = require('trinity').tensor, {}

  function compare.double(t, requires_grad) return tensor.new(t, { dtype = 'float64', requires_grad = requires_grad }) end

  function compare.flat(x)
    local t = x:detach():flatten():totable()
    return type(t) == 'table' and t or { t }
  end

  function compare.close_to(x, values, tolerance)
    local a, b = compare.flat(x), compare.flat(compare.double(values))
    expect(#a):equals(#b)
    for i = 1, #a do expect(a[i]):near(b[i], tolerance or 1e-6) end
  end

  --- Autograd of loss() for `leaves` in float64 against central differences, at some 12 places of each.
  function compare.check_gradient(loss, leaves)
    local gradients, step = tensor.grad(loss(), leaves), 1e-6
    for i, leaf in ipairs(leaves) do
      local found, values = compare.flat(gradients[i]), compare.flat(leaf)
      local function at(k, value)
        local moved = { unpack(values) }
        moved[k] = value
        tensor.no_grad(leaf.copy_, leaf, compare.double(moved):reshape(leaf:size()))
        return tensor.no_grad(loss):item()
      end
      for k = 1, #values, math.max(1, math.floor(#values / 12)) do
        local slope = (at(k, values[k] + step) - at(k, values[k] - step)) / (2 * step)
        at(k, values[k])
        expect(found[k]):near(slope, 2e-7 * (1 + math.abs(slope)))
      end
    end
  end

  return compare
end
