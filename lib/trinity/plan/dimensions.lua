-- Dimensions of a plan as options of a command: `--pipeline 4`, `--tensor 1,2,4,8`.

local prices = require 'trinity.cluster.prices'
local space = require 'trinity.plan.space'
local util = require 'trinity.base.util'

local dimensions = {}

--- Words for what of a step is minimized in place of its time.
dimensions.rewards = util.merged({ p95 = true }, prices.set)

-- In the order of the loops, with what each says; a fourth entry: --help leaves it to --help-all.
local declared = {
  { 'micro_batch', 'samples that a replica works on at a time', 'number' },
  { 'tensor', 'devices that share every operator; powers of two within a machine', 'number' },
  { 'context', 'devices that share the sequence', 'number' },
  { 'expert', 'of data: devices that share the experts', 'number' },
  { 'sequence_parallel', 'what tensor leaves whole is cut along the sequence', 'boolean', true },
  { 'recompute', 'none, selective, full, by_layer, or modules joined by +: core_attn+mlp, ...' },
  { 'placement', 'places in a stage on which methods place single operators; 1 unless it is given', 'number', true },
  { 'pipeline', 'stages', 'number' },
  { 'data', 'replicas; the most that the other axes leave devices for', 'number', true },
  { 'schedule', 'gpipe, 1f1b, interleaved, zb-h1, zb-h2, zb-interleaved, zb-v, dualpipe-v' },
  { 'virtual_stages', 'of a device', 'number', true },
  { 'stages', 'even, balanced', nil, true },
  { 'zero_stage', 'ZeRO stage, 0 to 3', 'number' },
  { 'bucket_bytes', 'of gradients that are reduced together', 'number', true },
  { 'algorithm', 'of all-reduces: automatic, ring, tree, ...', nil, true },
  { 'order', 'of the devices of an unequal cluster: natural, fastest_first, fastest_last', nil, true },
  { 'rank_order', "axes of the mesh from the innermost, as 'tensor-pipeline-data'; searched where racks differ", nil,
    true },
}

--- Their declarations, for trinity.options.
function dimensions.options()
  local list = { layout = { type = 'string', rare = true,
    help = "Megatron-LM's layout of stages, in place of --stages and --virtual_stages: 'Et*3|(tt|)*29mL'" } }
  for _, entry in ipairs(declared) do
    list[entry[1]] = { type = 'string', help = entry[2], rare = entry[4] }
  end
  return list
end

local booleans = { ['true'] = true, ['false'] = false, yes = true, no = false }

--- What such options say, for trinity.plan.
function dimensions.space(options)
  local given = {}
  for _, entry in ipairs(declared) do
    local name, kind = entry[1], entry[3]
    if options[name] then
      if kind == 'number' then
        given[name] = util.numbers(name, options[name], name == 'zero_stage' and 0 or 1, 2 ^ 50, true,
          name == 'bucket_bytes' and 'bytes' or nil)
      else
        given[name] = util.map(util.words(options[name]), function(word)
          if kind ~= 'boolean' then return word end
          if booleans[word] == nil then
            util.fail_usage("option '--%s': expected true or false, got '%s'", name, word)
          end
          return booleans[word]
        end)
      end
    end
  end
  if options.layout then given.layout = options.layout end
  local ok, message = pcall(space.check, 'plan', given, {})
  if not ok then
    local name, rest = util.unplaced(tostring(message)):match "dimension '?([%w_]+)'?:? ?(.*)$"
    util.fail_usage("option '--%s': %s", name or '?', rest or message)
  end
  return given
end

return dimensions
