-- Methods without a network of LibTorch give the same bytes whatever instructions the libraries of a machine choose: sums
-- that reach results are taken in a fixed order by our own loops. The libraries' own
-- variables choose among the instructions of a CPU with AVX2.

local chosen = {
  "OPENBLAS_CORETYPE=Sandybridge ATEN_CPU_CAPABILITY=default ONEDNN_MAX_CPU_ISA=SSE41",
  "OPENBLAS_CORETYPE=Haswell ATEN_CPU_CAPABILITY=avx2 ONEDNN_MAX_CPU_ISA=AVX2",
  "GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX512F,-AVX512VL,-AVX512BW,-AVX512DQ,-AVX512CD",
}

local text = [[
local trinity = require 'trinity'
local learns = { colocrl = true, hierarchical = true, placeto = true, doppler = true, post = true, tapp = true } -- LibTorch's networks
for _, model in ipairs { 'inception_v3', 'rnnlm' } do
  local problem = trinity.problem { graph = trinity.model(model, { batch_size = 8 }), cluster = trinity.cluster 'p100x2',
    reward = trinity.rewards.mdpe() }
  local function show(name, found)
    print(model, name, ('%.17g'):format(found.reward), found.metrics.step_time_s, table.concat(found.placement:totable()))
  end
  for _, name in ipairs(trinity.methods.names()) do
    if not learns[name] and name ~= 'exhaustive' then
      show(name, trinity.methods[name](problem, { evaluations = 64, seed = 3, quiet = true }))
    end
  end
end
]]

all_only()

describe('bytes', function()
  it('are the same under other instructions', function()
    local path = file_with(text)
    local function bytes(variables)
      return output_of(("cd '%s' && %s timeout 300 '%s' '%s' --run none 2>&1"):format(root, variables, program, path))
    end
    local usual = bytes ''
    expect(usual):matches 'inception_v3\ttrinity\t%S+\t%S+\t%d+\n'
    for _, variables in ipairs(chosen) do expect(bytes(variables)):equals(usual) end
  end)
end)
