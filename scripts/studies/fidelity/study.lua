#!/usr/bin/env trinity
-- Predictions compared with what others measured or counted: one comparison a word (scripts/studies/fidelity/).

local fidelity = require 'studies.fidelity'

fidelity.run(require('trinity').options(fidelity.options()))
