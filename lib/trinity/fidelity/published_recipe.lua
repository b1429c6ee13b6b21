-- Which kernels of a mixture of experts the host dispatches, and which are in recorded CUDA graphs, by the recipes of
-- Megatron-Bridge that made the published speeds (github NVIDIA-NeMo/Megatron-Bridge @ 067f987df03b,
-- src/megatron/bridge/perf_recipes/qwen and deepseek, fields cuda_graph_impl and cuda_graph_scope).

local published_recipe = {}

local racks = { GB200 = true, GB300 = true }

--- Whether a source names a release of NeMo from 26.06 on, whose MXFP8 recipes record whole iterations.
---@param source string
---@return boolean
function published_recipe.is_recent(source)
  local year, month = source:match 'NeMo (%d%d)%.(%d%d)'
  return year ~= nil and tonumber(year .. month) >= 2606
end

--- Whether a source names a release of NeMo of 2024. (Those of 2023 are of A100.)
---@param source string
---@return boolean
function published_recipe.is_early(source)
  return source:find 'NeMo 24%.' ~= nil or source:find('2024', 1, true) ~= nil
end

--- 'all' kernels, those of 'attention' and router, or 'none'; nil of networks without experts. From 26.06 on recipes of
--- MXFP8 record whole iterations on all but H100, and on B200 but where experts are as many as DeepSeek-V3's or the
--- network is in one stage. Before, and in other precisions, racks record attention and router, and so does everybody
--- where the network is in one stage, and B300 for DeepSeek-V3.
---@param row { gpu: string, precision: string, network: table, plan: table }
---@param source string
---@return string?
function published_recipe.recorded(row, source)
  local one_stage, deepseek = row.plan.pipeline == 1, row.network.deepseek ~= nil
  if row.network.experts == 0 then return nil end
  local partly = row.gpu == 'B200' and (one_stage or deepseek)
  if row.precision == 'mxfp8' and published_recipe.is_recent(source) then return partly and 'attention' or 'all' end
  return (racks[row.gpu] or one_stage or row.gpu == 'B300' and deepseek) and 'attention' or 'none'
end

local sentences = {
  all = 'all kernels are in CUDA graphs',
  attention = "kernels of attention and router are in CUDA graphs, experts' are not",
  none = 'no kernel is in a CUDA graph: the host dispatches all',
}

--- What is assumed, as a sentence.
---@param recorded string
---@return string
function published_recipe.sentence(recorded) return sentences[recorded] end

return published_recipe
