-- Reads Chakra's execution traces (schema 1.0.0, schema/protobuf/et_def.proto of mlcommons/chakra at commit 21585d8):
-- one graph for all ranks. A COMP or MEM node is an operator that takes `duration_micros` or, if that is 0, the cost of
-- `num_ops` and `tensor_size`. COMM_SEND and COMM_RECV with equal comm_src, comm_dst and comm_tag are the two ends of a
-- tensor of comm_size bytes, whose transfer is simulated. COMM_COLL nodes of the ranks of a group are the members of a
-- collective, matched by their order among those with equal comm_type and comm_size. Nodes wait for their data_deps
-- only. All operators of a rank are on one device.

local core = require 'trinity.core'
local json = require 'trinity.base.json'
local util = require 'trinity.base.util'
local wire = require 'trinity.formats.wire'

local reader = {}

local types = { [1] = 'Metadata', [2] = 'Load', [3] = 'Store', [4] = 'Work', [5] = 'Send', [6] = 'Receive',
  [7] = 'Collective' }
local collectives = { [0] = 'all_reduce', [2] = 'all_gather', [5] = 'broadcast', [6] = 'all_to_all',
  [7] = 'reduce_scatter', [8] = 'reduce_scatter', [9] = 'all_reduce' } -- 8: in blocks, 9: a barrier, without bytes
local member_types = { all_reduce = 'AllReduce', all_gather = 'AllGather', broadcast = 'Broadcast',
  all_to_all = 'AllToAll', reduce_scatter = 'ReduceScatter' }
local most_nodes, most_ranks, most_bytes = 2 ^ 22, 2 ^ 16, 2 ^ 50

local function fail(path, ...) util.fail('%s: %s', util.shortened(path), (...):format(select(2, ...))) end

-- Fields of AttributeProto's oneof with integers, by number.
local whole = { [7] = true, [9] = true, [11] = true, [13] = true, [27] = true }

--- Returns an attribute's name and value: an integer or a text; other values are skipped.
local function read_attribute(text)
  local name, value
  local sound = wire.each_field(text, nil, nil, function(number, read)
    if number == 1 and type(read) == 'string' then
      name = read
    elseif whole[number] and type(read) ~= 'string' or number == 29 and type(read) == 'string' then
      value = read
    end
  end)
  return sound, name, value
end

