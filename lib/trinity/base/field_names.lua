-- Fields of returned objects by class, from the editor types (lib/trinity/base/fields.lua; `build/trinity
-- tests/lua/golden.lua --accept fields` writes them): the fields of objects and results, the fields that hold results,
-- the results of methods and functions. Classes of results are written without `trinity.`, lists as `Class*`.

local given = { names = {}, nested = {}, returns = {} }

given.names = {
  ['trinity.Account'] = [[devices traffic stages samples samples_per_s]],
  ['trinity.ActorCritic'] = [[network]],
  ['trinity.Agent'] = [[problem batch groups units samples parameters loaded]],
  ['trinity.AgentActions'] = [[groups devices group_logs device_logs]],
  ['trinity.AgentProfile'] = [[sample_s forward_s objective_s backward_s optimise_s exchange_s]],
  ['trinity.AgentReport'] = [[mean_reward loss learning_rate baseline entropy_groups entropy_devices clipped_share
    gradient_norm]],
  ['trinity.Bounds'] = [[step_time_s critical_path_s work_s interval_s peak_memory_bytes least_devices]],
  ['trinity.Builder'] = [[]],
  ['trinity.Cluster'] = [[name queue fingerprint device_count devices basis]],
  ['trinity.ClusterBasis'] = [[name runtime kinds]],
  ['trinity.CollectiveCost'] = [[algorithm time_s latency_s transfer_s sent_bytes]],
  ['trinity.CollectiveQuery'] = [[kind devices bytes algorithm]],
  ['trinity.CollectiveRun'] = [[collective micro_batch ready_s start_s end_s]],
  ['trinity.Comparison'] = [[problem rows seed seeds evaluations seconds stopped]],
  ['trinity.ComparisonRow'] = [[method label runs best failures by_seed fixed]],
  ['trinity.ContextDegree'] = [[what mesh micro_batches mean_s p50_s p95_s error_s degrees]],
  ['trinity.CriticalPath'] = [[steps compute_s wire_s collective_s queue_s]],
  ['trinity.CriticalSteps'] = [[count kind task device ready_s start_s end_s]],
  ['trinity.CurvePoint'] = [[evaluations mean_reward best_reward best_step_time_s]],
  ['trinity.Cut'] = [[capacity bytes source_side]],
  ['trinity.Device'] = [[name type speed node capacity_bytes]],
  ['trinity.DeviceAccount'] = [[device parameters weight_bytes gradient_bytes optimizer_bytes gathered_weight_bytes
    activation_bytes delayed_bytes peak_bytes activations flops computation_s recomputation_s exposed_s idle_s]],
  ['trinity.Dimension'] = [[name size role splits]],
  ['trinity.DoubleArray'] = [[length]],
  ['trinity.DrawnMoves'] = [[count features device_of]],
  ['trinity.Env'] = [[problems num_envs num_actions max_steps evaluations seed]],
  ['trinity.EnvGraph'] = [[nodes from to bytes node_of]],
  ['trinity.EnvInfo'] = [[envs episode_returns step_time_s feasible]],
  ['trinity.EnvObservation'] = [[mask current placement load memory step_time critical nodes types times node_mask
    device_mask words facts]],
  ['trinity.ExecutedCopy'] = [[task output from to bytes start_s end_s]],
  ['trinity.ExecutedStep'] = [[loss step_time_s busy_s start_s end_s memory_bytes copies peak_memory_bytes
    transferred_bytes read_s]],
  ['trinity.Execution'] = [[losses step_time_s step_times_s operator_time_s operator_start_s transferred_bytes
    peak_memory_bytes busy_s cores graph placement steps steps_done warm_up micro_batches last stopped weights
    accuracy accuracies samples_per_s held_out_loss held_out_samples]],
  ['trinity.ExpertLoad'] = [[step_time_s slowdown rank_factor expert_factor dropped peak_memory_bytes fullest_device]],
  ['trinity.ExportedFile'] = [[name text]],
  ['trinity.ExposedSeconds'] = [[splits activations weights gradients]],
  ['trinity.FeatureColumn'] = [[name first count]],
  ['trinity.FeatureColumns'] = [[time output_bytes depth depth_waves node2vec]],
  ['trinity.Features'] = [[units width type_count edges values columns types type_names position time_s output_bytes
    from to bytes]],
  ['trinity.FoundPlan'] = [[strategy metrics reward step_time_s cost lower_bound_s samples_per_s mfu memory_bytes
    rank variants included micro_batch micro_batches tensor context pipeline data expert sequence_parallel recompute
    recomputed schedule virtual_stages stages zero_stage optimizer_offload_fraction bucket_bytes algorithm order
    rank_order segment_size devices own]],
  ['trinity.Graph'] = [[name operators edges units parameters active_parameters parameter_bytes flops training
    batch_size fingerprint depth unit_of flops_of output_bytes parameter_bytes_of persistent_bytes_of
    workspace_bytes_of activation_bytes_of measured_time_s source]],
  ['trinity.GraphPath'] = [[operators length_s start_s tail_s]],
  ['trinity.GraphRows'] = [[first target source edge bytes]],
  ['trinity.ImitationReport'] = [[steps log_likelihood_groups log_likelihood_devices agreement]],
  ['trinity.Infeasibility'] = [[text device name needed_bytes capacity_bytes over_bytes devices_over]],
  ['trinity.Int32View'] = [[length]],
  ['trinity.Job'] = [[rank size node nodes local_rank local_size source]],
  ['trinity.JobFile'] = [[client runtime release gpus model mesh micro_batch global_batch micro_batches
    context_exchange dense_layers rank_order precision recompute zero_stage distributed_optimizer state_bytes
    overlaps offload unknown findings legal path stages graph_options strategy reader words values given settled
    environment environment_known unset gpus_said capability source faults unread unclear]],
  ['trinity.KindBasis'] = [[kind rows mean_error like own]],
  ['trinity.Layers'] = [[builder dtype products]],
  ['trinity.Machine'] = [[processor cores memory_bytes]],
  ['trinity.MemoryLevel'] = [[time_s bytes]],
  ['trinity.MethodInfo'] = [[run help source needs budget deterministic options]],
  ['trinity.Metrics'] = [[step_time_s peak_memory_bytes peak_communication_bytes total_communication_bytes
    excess_memory_bytes transfers samples samples_per_s feasible rejected device_count]],
  ['trinity.MoveCandidates'] = [[count features device_of]],
  ['trinity.MoveReport'] = [[trials improving loss entropy clipped_share best_share]],
  ['trinity.MoveState'] = [[device_of unit random]],
  ['trinity.MoveTrainer'] = [[options ranker]],
  ['trinity.Moves'] = [[problem]],
  ['trinity.NamedWeight'] = [[name shape values]],
  ['trinity.NetworkOptimiser'] = [[learning_rate]],
  ['trinity.Operator'] = [[name type phase unit flops known forward attributes parameters traffic_bytes
    parameter_bytes persistent_bytes workspace_bytes measured_time_s collective inputs outputs]],
  ['trinity.Pase'] = [[name devices layers edges entries graph]],
  ['trinity.PaseLayer'] = [[name type kind pointwise dimensions operators configurations]],
  ['trinity.PaseResult'] = [[name configurations cost compute communication edges in_space solution optimal bound
    seconds table_entries peak_table_entries largest_table widest_set stopped iterations accepted]],
  ['trinity.PathStep'] = [[kind task operator collective micro_batch output from to bytes ready_s start_s end_s]],
  ['trinity.PeakBytes'] = [[weights optimizer gradients activations activation_gradients delayed received gathered
    workspace framework]],
  ['trinity.PipelineInfeasibility'] = [[text device needed_bytes capacity_bytes over_bytes node]],
  ['trinity.PipelineInstance'] = [[source options machine]],
  ['trinity.PipelineMachine'] = [[devices cpus memory_bytes bandwidth_bytes_per_s micro_batches]],
  ['trinity.PipelineResult'] = [[method network format unit max_load feasible optimal seconds stages assignment
    nodes machine loads contiguous_max_load states cuts data_parallel ideals infeasibility least_infeasible stopped]],
  ['trinity.PipelineStage'] = [[nodes devices first_device load compute replicas data_parallel tensor_parallel
    memory_bytes recomputed_layers]],
  ['trinity.Placement'] = [[length]],
  ['trinity.PlanDimension'] = [[values apply]],
  ['trinity.PlanPoint'] = [[micro_batch micro_batches tensor context pipeline data expert sequence_parallel
    recompute recomputed schedule virtual_stages stages zero_stage optimizer_offload_fraction bucket_bytes algorithm
    order rank_order segment_size devices own]],
  ['trinity.PlanResult'] = [[plans pareto simulated refused counts pruned left too_large lower_bound_s runtime
    straddles cost_of fused stopped nearest impossible seconds]],
  ['trinity.PlanTotals'] = [[work_s gap_s after_s update_s spread_update_s host_update_s spread_host_update_s
    weight_bytes spread_weight_bytes optimizer_bytes spread_optimizer_bytes gradient_bytes spread_gradient_bytes
    kept_bytes compute_s layers_s end_s forward_share]],
  ['trinity.PriceRow'] = [[dollars_per_hour watts source]],
  ['trinity.Problem'] = [[graph cluster reward on_evaluated rules default_schedule cost_coverage]],
  ['trinity.Profile'] = [[format version trinity date machine libraries model settings devices kinds path links]],
  ['trinity.ProfileKind'] = [[memory_bytes peak_flops_per_s memory_bandwidth_bytes_per_s launch_s compute_efficiency
    memory_efficiency operators residuals operator_time_s contention]],
  ['trinity.ProfileLink'] = [[from to bytes time_s latency_s bandwidth_bytes_per_s residuals]],
  ['trinity.ProfileResiduals'] = [[count median mean largest]],
  ['trinity.RandomStream'] = [[]],
  ['trinity.RankOrder'] = [[order step_time_s straddles segment_size devices rank_file]],
  ['trinity.Ranker'] = [[notes hidden weights memory_features]],
  ['trinity.Ranking'] = [[seconds trials improving plain_trials plain_improving]],
  ['trinity.Remedy'] = [[what step_time_s samples_per_s gain stages devices micro_batches]],
  ['trinity.Replay'] = [[path steps workers stages types recorded_s replayed_s busy_s typical_s slowdown]],
  ['trinity.ReplayAnswer'] = [[slowdown alone_s without_s saved]],
  ['trinity.ReplayWait'] = [[worker stage type time_s]],
  ['trinity.ReplicaWait'] = [[stage replica time_s]],
  ['trinity.Rules'] = [[queue memory device_pause_s link_pause_s]],
  ['trinity.Run'] = [[path name]],
  ['trinity.Search'] = [[problem method options evaluations step mean_reward updates stages sum_of_means curve
    placement plan best start stopped progress resumable]],
  ['trinity.StageAccount'] = [[stage layers traffic device parameters weight_bytes gradient_bytes optimizer_bytes
    gathered_weight_bytes activation_bytes delayed_bytes peak_bytes activations flops computation_s recomputation_s
    exposed_s idle_s]],
  ['trinity.StepState'] = [[step_time_s computation_blame_s held_blame_s queue_blame_s transfer_blame_s wait_s
    slack_s tight_s peak_bytes operator_slack_s collision_s crowd_s busy_s memory_bytes room_s critical_s]],
  ['trinity.StepWait'] = [[device stage replica type time_s]],
  ['trinity.Stragglers'] = [[step_time_s mean_s p50_s p95_s error_s draws_s degrees waits replica_waits remedies]],
  ['trinity.Strategy'] = [[mesh devices virtual_stages stages recompute operators inside sequence_parallel
    scatter_gather overlap_tp_grad_allreduce zero_stage optimizer_offload_fraction bucket_bytes cp_comm_type sync
    problem metrics reward method seed evaluations updates ranking search_stages seconds curve stopped optimal saved
    reevaluated placement schedule micro_batches priority order tasks stage splits]],
  ['trinity.TaskGraph'] = [[task_count device_count edge_count cost_ns mean_cost_ns edge_from edge_to edge_tensor
    edge_bytes in_edges first_in first_out latency_ns bytes_per_ns unit follows output_bytes workspace_bytes
    fixed_bytes capacity_bytes mean_latency_ns mean_ns_per_byte]],
  ['trinity.Tensor'] = [[number shape dtype]],
  ['trinity.TensorInfo'] = [[name bytes shape dtype gradient producer readers]],
  ['trinity.TensorTarget'] = [[dtype device]],
  ['trinity.Timeline'] = [[cluster metrics micro_batches tasks ready_s start_s end_s device]],
  ['trinity.Topology'] = [[]],
  ['trinity.TorchTensor'] = [[dtype device grad requires_grad]],
  ['trinity.Traffic'] = [[kind axis devices phase part bytes count]],
  ['trinity.Transfer'] = [[task operator micro_batch output from to bytes ready_s start_s end_s]],
  ['trinity.TypeShare'] = [[type tasks total_s]],
  ['trinity.UnitEdges'] = [[count from to bytes]],
  ['trinity.UpdateReport'] = [[timesteps episode_return policy_loss value_loss entropy approx_kl]],
}

