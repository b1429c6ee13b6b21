-- Replacements of commands ('OLD'), options ('COMMAND --OLD'), names of the library ('trinity.OLD') and options
-- of its functions ('FUNCTION.OLD') of earlier versions. Error messages about unknown ones name them.

local renamed = {
  compare = 'search --method A,B',
  completion = 'help --completion SHELL',
  doctor = 'help --check',
  equal_time = 'study placement --folder paper --seconds 10',
  fidelity = 'study fidelity',
  figure4 = 'runs report NAME',
  launch = 'help processes',
  placement_benchmark = 'study placement',
  policy = 'study policy',
  profile = 'execute --profile FILE',
  reference = 'help --markdown',
  report = 'runs report',
  reproduce = 'study papers',
  run = 'execute',
  select = 'study select',
  timeline = 'simulate --trace FILE',
  tradeoff = 'help scripting',
  train_distributed = 'study train_distributed',
  unequal = 'study unequal',
  watch = 'runs watch',
  whole_loop = 'study whole_loop',
  -- options
  ['execute --device'] = '--devices',
  ['execute --memory_limit'] = '--worker-memory-limit',
  ['execute --out'] = '--profile FILE',
  ['export --out'] = '--output-dir',
  ['help --save'] = '--output',
  ['pipeline --activation_compression'] = '--method-set activation_compression=NUMBER',
  ['pipeline --batches'] = '--micro-batches',
  ['pipeline --compress_branches'] = '--method-set compress_branches=yes',
  ['pipeline --cost'] = '--method-set cost=paper',
  ['pipeline --data_parallel'] = '--method-set data_parallel=false',
  ['pipeline --file'] = '--model',
  ['pipeline --rounds'] = '--method-set rounds=NUMBER',
  ['pipeline --straight'] = '--method-set straight=true',
  ['pipeline --tensor_parallel'] = '--method-set tensor_parallel=false',
  ['plan --lossless'] = "--output FILE, then 'trinity export --strategy FILE --lossless'",
  ['plan --nodes'] = "--output FILE, then 'trinity export --strategy FILE --nodes'",
  ['plan --out'] = "--output FILE, then 'trinity export --strategy FILE --output-dir'",
  ['plan --save'] = '--output',
  ['plan --threads'] = "'trinity --threads N plan'",
  ['quickstart --save'] = '--output',
  ['runs --out'] = '--output',
  ['search --compat'] = '--rules placeto',
  ['search --methods'] = '--method A,B',
  ['search --out'] = '--output-dir',
  ['search --threads'] = "'trinity --threads N search'",
  ['simulate --compat'] = '--rules placeto',
  ['simulate --queue'] = '--rules queue=WORD',
  ['simulate --threads'] = "'trinity --threads N simulate'",
  ['train --save'] = '--output',
  ['train --told'] = '--memory-features',
  -- papers, and sections of the page of the paper Trinity
  trinity = 'study papers trinity',
  daso = 'study papers daso',
  pase = 'study papers pase',
  tapp = 'study papers tapp',
  figure5 = 'study papers trinity --only figure5',
  figure6 = 'study papers trinity --only table4',
  figure7 = 'study papers trinity --only figure7',
  figure8 = 'study papers trinity --only figure8',
  figure9 = 'study papers trinity --only figure9',
  leave_one_out = 'study papers trinity --only unseen',
  table3 = 'study papers trinity --only table3',
  table4 = 'study papers trinity --only table4',
  transfer = 'study papers trinity --only unseen',
  trinity_ablation = 'study papers trinity --only stages',
  trinity_vs_hierarchical = 'study papers trinity --only table5',
}

-- names of the library
renamed['trinity.simulator'] = 'trinity.problem { check_memory = false }'
renamed['trinity.version'] = 'trinity.system.version'
renamed['trinity.json'] = 'trinity.files.json'
renamed['trinity.layers'] = 'trinity.graph.layers'
renamed['trinity.topology'] = 'trinity.devices.topology'
renamed['trinity.features'] = 'trinity.learn.features'
renamed['trinity.rankers'] = 'trinity.search.rankers'
renamed['trinity.replay'] = 'trinity.stragglers.replay'
renamed['trinity.expert_load'] = 'trinity.stragglers.expert_load'
renamed['trinity.rank_order'] = 'strategy:rank_orders()'
renamed['trinity.lower'] = 'problem:strategy { splits = }'
renamed['trinity.profile.trace'] = "option cost of trinity.problem, or 'trinity execute --profile FILE'"
renamed['trinity.schedule_bubble'] = 'trinity.pipeline.schedule_bubble'
renamed['job.start_all_reduce'] = 'job:all_reduce()'
renamed['job.average_gradients'] = "job:all_reduce(parameter.grad, { reduction = 'mean' }) of every parameter"
renamed['trinity.models'] = "'trinity help models'"
renamed['trinity.clusters'] = "'trinity help clusters'"
renamed['trinity.pase'] = 'trinity.methods.pase'
renamed['trinity.select'] = "'trinity study select'"
renamed['trinity.synchronisation'] = "'trinity study papers daso'"
renamed['trinity.daso'] = renamed['trinity.synchronisation']
for _, name in ipairs { 'ppo', 'reinforce', 'cross_entropy' } do
  renamed['trinity.' .. name] = ("trinity.learn.%s with an environment of 'joint' actions"):format(name)
end
renamed['trinity.policies'] = 'trinity.learn.agent, trinity.learn.scorer or trinity.learn.policy'
for name in ([[api clock_s describe_machine describe_torch format_bytes format_table has_torch home median sorted_pairs
    stop_name stop_requested stop_status stoppable threads was_interrupted]]):gmatch '%S+' do
  renamed['trinity.' .. name] = 'trinity.system.' .. name
end
renamed['trinity.compare.out'] = 'a run (--run NAME), in whose folder a comparison goes on'
renamed['layers.output'] = '{ shape = shape, dtype = net.dtype }'
renamed['trinity.pipeline.register.own'] = 'values that its function `run` closes over'
for name in ('checkpoint checkpoint_every resume'):gmatch '%S+' do
  renamed['methods.best.' .. name] = 'a run, which keeps what a search goes on from: --run NAME, then --resume'
  renamed['methods.trinity.' .. name] = renamed['methods.best.' .. name]
end
renamed['methods.doppler.baseline_episodes'] = 'baseline_n'
renamed['methods.doppler.greedy'] = 'epsilon'

return renamed
