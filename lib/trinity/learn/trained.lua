-- The search of a baseline that trains networks episode by episode: its optimiser, weights from and to files,
-- checkpoints, and the loop. What the baseline plays and learns is its own.

local checkpoints = require 'trinity.runs.checkpoints'
local core = require 'trinity.core'
local learner_checkpoint = require 'trinity.learn.learner_checkpoint'
local nn = require 'trinity.nn'
local search = require 'trinity.search'
local training = require 'trinity.learn.training'
local util = require 'trinity.base.util'

local trained = {}

--- Runs method `name` with options seed, learning_rate, gradient_norm, learn, load, save. make(run) gives
---   network                what is trained
---   rate(number)           the learning rate of update `number`
---   play(number, stream)   a batch of episodes; nil where the budget is used up
---   learn(batch, number)   the loss and the numbers of the run's row
---   notes(), resume(notes) what checkpoints hold further, and the way back; called with {} where there is none
function trained.run(name, problem, options, make)
  return search.run(name, problem, options, function(run)
    local self = make(run)
    local parameters = self.network:parameters()
    local optimiser = nn.adam { parameters = parameters, learning_rate = options.learning_rate }
    if options.load ~= '' then learner_checkpoint.load(options.load, parameters, optimiser) end
    checkpoints.begin(run)
    run.updates = (options.learn or options.load == '') and 0 or nil -- else it was trained elsewhere
    local notes = learner_checkpoint.restore('methods.' .. name, run, parameters, optimiser) or {}
    local number = tonumber(notes.number) or 0
    self.resume(notes)
    while true do
      number = number + 1
      local rate = options.learn and self.rate(number)
      local batch = self.play(number, core.random(options.seed, name, number))
      if not batch then break end
      if rate then
        optimiser.learning_rate = rate
        local loss, row = self.learn(batch, number)
        training.step(optimiser, parameters, loss, options.gradient_norm)
        run:learned(row)
        if checkpoints.due(run) then
          learner_checkpoint.write(run, parameters, optimiser, util.merged({ number = number }, self.notes()))
        end
      end
    end
    if options.save ~= '' then learner_checkpoint.save(options.save, parameters, optimiser) end
  end)
end

return trained
