-- Figures 6, 7 and 8 of the Trinity paper: run time, peak communication and peak memory of its networks on two and
-- four cards by one card, expert, Hierarchical and Trinity. They show the same data as its table 4, so that the three
-- scripts share their searches: what one found is kept in a folder and taken from there by the others.

local paper = require 'trinity.paper.trinity'
local compare = require 'trinity.methods.compare'
local options_of = require 'trinity.command.options'
local plot = require 'trinity.base.plot'
local text = require 'trinity.base.text'

local paper_figures = {}

local methods = { 'single_device', 'expert', 'hierarchical', 'trinity' }

--- What the paper states in a cell of its table 4: by method { step time, communication, memory } in s and GB.
local function stated(row, cell)
  return { single_device = { row.one }, expert = { cell.expert }, hierarchical = cell.hierarchical,
    trinity = cell.trinity }
end

--- What a method's best strategy gives, or 'OOM' where none fits.
local function found_value(row, figure)
  if not row.best then return row.failures[1] and row.failures[1]:match '^failed' and 'failed' or 'OOM' end
  local metrics = row.best.metrics
  return metrics.feasible and metrics[figure.field] / figure.unit or 'OOM'
end

local function declared(figure)
  return paper.declare {
    ('Figure %d of the Trinity paper: %s by method, simulated, beside what the paper measured.'):format(
      figure.number, figure.title),
    evaluations = { default = 64, help = 'placements that each method may simulate', min = 1, integer = true },
    seed = { default = 1, help = 'fixes every random number', min = 0, integer = true },
    output = { default = ('runs/figure%d'):format(figure.number), writes = '.csv',
      help = 'where PATH.csv, PATH.svg and PATH.png go' },
    kept = { default = 'runs/figures6to8', help = "searches that figures 6, 7 and 8 share; '': none are kept" },
  }
end

--- Runs the searches of a row and adds its group of bars.
local function add(spec, cells, rows, figure, options, label, problem, row, cell)
  local cards = cell.cards
  local kept = options.kept ~= '' and ('%s/%s-%d-%s-x%d'):format(options.kept, row.model, row.batch_size,
    options.granularity, cards) or nil
  local comparison = compare(problem, methods, { evaluations = options.evaluations, seed = options.seed, out = kept })
  local group, published, bound = #spec.groups + 1, stated(row, cell), problem:bounds()
  spec.groups[group], spec.values[group], spec.marks[group] = label, {}, {}
  local line = { label, figure.bound and ('%.3f'):format(bound[figure.field] / figure.unit) or '-' }
  for m, method in ipairs(methods) do
    local value = found_value(comparison.rows[m], figure)
    local paper_value = (published[method] or {})[figure.column]
    spec.values[group][m], spec.marks[group][m] = value, paper_value
    cells[#cells + 1] = { row.model, row.batch_size, cards, method, value, paper_value or '' }
    line[m + 2] = ('%s (%s)'):format(type(value) == 'number' and ('%.3f'):format(value) or value,
      type(paper_value) == 'number' and ('%.2f'):format(paper_value) or paper_value or '-')
  end
  rows[group] = line
  return comparison.stopped
end

--- Draws a figure: { number =, title =, y = (of the axis), field = (of metrics), unit = (how many of the field's make
--- one), column = (of the paper's cells), bound = (whether a lower bound of the field is known) }.
function paper_figures.draw(figure)
  local options = options_of(declared(figure))
  local spec = { groups = {}, series = methods, values = {}, marks = {}, mark = 'measured in the paper', y = figure.y,
    width = 1100, height = 520 }
  local cells, rows = {}, {}
  for label, problem, row, cell in paper.rows(options) do
    if add(spec, cells, rows, figure, options, label, problem, row, cell) then os.exit(130) end
  end
  plot.csv(options.output .. '.csv', { 'model', 'batch_size', 'cards', 'method', figure.csv, 'paper' }, cells)
  local picture, reason = plot.bars(options.output, spec)
  print(('%s, simulated (in brackets: the paper)\n'):format(figure.y))
  print(text.format_table({ 'network', 'lower bound', unpack(methods) }, rows))
  print(('\nin %s.csv%s'):format(options.output, picture and (', .svg and .png') or '; no picture: ' .. reason))
  print(('seed %d, at most %d evaluations a method, %s granularity; OOM: nothing fits\nmade by: trinity figure%d %s')
    :format(options.seed, options.evaluations, options.granularity, figure.number, table.concat(arg, ' ')))
end

return paper_figures
