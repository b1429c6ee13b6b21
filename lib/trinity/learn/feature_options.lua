-- Options of features (engine/features/feature_options.h).

local core = require 'trinity.core'
local options = require 'trinity.base.options'

local feature_options = {}

local listed = core.agent_options()

feature_options.node2vec = options.declare('trinity.Node2VecOptions', options.of_engine({
  help = 'How node2vec walks and learns.' }, listed, 'node2vec.'))

-- The engine's options as trinity.learn.features has them, without the options of the papers' presets.
local engine = {}
for _, entry in ipairs(options.of_engine({}, listed)) do engine[entry[1]] = entry end

feature_options.features = options.declare('trinity.FeatureOptions', { help = 'What trinity.learn.features takes.',
  { 'seed', 'integer', 1, least = 0, most = 2 ^ 53, help = 'of node2vec' },
  engine.depth_waves, engine.raw_time, engine.depth_feature,
  { 'node2vec', feature_options.node2vec, late = true, off = true,
    help = 'columns of the surroundings in the graph; false: none' },
  { 'vocabulary', { 'shared', 'graph' }, 'shared',
    help = "'shared': operator types have the same numbers in all graphs" },
})

return feature_options
