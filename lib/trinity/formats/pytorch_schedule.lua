-- Schedules of pipelines as CSV, as torch.distributed.pipelining.schedules of PyTorch 2.13.0 reads and writes them
-- (format 'compute_only'): a row a rank, a cell a task: stage, kind, micro-batch, all from 0. Kinds: F forward, B
-- backward, I and W its parts for inputs and for weights. '(0F1;3B0)OVERLAP_F_B' is two tasks at once, which run one
-- after the other here. Empty cells are bubbles, which follow from times. What format 'compute_comms' has beside
-- (messages, UNSHARD, RESHARD, REDUCE_GRAD) says nothing about the order of work and is passed over.

local core = require 'trinity.core'
local array = require 'trinity.base.array'
local check = require 'trinity.base.check'
local parallelism = require 'trinity.strategy.parallelism'
local simulator = require 'trinity.strategy.simulator'
local unsaid = require 'trinity.formats.unsaid'
local util = require 'trinity.base.util'

---@class trinity.RankOrder
---@field work string[] 'F', 'B', 'I' or 'W' of every task, in order
---@field chunk integer[] its stage, from 0
---@field micro_batch integer[] from 0

---@class trinity.ScheduleOrders
---@field ranks trinity.RankOrder[]
---@field stages integer
---@field micro_batches integer
---@field stage_rank integer[] rank of every stage, from 0
---@field source string the file
---@field name? string the schedule of that order that trinity makes itself

local pytorch_schedule = { name = 'pytorch_schedule', writes = 'the order of a pipeline, CSV',
  reads = 'the same: trinity simulate --schedule_csv FILE', of = 'PyTorch 2.13.0' }

local said = unsaid.set 'pipeline schedule micro_batches virtual_stages'

-- The words of a mesh that a pipeline's order follows from.
local function spec_of(outline)
  local virtual = outline.virtual_stages
  if virtual % 1 ~= 0 then util.fail('export: pytorch_schedule: stages are no multiple of the devices') end
  if outline.schedule == 'pipedream' then
    util.fail "export: pytorch_schedule: schedule 'pipedream' has no end of a step, which PyTorch's schedules have"
  end
  return { mesh = { pipeline = outline.pipeline }, schedule = outline.schedule, virtual_stages = virtual,
    micro_batches = outline.micro_batches }
end

--- Orders as text, with a row a rank.
---@param ranks trinity.RankOrder[]
---@return string
function pytorch_schedule.text(ranks)
  local rows = {}
  for r, order in ipairs(ranks) do
    local cells = {}
    for i = 1, #order.work do cells[i] = ('%d%s%d'):format(order.chunk[i], order.work[i], order.micro_batch[i]) end
    rows[r] = table.concat(cells, ',') .. '\n'
  end
  return table.concat(rows)
end

--- The files of a plan, and what they do not say.
---@param outline table
---@return trinity.ExportedFile[] files
---@return string[] unsaid
function pytorch_schedule.write(outline)
  if not outline.stage_of then
    util.fail "export: pytorch_schedule: expected a pipeline, the plan's schedule has no stages"
  end
  local ranks = core.chunk_orders(spec_of(outline))
  return { { name = 'schedule.csv', text = pytorch_schedule.text(ranks) } }, unsaid.of(outline, said)
end

local kinds = { F = true, B = true, I = true, W = true }
local passed_over = { SEND_F = true, RECV_F = true, SEND_B = true, RECV_B = true, UNSHARD = true, RESHARD = true,
  REDUCE_GRAD = true }
local most = 2 ^ 22 -- tasks of a file

local function refuse_cell(place, cell, expected)
  util.fail('%s: expected %s, got %s', place, expected, util.quoted(cell))
end

-- Adds a task to an order.
local function read_simple(order, cell, place)
  local stage, kind, micro_batch = cell:match '^%s*(%d+)([%u_]+)(%d*)%s*$'
  if not stage then refuse_cell(place, cell, 'STAGE KIND MICROBATCH as in 0F1') end
  if passed_over[kind] then return end
  if not kinds[kind] then refuse_cell(place, kind, 'a task F, B, I or W') end
  if micro_batch == '' then refuse_cell(place, cell, 'a micro-batch behind ' .. kind) end
  if #stage > 6 or #micro_batch > 7 then refuse_cell(place, cell, 'smaller numbers') end
  local at = #order.work + 1
  order.work[at], order.chunk[at], order.micro_batch[at] = kind, tonumber(stage), tonumber(micro_batch)
