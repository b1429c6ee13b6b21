-- The networks that the Trinity paper (Algorithms 2022, 15(4), 108; papers/notes.md "Trinity: experiments") placed,
-- on its GPUs, as problems for scripts that repeat its experiments.

local model = require 'trinity.graph.model'
local problems = require 'trinity.strategy.problem'
local tensorflow = require 'studies.tensorflow'
local util = require 'trinity.base.util'

local paper = {}

--- The values of its table 4, in its units (s, GB). one: step time on one GPU, or 'OOM'. Then per number of GPUs: the
--- expert's step time, and step time, peak communication and peak memory of Hierarchical and of Trinity. It states no
--- sizes of its translation networks: NMT has the number of units here that makes one GPU too small and two not, as in
--- the paper. InceptionV3 on one GPU is unexplained: TensorFlow's own benchmark (tensorflow/docs,
--- site/en/r1/guide/performance/benchmarks.md) trained it with 64 images on K80s, which have 12 GB. So is
--- NASNet-Large (8): on two GPUs the paper has 3.7 GB at most, and twice that is no more than one GPU has.
paper.table4 = {
  { model = 'inception_v3', batch_size = 64, one = 'OOM',
    { cards = 2, expert = 0.75, hierarchical = { 0.73, 6.0, 5.8 }, trinity = { 0.73, 5.6, 5.3 } },
    { cards = 4, expert = 0.75, hierarchical = { 0.75, 7.8, 6.0 }, trinity = { 0.75, 7.9, 3.4 } } },
  { model = 'gnmt', batch_size = 64, one = 0.30,
    { cards = 2, expert = 0.42, hierarchical = { 0.39, 1.2, 2.1 }, trinity = { 0.37, 1.0, 2.5 } },
    { cards = 4, expert = 0.51, hierarchical = { 0.40, 1.8, 0.9 }, trinity = { 0.42, 1.9, 1.1 } } },
  { model = 'nmt', batch_size = 64, hidden = 1728, one = 'OOM',
    { cards = 2, expert = 2.76, hierarchical = { 3.01, 9.1, 6.9 }, trinity = { 2.76, 7.1, 7.2 } },
    { cards = 4, expert = 2.81, hierarchical = { 2.67, 5.9, 8.7 }, trinity = { 2.60, 4.4, 8.8 } } },
  { model = 'nasnet_large', batch_size = 8, one = 'OOM',
    { cards = 2, expert = 2.10, hierarchical = { 1.82, 6.9, 4.6 }, trinity = { 1.79, 6.1, 3.7 } },
    { cards = 4, expert = 2.12, hierarchical = { 1.81, 7.3, 4.0 }, trinity = { 1.81, 7.2, 3.9 } } },
  { model = 'nasnet_large', batch_size = 32, one = 'OOM',
    { cards = 4, expert = 'OOM', hierarchical = { 'OOM' }, trinity = { 5.21, 12.2, 11.3 } } },
  { model = 'pnasnet_large', batch_size = 8, one = 1.45,
    { cards = 2, expert = 1.91, hierarchical = { 1.90, 3.8, 6.3 }, trinity = { 1.70, 3.3, 6.3 } },
    { cards = 4, expert = 2.01, hierarchical = { 1.85, 4.5, 4.3 }, trinity = { 1.71, 1.8, 6.0 } } },
}

--- The words of an option as a set, nil for none; refuses one that no row has.
local function chosen(option, text, known)
  local set
  for _, word in ipairs(util.words(text)) do
    if not known[word] then
      util.fail_usage("option '--%s': no row of the paper has %s", option, util.unknown(word, util.sorted_keys(known)))
    end
    set = util.merged(set, { [word] = true })
  end
  return set
end

--- Option of studies that place these networks.
paper.granularity = { default = 'framework',
  help = "of the paper's networks: framework (TensorFlow 1.15's operators) or layer" }

--- The graph of a network as TensorFlow's operations, or with granularity 'layer' as layers.
function paper.load(name, options, granularity)
  return (granularity == 'layer' and model.load or tensorflow.load)(name, options)
end

--- Placements per update, as in the released code; the paper does not say.
paper.samples = 20

--- The arguments of paper.rows for sections of Trinity's page: the models of their settings, or with --quick `quick`
--- (with commas), in layers on two GPUs; without --quick `all` (default: all five) as operators, on `cards` GPUs (all).
function paper.cells(settings, quick, all, cards)
  local only = settings.models and table.concat(util.sorted_keys(settings.models), ',')
  return { only = only or settings.quick and quick or all or '', cards = settings.quick and '2' or cards or '2,4',
    cluster = 'p100_paper', granularity = settings.quick and 'layer' or 'framework' }
end

--- Iterates over the cells of table 4 that `options` choose: for label, problem, row, cell in paper.rows(options,
--- reward) do. The cells of a row share a graph. reward: of the problems; default minus the step time.
function paper.rows(options, reward)
  local models, counts = {}, {}
  for _, row in ipairs(paper.table4) do
    models[row.model] = true
    for _, cell in ipairs(row) do counts[tostring(cell.cards)] = true end
  end
  local only, wanted = chosen('only', options.only, models), chosen('devices', options.cards, counts)
  return coroutine.wrap(function()
    local any = false
    for _, row in ipairs(paper.table4) do
      local graph
      for _, cell in ipairs(row) do
        local cards = cell.cards
        if (not only or only[row.model]) and (not wanted or wanted[tostring(cards)]) then
          graph = graph or paper.load(row.model, { batch_size = row.batch_size, hidden = row.hidden },
            options.granularity)
          local problem = problems.new { graph = graph, reward = reward,
            cluster = model.cluster(('%sx%d'):format(options.cluster, cards)) }
          any = true
          coroutine.yield(('%s (%d) x%d'):format(row.model, row.batch_size, cards), problem, row, cell)
        end
      end
    end
    if not any then
      util.fail_usage("no row of the paper has a model of --only '%s' and GPUs of --devices '%s'", options.only,
        options.cards)
    end
  end)
end

return paper
