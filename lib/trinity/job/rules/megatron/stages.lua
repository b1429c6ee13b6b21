-- Megatron-LM: assignment of layers to pipeline stages.

return require 'trinity.job.rules.megatron.family' ('stages', {
  { 'hybrid-pattern-once', 'hybrid_override_pattern and hybrid_layer_pattern',
    'Only one of --hybrid-override-pattern (old) and --hybrid-layer-pattern may be given.', 'args:746' },
  { set = 'hybrid_layer_pattern = hybrid_layer_pattern or hybrid_override_pattern' },
  { 'hybrid-old-name', 'hybrid_override_pattern', 'The old name stands for --hybrid-layer-pattern.', 'args:751',
    'changed' },
  { set = 'hybrid = hybrid_layer_pattern and hybrid_of(hybrid_layer_pattern) or nil' },
  { 'hybrid-symbols', 'hybrid and hybrid.fault == "symbol"', 'Layers of a hybrid pattern are M, G, *, D, +, -, E.',
    'hybrid:291' },
  { 'hybrid-attention', 'hybrid and hybrid.fault == "attention"',
    'A hybrid pattern may not hold both attention (*) and latent attention (+, D).', 'hybrid:298' },
  { 'hybrid-further', 'hybrid and hybrid.fault == "further"',
    'All multi-token prediction parts of a hybrid pattern must be equal.', 'hybrid:262' },
  { 'hybrid-layers', 'hybrid and num_layers and num_layers ~= hybrid.layers',
    'The hybrid pattern decides the number of layers; the number given is ignored.', 'args:793', 'ignored' },
  { set = 'if hybrid then num_layers = hybrid.layers end' },
  { 'hybrid-first', 'hybrid and hybrid.segments > 1 and decoder_first_pipeline_num_layers',
    'A hybrid pattern with | excludes giving the layers of the first stage.', 'args:804' },
  { 'hybrid-last', 'hybrid and hybrid.segments > 1 and decoder_last_pipeline_num_layers',
    'A hybrid pattern with | excludes giving the layers of the last stage.', 'args:809' },
  { 'hybrid-virtual-layers', 'hybrid and num_layers_per_virtual_pipeline_stage',
    'A hybrid pattern excludes giving layers of a virtual stage: its | do.', 'args:814' },
  { 'hybrid-virtual-stages', 'hybrid and num_virtual_stages_per_pipeline_rank',
    'A hybrid pattern excludes giving virtual stages: its | do.', 'args:820' },
  { 'hybrid-layout', 'hybrid and pipeline_model_parallel_layout', 'A hybrid pattern excludes a layout.', 'args:825' },
  { 'hybrid-embedding', 'hybrid and account_for_embedding_in_pipeline_split',
    'A hybrid pattern excludes counting the embedding as a layer.', 'args:829' },
  { 'hybrid-loss', 'hybrid and account_for_loss_in_pipeline_split',
    'A hybrid pattern excludes counting the loss as a layer.', 'args:834' },
  { 'hybrid-segments', 'hybrid and hybrid.segments > 1 and not multiple(hybrid.segments, pipeline_model_parallel_size)',
    'The segments of a hybrid pattern must be a multiple of the pipeline stages.', 'args:849' },
  { 'hybrid-even', 'hybrid and hybrid.segments == 1 and not decoder_first_pipeline_num_layers'
    .. ' and not decoder_last_pipeline_num_layers and not multiple(num_layers, pipeline_model_parallel_size)',
    'The layers of a hybrid pattern without | must be a multiple of the pipeline stages.', 'hybrid:437' },
  { 'hybrid-mtp', 'hybrid and hybrid.further > 0 and mtp_num_layers and mtp_num_layers ~= hybrid.further',
    'The hybrid pattern decides the multi-token prediction layers; the number given is ignored.', 'args:873',
    'ignored' },
  { set = 'if hybrid and hybrid.further > 0 then mtp_num_layers = hybrid.further end'
    .. ' if hybrid and hybrid.latent then multi_latent_attention = true end' },
  { 'mtp-positions', "mtp_num_layers and mtp_num_layers > 0 and not use_rotary_position_embeddings"
    .. " and not among(position_embedding_type, 'rope none')",
    'Multi-token prediction needs rotary or no position embeddings.', 'args:883' },
  { 'mtp-mixing', 'mtp_hsm and (mtp_num_layers or 0) < 2', 'Mixing of hidden states needs two multi-token prediction'
    .. ' layers and is silently turned off (a warning).', 'args:890', 'ignored', set = 'mtp_hsm = false' },
  { 'mtp-hybrid-old', 'mtp_hybrid_override_pattern and not hybrid',
    'The multi-token prediction pattern has no effect without a hybrid model (a warning).', 'args:912', 'ignored' },
  { 'virtual-once', 'count(3, num_layers_per_virtual_pipeline_stage, num_virtual_stages_per_pipeline_rank,'
    .. ' pipeline_model_parallel_layout) > 1',
    'Only one of: layers per virtual stage, virtual stages per rank, layout.', 'args:928' },
  { set = 'layout = pipeline_model_parallel_layout and layout_of(pipeline_model_parallel_layout,'
    .. ' pipeline_model_parallel_size, num_layers, mtp_num_layers) or nil' },
  { 'layout-stages', 'layout and layout.stages and not multiple(layout.stages, pipeline_model_parallel_size)',
    'The pieces of a layout must be a multiple of the pipeline stages.', 'args:945' },
  { 'layout-unit', 'layout and layout.unit', 'Units of a layout are E, t, m and L.', 'layout:315' },
  { set = 'counted = num_layers and num_layers + (account_for_embedding_in_pipeline_split and 1 or 0)'
    .. ' + (account_for_loss_in_pipeline_split and 1 or 0) or nil\n'
    .. 'per_rank = counted and counted / pipeline_model_parallel_size or nil\n'
    .. 'uneven = decoder_first_pipeline_num_layers ~= nil or decoder_last_pipeline_num_layers ~= nil\n'
    .. 'virtual = nil' },
  { 'virtual-uneven', 'not layout and num_layers_per_virtual_pipeline_stage'
    .. ' and not num_virtual_stages_per_pipeline_rank and uneven',
    'Uneven stages with virtual stages must be given by --num-virtual-stages-per-pipeline-rank.', 'args:955' },
  { 'virtual-even', 'not layout and num_layers_per_virtual_pipeline_stage and not num_virtual_stages_per_pipeline_rank'
    .. ' and not multiple(counted, pipeline_model_parallel_size)',
    'The layers must be a multiple of the pipeline stages.', 'args:968' },
  { 'virtual-layers',
    'not layout and num_layers_per_virtual_pipeline_stage and not num_virtual_stages_per_pipeline_rank'
    .. ' and multiple(counted, pipeline_model_parallel_size)'
    .. ' and not multiple(per_rank, num_layers_per_virtual_pipeline_stage)',
    'The layers of a stage must be a multiple of the layers of a virtual stage.', 'args:972' },
  { 'stages-even', 'not layout and not hybrid and not num_layers_per_virtual_pipeline_stage'
    .. ' and not num_virtual_stages_per_pipeline_rank and not uneven'
    .. ' and not multiple(counted, pipeline_model_parallel_size)',
    'The layers must be a multiple of the pipeline stages.', 'args:997' },
  { set = 'if layout then virtual = layout.stages and layout.stages / pipeline_model_parallel_size\n'
    .. 'elseif hybrid then virtual = hybrid.segments / pipeline_model_parallel_size\n'
    .. 'elseif num_virtual_stages_per_pipeline_rank then virtual = num_virtual_stages_per_pipeline_rank\n'
    .. 'elseif num_layers_per_virtual_pipeline_stage and per_rank then'
    .. ' virtual = floor(per_rank / num_layers_per_virtual_pipeline_stage) end\n'
    .. 'if virtual and virtual <= 1 then virtual = nil end' },
  { 'virtual-one', 'not virtual and (num_layers_per_virtual_pipeline_stage'
    .. ' or num_virtual_stages_per_pipeline_rank) and pipeline_model_parallel_size > 1',
    'One virtual stage per stage is no interleaved schedule: the argument has no effect.', 'args:979', 'ignored' },
  { 'virtual-pipeline', 'virtual and overlap_p2p_comm and pipeline_model_parallel_size < 2',
    'Virtual stages need pipeline stages.', 'args:1002' },
  { 'virtual-three', 'virtual and not overlap_p2p_comm and pipeline_model_parallel_size < 3',
    'Virtual stages without overlapped messages need more than two pipeline stages.', 'args:1006' },
  { 'align-idle', "not virtual and given('align_param_gather') and align_param_gather",
    'Aligned gathering is silently turned off without an interleaved schedule.', 'args:1013', 'ignored' },
  { set = 'if not virtual then overlap_p2p_comm, align_param_gather = false, false end' },
  { 'stage-first-last', '(decoder_first_pipeline_num_layers or decoder_last_pipeline_num_layers)'
    .. ' and (account_for_embedding_in_pipeline_split or account_for_loss_in_pipeline_split)',
    'Counting the embedding or loss as a layer excludes giving the layers of the first or last stage.', 'config:2235' },
  { 'layout-alone', 'layout and (decoder_first_pipeline_num_layers or decoder_last_pipeline_num_layers'
    .. ' or account_for_embedding_in_pipeline_split or account_for_loss_in_pipeline_split)',
    'A layout excludes other arguments about the layers of stages.', 'config:2252' },
  { 'layout-embedding', 'layout and layout.embedding', 'A layout must begin with the one embedding (E).', 'layout:99' },
  { 'layout-loss', 'layout and layout.loss', 'A layout must end with the one loss (L).', 'layout:104' },
  { 'layout-layers', 'layout and layout.layers', 'A layout must have one t per layer.', 'layout:107' },
  { 'layout-further', 'layout and layout.further',
    'A layout must have one m per multi-token prediction layer, after all layers, in the last virtual stage of one'
      .. ' rank.', 'layout:112' },
  { set = 'middle = num_layers and num_layers - (decoder_first_pipeline_num_layers or 0)'
    .. ' - (decoder_last_pipeline_num_layers or 0)\n'
    .. 'middle_stages = pipeline_model_parallel_size - (decoder_first_pipeline_num_layers and 1 or 0)'
    .. ' - (decoder_last_pipeline_num_layers and 1 or 0)' },
  { 'first-positive', 'not positive(decoder_first_pipeline_num_layers)', 'The first stage needs layers.',
    'config:2304' },
  { 'first-virtual', 'not layout and virtual and not multiple(decoder_first_pipeline_num_layers, virtual)',
    'The layers of the first stage must be a multiple of the virtual stages.', 'config:2312' },
  { 'last-positive', 'not positive(decoder_last_pipeline_num_layers)', 'The last stage needs layers.', 'config:2323' },
  { 'last-virtual', 'not layout and virtual and not multiple(decoder_last_pipeline_num_layers, virtual)',
    'The layers of the last stage must be a multiple of the virtual stages.', 'config:2331' },
  { 'middle-none', 'not layout and uneven and middle and (middle == 0) ~= (middle_stages == 0)',
    'Layers and stages between the first and the last must both be there, or neither.', 'config:2342' },
  { 'middle-even', 'not layout and uneven and middle and middle ~= 0 and middle_stages > 0'
    .. ' and not multiple(middle, middle_stages)',
    'The layers between first and last stage must be a multiple of those stages.', 'config:2350' },
  { 'middle-virtual', 'not layout and uneven and virtual and middle and middle_stages > 0'
    .. ' and multiple(middle, middle_stages) and not multiple(middle / middle_stages, virtual)',
    'The layers of stages in the middle must be a multiple of the virtual stages.', 'config:2364' },
  { set = 'accounted = not layout and not uneven and (account_for_embedding_in_pipeline_split'
    .. ' or account_for_loss_in_pipeline_split)' },
  { 'accounted-even', 'accounted and virtual and not multiple(counted, pipeline_model_parallel_size)',
    'Layers plus counted embedding plus counted loss must be a multiple of the pipeline stages.', 'config:2396' },
  { 'accounted-virtual', 'accounted and virtual and not multiple(per_rank, virtual)',
    'Layers of a stage, with embedding and loss counted, must be a multiple of the virtual stages.', 'config:2409' },
  { 'virtual-even-stages', 'num_virtual_stages_per_pipeline_rank and not layout and not uneven and not accounted'
    .. ' and not multiple(counted, pipeline_model_parallel_size)',
    'The layers must be a multiple of the pipeline stages; --account-for-embedding-in-pipeline-split and'
      .. ' --account-for-loss-in-pipeline-split count embedding and loss as a layer each.', 'block:157' },
  { 'virtual-even-layers', 'num_virtual_stages_per_pipeline_rank and not layout and not uneven and not accounted'
    .. ' and virtual and multiple(counted, pipeline_model_parallel_size) and not multiple(per_rank, virtual)',
    'The layers of a stage must be a multiple of the virtual stages.', 'block:176' },
  { set = 'group = microbatch_group_size_per_vp_stage or pipeline_model_parallel_size' },
  { 'interleaved-micro-batches', 'virtual and micro_batches and (group > micro_batches'
    .. ' or group < pipeline_model_parallel_size)',
    'The interleaved schedule needs at least as many micro-batches as stages.', 'schedules:1161' },
  { 'interleaved-remainder', 'virtual and micro_batches and group <= micro_batches and group > 0'
    .. ' and micro_batches % group > 0 and micro_batches % group < pipeline_model_parallel_size',
    'What remains of the micro-batches divided by the stages must be none in the interleaved schedule.',
    'schedules:1173' },
  { 'pipeline-idle', "pipeline_model_parallel_size == 1 and (given('account_for_embedding_in_pipeline_split')"
    .. " or given('account_for_loss_in_pipeline_split')) and not virtual and not layout",
    'Counting embedding or loss as a layer has no effect without pipeline stages.', 'args:985', 'ignored' },
})