given.nested = {
  ['trinity.Account'] = [[devices=DeviceAccount* traffic=Traffic* stages=StageAccount*]],
  ['trinity.Cluster'] = [[devices=Device* basis=ClusterBasis]],
  ['trinity.ClusterBasis'] = [[kinds=KindBasis*]],
  ['trinity.Comparison'] = [[rows=ComparisonRow*]],
  ['trinity.CriticalPath'] = [[steps=PathStep*]],
  ['trinity.DeviceAccount'] = [[peak_bytes=PeakBytes exposed_s=ExposedSeconds]],
  ['trinity.ExecutedStep'] = [[copies=ExecutedCopy*]],
  ['trinity.Execution'] = [[last=ExecutedStep weights=NamedWeight*]],
  ['trinity.FeatureColumns'] = [[time=FeatureColumn output_bytes=FeatureColumn depth=FeatureColumn
    depth_waves=FeatureColumn node2vec=FeatureColumn]],
  ['trinity.Features'] = [[columns=FeatureColumns]],
  ['trinity.FoundPlan'] = [[variants=FoundPlan*]],
  ['trinity.Operator'] = [[inputs=TensorInfo* outputs=TensorInfo*]],
  ['trinity.Pase'] = [[layers=PaseLayer*]],
  ['trinity.PaseLayer'] = [[dimensions=Dimension*]],
  ['trinity.PipelineInstance'] = [[machine=PipelineMachine]],
  ['trinity.PipelineResult'] = [[stages=PipelineStage* machine=PipelineMachine infeasibility=PipelineInfeasibility
    least_infeasible=PipelineResult]],
  ['trinity.PlanResult'] = [[plans=FoundPlan* pareto=FoundPlan* simulated=FoundPlan*]],
  ['trinity.Profile'] = [[machine=Machine links=ProfileLink*]],
  ['trinity.ProfileKind'] = [[residuals=ProfileResiduals]],
  ['trinity.ProfileLink'] = [[residuals=ProfileResiduals]],
  ['trinity.Search'] = [[curve=CurvePoint*]],
  ['trinity.StageAccount'] = [[traffic=Traffic* peak_bytes=PeakBytes exposed_s=ExposedSeconds]],
  ['trinity.Stragglers'] = [[waits=StepWait* replica_waits=ReplicaWait* remedies=Remedy*]],
  ['trinity.Strategy'] = [[ranking=Ranking curve=CurvePoint*]],
}