--- Adds the numbers of a repeated field, packed or single. Returns whether it was valid.
local function add_numbers(list, value)
  if type(value) ~= 'string' then
    list[#list + 1] = value
    return value ~= false
  end
  local at = 1
  while at <= #value do
    local number
    number, at = wire.read_varint(value, at)
    if not number then return false end
    list[#list + 1] = number
  end
  return true
end

-- Fields of a node by number: name and type.
local fields = { [1] = { 'id', 'number' }, [2] = { 'name', 'string' }, [3] = { 'type', 'number' },
  [7] = { 'duration_micros', 'number' } }

--- Parses the node of a record.
local function read_node(path, where, text, from, stop)
  local node, wrong = { id = 0, name = '', type = 0, duration_micros = 0, deps = {}, attributes = {} }, nil
  local sound = wire.each_field(text, from, stop, function(number, value)
    local field = fields[number]
    if field and type(value) == field[2] then
      node[field[1]] = value
    elseif field then
      local expected = field[2] == 'number' and 'a number from 0 to 2^53' or 'a text'
      wrong = ("field '%s': expected %s"):format(field[1], expected)
    elseif number == 5 and not add_numbers(node.deps, value) then
      wrong = "field 'data_deps': expected numbers from 0 to 2^53"
    elseif number == 10 and type(value) == 'string' then
      local fine, name, read = read_attribute(value)
      if not fine then wrong = "field 'attr': it is damaged" end
      if name then node.attributes[name] = read end
    end
  end)
  if not sound then fail(path, '%s: the record is damaged', where) end
  if wrong then fail(path, '%s: %s', where, wrong) end
  if not types[node.type] then
    fail(path, "%s: field 'type': expected METADATA_NODE to COMM_COLL_NODE (1 to 7), got %.0f", where, node.type)
  end
  if node.duration_micros > 1e15 then
    fail(path, "%s: field 'duration_micros': expected at most 1e15, got %.0f", where, node.duration_micros)
  end
  return node
end

--- Checks the version in the first record.
local function read_version(path, text, from, stop)
  local version
  local sound = wire.each_field(text, from, stop, function(number, value)
    if number == 1 and type(value) == 'string' then version = value end
  end)
  if not sound or not version then fail(path, 'record 0: expected the GlobalMetadata of a Chakra trace') end
  if version ~= '1.0.0' then
    fail(path, "record 0: field 'version': expected '1.0.0', got %s", util.quoted(core.printable(version)))
  end
end

--- Returns the nodes of a file, in order.
local function read_file(path)
  local text = util.read_file(path)
  local nodes, by_id, at, record = {}, {}, 1, 0
  repeat
    local size, from = wire.read_varint(text, at)
    if not size or from + size > #text + 1 then
      fail(path, 'record %d: expected a length and that number of bytes, got the end of the file', record)
    end
    if record == 0 then
      read_version(path, text, from, from + size)
    else
      local where = ('record %d'):format(record)
      local node = read_node(path, where, text, from, from + size)
      if by_id[node.id] then fail(path, "%s: field 'id': expected a unique number, got %.0f twice", where, node.id) end
      node.where, nodes[record], by_id[node.id] = where, node, node
    end
    at, record = from + size, record + 1
    if record > most_nodes then fail(path, 'expected at most %d nodes', most_nodes) end
  until at > #text
  return nodes, by_id
end

--- Returns the part of a path before the rank's number, and its folder; nil if there is no number.
local function stem_of(path) return path:match '^(.*%.)%d+%.et$' end

--- Returns the paths of all ranks, given one of them: PREFIX.0.et, PREFIX.1.et, ...; or the single path if it has no
--- number.
local function rank_paths(path)
  local stem = stem_of(path)
  if not stem then return { path } end
  local paths = {}
  while #paths < most_ranks and util.exists(('%s%d.et'):format(stem, #paths)) do
    paths[#paths + 1] = ('%s%d.et'):format(stem, #paths)
  end
  local folder, first = stem:match '^(.*/)' or './', stem:match '[^/]*$'
  for _, name in ipairs(core.list_folder(folder)) do
    local rank = name:sub(1, #first) == first and tonumber(name:match('^(%d+)%.et$', #first + 1))
    if rank and rank >= #paths then
      fail(folder == './' and name or folder .. name, 'expected the traces of all lower ranks, got no %s%d.et',
        util.shortened(stem), #paths)
    end
  end
  return paths
end

--- Returns the ranks of every group from groups.json next to the traces; none without this file.
local function read_groups(path, ranks)
  local file = (path:match '^(.*/)' or '') .. 'groups.json'
  if not util.exists(file) then return {}, file end
  local read, groups = json.decode(util.read_file(file), util.shortened(file)), {}
  if type(read) ~= 'table' then fail(file, 'expected an object of lists of ranks, got %s', util.describe(read)) end
  for name, list in util.sorted_pairs(read) do
    local seen = {}
    if type(name) ~= 'string' or type(list) ~= 'table' or #list == 0 then
      fail(file, 'group %s: expected a list of ranks, got %s', util.quoted(tostring(name)), util.describe(list))
    end
    for _, rank in ipairs(list) do
      if type(rank) ~= 'number' or rank % 1 ~= 0 or rank < 0 or rank >= ranks or seen[rank] then
        fail(file, 'group %s: expected different ranks from 0 to %d, got %s', util.quoted(name), ranks - 1,
          util.describe(rank))
      end
      seen[rank] = true
    end
    groups[name] = { ranks = list, has = seen }
  end
  return groups, file
end

-- Joins the nodes of all ranks into one graph.
local Maker = {}
Maker.__index = Maker

--- Returns an integer attribute of a node.
local function number_in(file, node, name, least, most, default)
  local value = node.attributes[name]
  if value == nil and default then return default end
  if type(value) ~= 'number' or value < least or value > most then
    fail(file.path, "%s: attribute '%s': expected a whole number from %.0f to %.0f, got %s", node.where, name, least,
      most, value == false and 'a larger or negative one' or util.describe(value))
  end
  return value
end

--- Returns an operator's name from rank and node, with a number if the name exists already.
function Maker:name(file, node)
  local plain = ('%s@%d'):format(node.name == '' and types[node.type] or core.printable(node.name), file.rank)
  local name = plain
  while self.taken[name] do
    local n = (self.again[plain] or 1) + 1
    self.again[plain] = n
    name = ('%s_%d'):format(plain, n)
  end
  self.taken[name] = true
  return name
end

--- Adds a node without its dependencies.
function Maker:add(file, node)
  local spec = { name = self:name(file, node), type = types[node.type], outputs = { { name = 'done', bytes = 0 } },
    colocate_with = file.first, measured_time_s = node.duration_micros * 1e-6, attributes = { rank = file.rank } }
  if spec.type == 'Work' and node.duration_micros == 0 then
    spec.measured_time_s = nil
    spec.flops = number_in(file, node, 'num_ops', 0, 1e18, 0)
    spec.traffic_bytes = number_in(file, node, 'tensor_size', 0, 1e18, 0)
  elseif spec.type == 'Send' then
    spec.measured_time_s = 0
    spec.outputs[2] = { name = 'message', bytes = number_in(file, node, 'comm_size', 0, most_bytes) }
  elseif spec.type == 'Receive' or spec.type == 'Metadata' then
    spec.measured_time_s = 0
  elseif spec.type == 'Collective' then
    local kind = self:join(file, node, spec.name)
    spec.measured_time_s = not kind and 0 or nil
    spec.type = member_types[kind] or 'Work'
  end
  local made = { self.builder:add(spec) }
  file.first = file.first or spec.name
  node.made, node.message, node.operator = made[1], made[2], spec.name
  self.counts[spec.type] = (self.counts[spec.type] or 0) + 1
end

--- Records a node as a member of the next collective of its group. Returns the kind, or nil if the group has one rank.
function Maker:join(file, node, name)
  local number = number_in(file, node, 'comm_type', 0, 9)
  local kind = collectives[number]
  if not kind then
    fail(file.path, "%s: attribute 'comm_type': expected one of ALL_REDUCE, ALL_GATHER, BROADCAST, ALL_TO_ALL, "
      .. 'REDUCE_SCATTER, REDUCE_SCATTER_BLOCK, BARRIER, got %d', node.where, number)
  end
  local bytes = number == 9 and 0 or number_in(file, node, 'comm_size', 0, most_bytes)
  local group = node.attributes.pg_name
  if group ~= nil and type(group) ~= 'string' then
    fail(file.path, "%s: attribute 'pg_name': expected a text, got %s", node.where, util.describe(group))
  end
  if group == nil or group == '' or group == '0' then group = '' end
  local members = group ~= '' and self.groups[group]
  if group ~= '' and not members then
    fail(file.path, "%s: attribute 'pg_name': no group %s in %s", node.where, util.quoted(core.printable(group)),
      util.shortened(self.groups_file))
  end
  if members and not members.has[file.rank] then
    fail(file.path, "%s: attribute 'pg_name': rank %d is not in group %s", node.where, file.rank, util.quoted(group))
  end
  local size = members and #members.ranks or #self.files
  local kinship = ('%s %d %.0f'):format(group, number, bytes)
  file.turns[kinship] = (file.turns[kinship] or 0) + 1
  local key = ('%s %d'):format(kinship, file.turns[kinship])
  local joined = self.joined[key]
  if not joined then
    joined = { kind = kind, bytes = bytes, members = {}, size = size, file = file, node = node }
    self.joined[key], self.order[#self.order + 1] = joined, joined
  end
  joined.members[#joined.members + 1] = name
  return size > 1 and kind or nil
end

--- Connects the two ends of every message.
function Maker:add_messages()
  local ends = {}
  local function key_of(file, node, own)
    local from = number_in(file, node, 'comm_src', 0, #self.files - 1)
    local to = number_in(file, node, 'comm_dst', 0, #self.files - 1)
    if (own == 'comm_src' and from or to) ~= file.rank then
      fail(file.path, "%s: attribute '%s': expected the rank of the file, %d", node.where, own, file.rank)
    end
    return ('%d>%d %d'):format(from, to, number_in(file, node, 'comm_tag', 0, 2 ^ 31, 0))
  end
  local function each(kind, own, body)
    for _, file in ipairs(self.files) do
      for _, node in ipairs(file.nodes) do
        if types[node.type] == kind then body(file, node, key_of(file, node, own)) end
      end
    end
  end
  each('Send', 'comm_src', function(file, node, key)
    ends[key] = ends[key] or { at = 1, nodes = {} }
    table.insert(ends[key].nodes, { file = file, node = node })
  end)
  each('Receive', 'comm_dst', function(file, node, key)
    local list = ends[key]
    local sent = list and list.nodes[list.at]
    if not sent then fail(file.path, '%s: expected a send for the receive of node %.0f, got none', node.where,
      node.id) end
    list.at = list.at + 1
    self.builder:add_edge(sent.node.message, node.operator)
  end)
  for _, list in util.sorted_pairs(ends) do
    local left = list.nodes[list.at]
    if left then fail(left.file.path, '%s: expected a receive for the send of node %.0f, got none', left.node.where,
      left.node.id) end
  end
end

function Maker:add_dependencies()
  for _, file in ipairs(self.files) do
    for _, node in ipairs(file.nodes) do
      local seen = {}
      for _, id in ipairs(node.deps) do
        local before = file.by_id[id]
        if not before then fail(file.path, "%s: field 'data_deps': expected a node of the rank, got %.0f", node.where,
          id) end
        if not seen[id] then self.builder:add_edge(before.made, node.operator) end
        seen[id] = true
      end
    end
  end
end

function Maker:add_collectives()
  for n, joined in ipairs(self.order) do
    if #joined.members ~= joined.size then
      fail(joined.file.path, '%s: expected all ranks of the group in the collective, got %d of %d for this %s of %.0f '
        .. 'bytes', joined.node.where,
        #joined.members, joined.size, joined.kind, joined.bytes)
    end
    if joined.size > 1 then
      self.builder:collective { name = ('%s_%d'):format(joined.kind, n), kind = joined.kind, bytes = joined.bytes,
        members = joined.members }
    end
  end
end

function Maker:run()
  for _, file in ipairs(self.files) do
    for _, node in ipairs(file.nodes) do self:add(file, node) end
  end
  self:add_dependencies()
  self:add_messages()
  self:add_collectives()
  local built = self.builder:build()
  built.source = { format = 'Chakra 1.0.0', whole_step = true, warnings = {}, unknown_types = {},
    ranks = #self.files, counts = self.counts }
  return built
end

--- Returns the graph of Chakra traces, given a single file or the file of one rank (PREFIX.RANK.et; the files of other
--- ranks and groups.json with the ranks of groups are next to it). Operators are called NODE@RANK. The operators of a
--- rank are one colocation unit and have its number as attribute `rank`, so that a placement assigns ranks to devices.
--- `source.ranks` is the number of ranks.
function reader.graph(path, new_builder)
  local files = {}
  for r, one in ipairs(rank_paths(path)) do
    local nodes, by_id = read_file(one)
    files[r] = { path = one, rank = r - 1, nodes = nodes, by_id = by_id, turns = {} }
    if #nodes == 0 then fail(one, 'expected a node, found none') end
  end
  local groups, groups_file = read_groups(path, #files)
  local name = (stem_of(path) or path:gsub('%.et$', '.')):gsub('%.$', ''):match '[^/]*$'
  local maker = setmetatable({ files = files, groups = groups, groups_file = groups_file, taken = {}, again = {},
    joined = {}, order = {}, counts = {}, builder = new_builder { name = name == '' and 'trace' or name } }, Maker)
  local ok, made = pcall(maker.run, maker)
  if ok then return made end
  local message = util.unplaced(tostring(made)):gsub('^builder:[%w_]+: ', '')
  if message:find('%.et: ') or message:find('groups.json', 1, true) then error(message, 0) end
  fail(path, '%s', message)
end

return reader
