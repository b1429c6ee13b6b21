-- Decoders by the config.json of transformers: what is read has weights and can be trained.

local core = require 'trinity.core'
local trinity = require 'trinity'
local frame = require 'frame'

local folder = core.home .. '/tests/data/clients/models/'
local seeds = {}
for i, name in ipairs { 'llama', 'gpt2', 'gpt_neox', 'qwen3', 'qwen3moe', 'mixtral', 'deepseek_v3' } do
  seeds[i] = core.read_file(folder .. name .. '.json'):gsub('("num_hidden_layers": )%d+', '%12')
    :gsub('("n_layer": )%d+', '%12')
end

return {
  seeds = seeds,
  asks_for_memory = true,
  run = function(text)
    local ok, graph = frame.try(trinity.model, frame.file('config.json', text), { sequence = 8 })
    if not ok then return end
    if not (graph.parameters >= 0 and graph.flops >= 0) then
      frame.finding('%.17g weights, %.17g FLOP', graph.parameters, graph.flops)
    end
    graph:close()
  end,
}
