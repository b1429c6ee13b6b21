-- The networks that the Trinity article (Algorithms 2022, 15(4), 108; papers.md 1.8) placed, on its cards, as problems:
-- for scripts that repeat its experiments.

local model = require 'trinity.model'
local problems = require 'trinity.problem'
local util = require 'trinity.util'

local article = {}

--- Rows of its tables 4 and 5. The article states no sizes of its translation networks: NMT has as many units here as
--- make one card too small and two not, as in the article.
article.networks = {
  { model = 'inception_v3', batch_size = 64, cards = { 2, 4 } },
  { model = 'gnmt', batch_size = 64, cards = { 2, 4 } },
  { model = 'nmt', batch_size = 64, hidden = 1728, cards = { 2, 4 } },
  { model = 'nasnet_large', batch_size = 8, cards = { 2, 4 } },
  { model = 'nasnet_large', batch_size = 32, cards = { 4 } },
  { model = 'pnasnet_large', batch_size = 8, cards = { 2, 4 } },
}

local function chosen(list, word)
  for name in list:gmatch '[^,%s]+' do
    if name == word then return true end
  end
  return list == ''
end

--- Options of scripts that choose among these rows, for trinity.options.
article.options = {
  only = { default = '', help = "models with commas; '': all five of the article" },
  cards = { default = '2,4', help = 'numbers of cards' },
  cluster = { default = 'p100_paper', help = 'a cluster that takes a count' },
  granularity = { default = 'framework', help = "framework (TensorFlow 1.15's operators) or layer" },
}

--- A declaration for trinity.options: `own` beside article.options.
function article.declare(own)
  local all = {}
  for _, set in ipairs { article.options, own } do
    for key, value in util.sorted_pairs(set) do all[key] = value end
  end
  all[1] = own[1]
  return all
end

--- Iterates over the rows that `options` choose: for label, problem, row in article.rows(options, reward) do. Rows that
--- differ in cards only share a graph. reward: of the problems; default minus the step time.
function article.rows(options, reward)
  return coroutine.wrap(function()
    local any = false
    for _, row in ipairs(article.networks) do
      local graph
      for _, cards in ipairs(row.cards) do
        if chosen(options.only, row.model) and chosen(options.cards, tostring(cards)) then
          graph = graph or model.load(row.model, { batch_size = row.batch_size, hidden = row.hidden,
            granularity = options.granularity })
          local problem = problems.new { graph = graph, reward = reward,
            cluster = model.cluster(('%sx%d'):format(options.cluster, cards)) }
          any = true
          coroutine.yield(('%s (%d) x%d'):format(row.model, row.batch_size, cards), problem, row)
        end
      end
    end
    if not any then
      util.fail_usage("no row of the article has a model of --only '%s' and cards of --cards '%s'", options.only,
        options.cards)
    end
  end)
end

return article