given.returns = {
  ['trinity.execute'] = [[Execution]],
  ['trinity.job'] = [[JobFile]],
  ['trinity.Agent.update'] = [[AgentReport]],
  ['trinity.Agent.imitate'] = [[ImitationReport]],
  ['trinity.Agent.actions'] = [[AgentActions]],
  ['trinity.Agent.profile'] = [[AgentProfile]],
  ['trinity.Cluster.collective'] = [[CollectiveCost]],
  ['trinity.Comparison.best'] = [[ComparisonRow]],
  ['trinity.Env.reset'] = [[EnvObservation]],
  ['trinity.Env.step'] = [[EnvObservation]],
  ['trinity.Env.observation'] = [[EnvObservation]],
  ['trinity.Env.graph'] = [[EnvGraph]],
  ['formats.files'] = [[ExportedFile*]],
  ['trinity.Graph.unit_edges'] = [[UnitEdges]],
  ['trinity.Graph.critical_path'] = [[GraphPath]],
  ['trinity.Graph.min_cut'] = [[Cut]],
  ['trinity.Graph.operator'] = [[Operator]],
  ['trinity.Graph.csr'] = [[GraphRows]],
  ['learn.clone'] = [[UpdateReport*]],
  ['learn.cross_entropy'] = [[UpdateReport*]],
  ['learn.evolution'] = [[UpdateReport*]],
  ['learn.features'] = [[Features]],
  ['learn.ppo'] = [[UpdateReport*]],
  ['learn.reinforce'] = [[UpdateReport*]],
  ['methods.info'] = [[MethodInfo]],
  ['trinity.MoveTrainer.imitate'] = [[MoveReport]],
  ['trinity.MoveTrainer.reinforce'] = [[MoveReport]],
  ['trinity.Pase.price'] = [[PaseResult]],
  ['trinity.Pase.solve'] = [[PaseResult]],
  ['trinity.Pase.data_parallel'] = [[PaseResult]],
  ['trinity.Pase.owt'] = [[PaseResult]],
  ['trinity.Pase.expert'] = [[PaseResult]],
  ['trinity.Pase.mcmc'] = [[PaseResult]],
  ['trinity.Pase.tofu'] = [[PaseResult]],
  ['plan.run'] = [[PlanResult]],
  ['trinity.Problem.step_state'] = [[StepState]],
  ['trinity.Problem.bounds'] = [[Bounds]],
  ['trinity.Replay.what_if'] = [[ReplayAnswer]],
  ['trinity.Replay.waits'] = [[ReplayWait*]],
  ['stragglers.run'] = [[Stragglers]],
  ['stragglers.context_degrees'] = [[ContextDegree*]],
  ['stragglers.expert_load'] = [[ExpertLoad]],
  ['trinity.Strategy.bounds'] = [[Bounds]],
  ['trinity.Strategy.infeasibility'] = [[Infeasibility]],
  ['trinity.Strategy.breakdown'] = [[Account]],
  ['trinity.Strategy.rank_orders'] = [[RankOrder*]],
  ['system.describe_machine'] = [[Machine]],
  ['trinity.Timeline.transfers'] = [[Transfer*]],
  ['trinity.Timeline.collectives'] = [[CollectiveRun*]],
  ['trinity.Timeline.memory'] = [[MemoryLevel*]],
  ['trinity.Timeline.critical_path'] = [[CriticalPath]],
  ['trinity.Timeline.critical_steps'] = [[CriticalSteps]],
  ['trinity.Timeline.by_type'] = [[TypeShare*]],
}

return given
