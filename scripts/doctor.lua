#!/usr/bin/env trinity
-- Looks at what jobs of several processes need, and says in words what is wrong: versions, processors, GPUs, the name
-- and the addresses of this machine, what a launcher has set, whether the ranks find each other, hear each other, and
-- see the same files. Alone it looks at this machine; under a launcher at the whole job, which rank 0 tells of:
--   trinity doctor
--   mpirun -n 2 trinity doctor
--   srun -n 8 trinity doctor
-- The exit status is 1 where something is wrong.

local trinity = require 'trinity'
local doctor = require 'trinity.dist.doctor'

local options = trinity.options {
  'Looks at this machine and, under a launcher, at its job: says in words what is wrong.',
  'keeps no run',
  bytes = { default = 4 * 2 ^ 20, help = 'of the large message that ranks send', min = 8, max = 2 ^ 30,
    integer = true },
  rounds = { default = 10, help = 'messages of each kind', min = 1, max = 1e4, integer = true },
}

os.exit(doctor.look(options) == 0 and 0 or 1)
