-- A row-parallel linear layer. In Megatron-LM its bias is a separate operator after the all-reduce over tensor ranks.

return function(net, name, x, features, o)
  x = net:operand(name .. '/input', x)
  if o.kernels == 'onnx' or not o.bias then return net:linear(name, x, features, { bias = o.bias }) end
  local y = net:linear(name, x, features, { bias = false })
  return (net:operator('Add', name .. '/bias', { inputs = { y }, shapes = { y.shape }, dtype = y.dtype,
    parameters = { net:weight('bias', { features }) } }))
end