end

local function read_cell(order, cell, place)
  if cell:match '^%s*$' then return end
  local both = cell:match '^%s*%((.*)%)OVERLAP_F_B%s*$'
  if not both then return read_simple(order, cell, place) end
  local count = 0
  for one in (both .. ';'):gmatch '([^;]*);' do
    count = count + 1
    read_simple(order, one, place)
  end
  if count ~= 2 then refuse_cell(place, cell, 'two tasks in OVERLAP_F_B') end
end

local function read_row(line, place)
  local order, column = { work = {}, chunk = {}, micro_batch = {} }, 0
  for cell in (line .. ','):gmatch '([^,]*),' do
    column = column + 1
    read_cell(order, cell:gsub('^%s*"(.*)"%s*$', '%1'), ('%s, column %d'):format(place, column))
  end
  if #order.work == 0 then util.fail('%s: the rank has no task', place) end
  return order
end

-- What a micro-batch of a stage has had, as bits: 1 forward, 2 the input part, 4 the weight part.
local needs = { F = { 1, 0 }, B = { 6, 1 }, I = { 2, 1 }, W = { 4, 3 } }

local function has(bits, wanted) return wanted == 0 or bits % (2 * wanted) >= wanted end

-- Whether a task may follow what was done: each once, in order.
local function advance(done, key, work, place, words)
  local bits, adds, before = done[key] or 0, needs[work][1], needs[work][2]
  local again = (adds == 6) and bits >= 2 or adds ~= 6 and has(bits, adds)
  local ready = before == 0 or before == 1 and bits >= 1 or before == 3 and has(bits, 1) and has(bits, 2)
  if again then util.fail('%s: %s is done twice', place, words) end
  if not ready then util.fail('%s: %s stands before what it needs', place, words) end
  done[key] = bits + adds
end

-- The rank of every stage, and that tasks are complete, each once and in order.
local function check_orders(self)
  local done, stages, micro_batches, rank_of = {}, 0, 0, {}
  for r, order in ipairs(self.ranks) do
    for i = 1, #order.work do
      local stage, micro_batch = order.chunk[i], order.micro_batch[i]
      local words = ('%d%s%d'):format(stage, order.work[i], micro_batch)
      local place = ('%s: row %d'):format(self.source, r)
      if rank_of[stage + 1] and rank_of[stage + 1] ~= r - 1 then
        util.fail('%s: stage %d is in row %d, too', place, stage, rank_of[stage + 1] + 1)
      end
      rank_of[stage + 1] = r - 1
      advance(done, ('%d/%d'):format(stage, micro_batch), order.work[i], place, words)
      stages, micro_batches = math.max(stages, stage + 1), math.max(micro_batches, micro_batch + 1)
    end
  end
  if stages * micro_batches > most then
    util.fail('%s: %d stages of %d micro-batches are more than %d tasks', self.source, stages, micro_batches, most)
  end
  for stage = 0, stages - 1 do
    for micro_batch = 0, micro_batches - 1 do
      if done[('%d/%d'):format(stage, micro_batch)] ~= 7 then
        util.fail('%s: micro-batch %d of stage %d lacks a forward or backward task', self.source, micro_batch, stage)
      end
    end
  end
  self.stages, self.micro_batches, self.stage_rank = stages, micro_batches, rank_of
end

local function equal_orders(a, b)
  for r, order in ipairs(a) do
    local other = b[r]
    if not other or #order.work ~= #other.work then return false end
    for i = 1, #order.work do
      if order.work[i] ~= other.work[i] or order.chunk[i] ~= other.chunk[i]
        or order.micro_batch[i] ~= other.micro_batch[i] then return false end
    end
  end
  return true
end

local of_chunks = { [true] = { 'zb-v', 'dualpipe-v' }, [false] = { 'interleaved', 'zb-interleaved' } }
local of_one = { 'gpipe', '1f1b', 'zb-h1', 'zb-h2' }

