-- The sequence-to-sequence placer of ColocRL, Hierarchical and TAPP (papers/notes.md "Hierarchical", "ColocRL"): a
-- bidirectional LSTM reads the groups, another one gives every group a device in turn, knowing the device before and
-- attending to all groups.

local nn = require 'trinity.nn'
local tensor = require 'trinity.nn.tensor'

local placer = {}

local device_size = 16 -- of a device's embedding
local temperature, tanh_constant = 10, 5 -- logits are C tanh(u / T), papers/notes.md "Hierarchical"

local Placer = nn.class 'placer'
placer.class = Placer

--- { features = width of a group's features, hidden =, devices =, seed =, and of the options below attention,
--- decoder_start and decoder_input }.
function Placer:build(spec)
  local wide, additive = 2 * spec.hidden, spec.attention == 'additive'
  self.devices, self.from_encoder = spec.devices, spec.decoder_start == 'encoder'
  self.of_group = spec.decoder_input ~= 'device'
  self.encoder = nn.lstm { inputs = spec.features, hidden = spec.hidden, bidirectional = true }
  self.device = nn.embedding { count = spec.devices + 1, size = device_size }
  self.decoder = nn.lstm { inputs = (self.of_group and wide or 0) + device_size, hidden = spec.hidden }
  self.additive = additive
  local attended = additive and spec.hidden or wide
  self.query = nn.linear { inputs = spec.hidden, outputs = attended, bias = false }
  if additive then
    self.key = nn.linear { inputs = wide, outputs = attended, bias = false }
    self.score = nn.linear { inputs = attended, outputs = 1, bias = false }
  end
  self.out = nn.linear { inputs = spec.hidden + attended, outputs = spec.devices }
end

--- Group features [samples, groups, features] to what decode() takes: `rows` [groups, samples, 2 hidden], and where
--- the decoder starts from the encoder, `start`, the state that reading forwards ends with.
function Placer:encode(features)
  local rows, last = self.encoder(features:transpose(1, 2))
  local encoded = { rows = rows, groups = rows:size(1), samples = rows:size(2) }
  if self.from_encoder then encoded.start = { last[1]:narrow(1, 1, 1), last[2]:narrow(1, 1, 1) } end
  return encoded
end

--- The encoding of one sample's features, repeated for `samples` samples.
function Placer:repeated(encoded, samples)
  local function wider(x) return x:expand { x:size(1), samples, x:size(3) } end
  local start = encoded.start and { wider(encoded.start[1]):contiguous(), wider(encoded.start[2]):contiguous() }
  return { rows = wider(encoded.rows), groups = encoded.groups, samples = samples, start = start }
end

-- The context of decoder states [samples, count, hidden]: attention over all groups, scaled dot-product or
-- v . tanh(W2 h + m_j) with m_j = W1 h_j, from which the context is also made (papers/notes.md "Trinity: networks").
local function context_of(self, encoded, hidden)
  if not self.additive then
    local memory = encoded.rows:transpose(1, 2)
    local scores = self.query(hidden):matmul(memory:transpose(2, 3)) * (1 / math.sqrt(memory:size(3)))
    return scores:softmax(-1):matmul(memory)
  end
  encoded.keys = encoded.keys or self.key(encoded.rows):transpose(1, 2)
  local scores = self.score((self.query(hidden):unsqueeze(3) + encoded.keys:unsqueeze(2)):tanh()):squeeze(4)
  return scores:softmax(-1):matmul(encoded.keys)
end

--- Logits [samples, count, devices] of groups `first` to first + count - 1 and the next state. previous: int64
--- [samples, count], the devices chosen just before, devices + 1 before the first.
function Placer:decode(encoded, first, previous, state)
  local count = previous:size(2)
  local inputs = self.device(previous:transpose(1, 2))
  if self.of_group then inputs = tensor.cat({ encoded.rows:narrow(1, first, count), inputs }, 3) end
  local hidden, after = self.decoder(inputs, state or encoded.start)
  hidden = hidden:transpose(1, 2)
  local seen = tensor.cat({ hidden, context_of(self, encoded, hidden) }, 3)
  return (self.out(seen) * (1 / temperature)):tanh() * tanh_constant, after
end

function Placer:start(samples) return tensor.full({ samples, 1 }, self.devices + 1, { dtype = 'int64' }) end

--- Samples a device for every group: int64 [samples, groups]. disturb(logits), if given, changes the logits before.
function Placer:draw(encoded, stream, disturb)
  local previous, state, chosen = self:start(encoded.samples), nil, {}
  for group = 1, encoded.groups do
    local logits
    logits, state = self:decode(encoded, group, previous, state)
    previous = tensor.categorical(disturb and disturb(logits) or logits, stream)
    chosen[group] = previous
  end
  return tensor.cat(chosen, 2)
end

--- Log-probabilities [samples, groups] of devices and the mean entropy of a choice.
function Placer:judge(encoded, chosen)
  local groups, previous = chosen:size(2), self:start(chosen:size(1))
  if groups > 1 then previous = tensor.cat({ previous, chosen:narrow(2, 1, groups - 1) }, 2) end
  local rows = self:decode(encoded, 1, previous):log_softmax(-1)
  return rows:gather(3, chosen:unsqueeze(3)):squeeze(3), -(rows:exp() * rows):sum(-1):mean()
end

return placer