local function is_v(self)
  local p = #self.ranks
  for s, rank in ipairs(self.stage_rank) do
    if rank ~= (s <= p and s - 1 or 2 * p - s) then return false end
  end
  return self.stages == 2 * p
end

local function is_in_turn(self)
  for s, rank in ipairs(self.stage_rank) do
    if rank ~= (s - 1) % #self.ranks then return false end
  end
  return self.stages % #self.ranks == 0
end

-- The schedule of trinity's that is this order.
local function name_of(self)
  local virtual = self.stages / #self.ranks
  for _, name in ipairs(virtual == 1 and of_one or of_chunks[is_v(self)]) do
    local ok, ranks = pcall(core.chunk_orders, { mesh = { pipeline = #self.ranks }, schedule = name,
      virtual_stages = virtual, micro_batches = self.micro_batches })
    if ok and equal_orders(ranks, self.ranks) then return name end
  end
end

--- Orders from CSV text. `source` names it in errors.
---@param text string
---@param source string
---@return trinity.ScheduleOrders
function pytorch_schedule.parse(text, source)
  source = util.shortened(source)
  local self, number = { ranks = {}, source = source }, 0
  if #text > 2 ^ 26 then util.fail('%s: expected at most 64 MB', source) end
  for line in (text:gsub('\r?\n$', '') .. '\n'):gmatch '([^\n]*)\n' do
    number = number + 1
    self.ranks[number] = read_row(line:gsub('\r$', ''), ('%s: row %d'):format(source, number))
  end
  check_orders(self)
  self.name = name_of(self)
  return self
end

--- Orders from a CSV file.
---@param path string
---@return trinity.ScheduleOrders
function pytorch_schedule.read(path)
  check.path('formats.read_schedule', 1, 'path', path)
  return pytorch_schedule.parse(util.read_file(path), path)
end

-- The schedule of trinity's whose stages stand like these and whose backward pass is taken apart like this one.
local function base_of(self, owner)
  local split = false
  for _, order in ipairs(self.ranks) do
    for _, work in ipairs(order.work) do split = split or work == 'I' or work == 'W' end
  end
  local virtual = self.stages / #self.ranks
  if virtual == 2 and is_v(self) then return 'zb-v', virtual end
  if not is_in_turn(self) then
    util.fail('%s: %s: stages go neither round the ranks in turn nor forth and back over them', owner, self.source)
  end
  if virtual == 1 then return split and 'zb-h1' or '1f1b', virtual end
  return split and 'zb-interleaved' or 'interleaved', virtual
end

--- What a step of a strategy with a mesh costs when its pipeline goes by other orders. The strategy's stages stay where
--- its ranks are the file's; the schedule and the number of micro-batches are the file's.
---@param strategy trinity.Strategy
---@param orders trinity.ScheduleOrders
---@return trinity.Metrics
function pytorch_schedule.simulate(strategy, orders)
  local owner = 'formats.simulate_schedule'
  if not strategy.mesh then util.fail('%s: expected a strategy with a mesh', owner) end
  local pipeline = strategy.mesh.pipeline or 1
  if pipeline ~= #orders.ranks then
    util.fail('%s: %s has %d rows, the mesh pipeline = %d', owner, orders.source, #orders.ranks, pipeline)
  end
  local base, virtual = base_of(orders, owner)
  local plan = util.merged(parallelism.fields(owner, strategy, strategy.problem.graph), { schedule = base,
    virtual_stages = virtual, micro_batches = orders.micro_batches })
  if virtual ~= (strategy.virtual_stages or 1) then plan.stages = nil end
  local inner, there = simulator.lowered(owner, strategy.problem, plan)
  local schedule = core.order_schedule(inner.handle, there.placement, there.stage, orders.micro_batches, base,
    orders.ranks)
  local metrics = array.metrics(#strategy.problem.cluster.devices,
    strategy.problem.graph.batch_size * orders.micro_batches * (strategy.mesh.data or 1))
  local ok, message = pcall(inner.handle.evaluate, inner.handle, { { there.placement, schedule } }, { metrics })
  if not ok then util.fail('%s: %s: %s', owner, orders.source, util.unplaced(message)) end
  return metrics
end

return pytorch_schedule
