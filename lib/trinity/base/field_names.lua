-- Fields of returned objects by class, from the editor types (lib/trinity/base/fields.lua; `build/trinity
-- tests/lua/golden.lua --accept fields` writes them): the fields of an object or a result, and its fields and functions
-- that give results, as name=Class (name=Class*: lists of results). Modules have their functions that give results.

return {
  trinity = [[execute=Execution job=JobFile]],
  Account = [[devices=DeviceAccount* traffic=Traffic* stages=StageAccount* samples samples_per_s]],
  ActorCritic = [[network]],
  Agent = [[problem batch groups units samples parameters loaded update=AgentReport imitate=ImitationReport]],
  AgentReport = [[mean_reward loss learning_rate baseline entropy_groups entropy_devices clipped_share gradient_norm]],
  Bounds = [[step_time_s critical_path_s work_s interval_s peak_memory_bytes least_devices]],
  Cluster = [[name queue fingerprint device_count devices=Device* basis=ClusterBasis collective=CollectiveCost]],
  ClusterBasis = [[name runtime kinds=KindBasis*]],
  CollectiveCost = [[algorithm time_s latency_s transfer_s sent_bytes]],
  CollectiveQuery = [[kind devices bytes algorithm experts_per_token experts expert_groups group_topk]],
  CollectiveRun = [[collective micro_batch ready_s start_s end_s]],
  Comparison = [[problem rows=ComparisonRow* seed seeds evaluations seconds stopped best=ComparisonRow]],
  ComparisonRow = [[method label runs best failures by_seed fixed]],
  ContextDegree = [[what mesh micro_batches mean_s p50_s p95_s error_s degrees]],
  CriticalPath = [[steps=PathStep* compute_s wire_s collective_s queue_s]],
  CriticalSteps = [[count kind task device ready_s start_s end_s]],
  CurvePoint = [[evaluations mean_reward best_reward best_step_time_s]],
  Cut = [[capacity bytes source_side]],
  Device = [[name type speed node capacity_bytes]],
  DeviceAccount = [[device parameters weight_bytes gradient_bytes optimizer_bytes gathered_weight_bytes
    activation_bytes delayed_bytes peak_bytes=PeakBytes activations flops computation_s recomputation_s host_wait_s
    exposed_s=ExposedSeconds idle_s]],
  DoubleArray = [[length]],
  DrawnMoves = [[count features device_of]],
  Env = [[problems num_envs num_actions max_steps evaluations seed reset=EnvObservation step=EnvObservation
    observation=EnvObservation graph=EnvGraph]],
  EnvGraph = [[nodes from to bytes node_of]],
  EnvInfo = [[envs episode_returns step_time_s feasible]],
  EnvObservation = [[mask current placement load memory step_time critical nodes types times node_mask device_mask
    words facts]],
  ExecutedCopy = [[task output from to bytes start_s end_s]],
  ExecutedStep = [[loss step_time_s busy_s start_s end_s memory_bytes copies=ExecutedCopy* peak_memory_bytes
    transferred_bytes read_s]],
  Execution = [[losses step_time_s step_times_s operator_time_s operator_start_s transferred_bytes peak_memory_bytes
    busy_s cores graph placement steps steps_done warm_up micro_batches last=ExecutedStep stopped
    weights=NamedWeight* accuracy accuracies samples_per_s held_out_loss held_out_samples]],
  ExpertLoad = [[step_time_s slowdown rank_factor expert_factor dropped peak_memory_bytes fullest_device]],
  ExportedFile = [[name text]],
  ExposedSeconds = [[splits activations weights gradients]],
  FeatureColumn = [[name first count]],
  FeatureColumns = [[time=FeatureColumn output_bytes=FeatureColumn depth=FeatureColumn depth_waves=FeatureColumn
    node2vec=FeatureColumn]],
  Features = [[units width type_count edges values columns=FeatureColumns types type_names position time_s
    output_bytes from to bytes]],
  formats = [[files=ExportedFile*]],
  FoundPlan = [[strategy metrics reward step_time_s cost lower_bound_s samples_per_s mfu memory_bytes rank
    variants=FoundPlan* included micro_batch micro_batches tensor context pipeline data expert sequence_parallel
    recompute recomputed schedule virtual_stages stages zero_stage optimizer_offload_fraction
    activation_offload_fraction bucket_bytes algorithm order rank_order segment_size devices own]],
  Graph = [[name operators edges units parameters active_parameters parameter_bytes flops training batch_size
    fingerprint depth unit_of flops_of output_bytes parameter_bytes_of persistent_bytes_of workspace_bytes_of
    activation_bytes_of measured_time_s source unit_edges=UnitEdges critical_path=GraphPath min_cut=Cut
    operator=Operator csr=GraphRows]],
  GraphPath = [[operators length_s start_s tail_s]],
  GraphRows = [[first target source edge bytes]],
  ImitationReport = [[steps log_likelihood_groups log_likelihood_devices agreement]],
  Infeasibility = [[text device name needed_bytes capacity_bytes over_bytes devices_over]],
  Int32View = [[length]],
  Job = [[rank size node nodes local_rank local_size source]],
  JobFile = [[client runtime release gpus model mesh micro_batch global_batch micro_batches context_exchange
    dense_layers rank_order precision recompute zero_stage distributed_optimizer state_bytes overlaps offload
    unknown findings legal path stages graph_options strategy reader words values given settled environment
    environment_known unset gpus_said capability source faults unread unclear]],
  KindBasis = [[kind rows mean_error like own]],
  Layers = [[builder dtype products]],
  learn = [[clone=UpdateReport* cross_entropy=UpdateReport* evolution=UpdateReport* features=Features
    ppo=UpdateReport* reinforce=UpdateReport*]],
  Machine = [[processor cores memory_bytes]],
  MemoryLevel = [[time_s bytes]],
  MethodInfo = [[run help source needs budget deterministic options]],
  methods = [[info=MethodInfo]],
  Metrics = [[step_time_s peak_memory_bytes peak_communication_bytes total_communication_bytes excess_memory_bytes
    transfers samples samples_per_s feasible rejected device_count]],
  MoveCandidates = [[count features device_of]],
  MoveReport = [[trials improving loss entropy clipped_share best_share]],
  MoveState = [[device_of unit random]],
  MoveTrainer = [[options ranker imitate=MoveReport reinforce=MoveReport]],
  Moves = [[problem]],
  NamedWeight = [[name shape values]],
  NetworkOptimiser = [[learning_rate]],
  Operator = [[name type phase unit flops known forward attributes parameters traffic_bytes parameter_bytes
    persistent_bytes workspace_bytes measured_time_s collective inputs=TensorInfo* outputs=TensorInfo*]],
  PathStep = [[kind task operator collective micro_batch output from to bytes ready_s start_s end_s]],
  PeakBytes = [[weights optimizer gradients activations activation_gradients delayed received gathered workspace
    framework]],
  PipelineInfeasibility = [[text device needed_bytes capacity_bytes over_bytes node]],
  PipelineInstance = [[source options machine=PipelineMachine]],
  PipelineMachine = [[devices cpus memory_bytes bandwidth_bytes_per_s micro_batches]],
  PipelineResult = [[method network format unit max_load feasible optimal seconds stages=PipelineStage* assignment
    nodes machine=PipelineMachine loads contiguous_max_load states cuts data_parallel ideals
    infeasibility=PipelineInfeasibility least_infeasible=PipelineResult stopped]],
  PipelineStage = [[nodes devices first_device load compute replicas data_parallel tensor_parallel memory_bytes
    recomputed_layers]],
  Placement = [[length]],
  PlanDimension = [[values apply]],
  plan = [[run=PlanResult]],
  PlanPoint = [[micro_batch micro_batches tensor context pipeline data expert sequence_parallel recompute recomputed
    schedule virtual_stages stages zero_stage optimizer_offload_fraction activation_offload_fraction bucket_bytes
    algorithm order rank_order segment_size devices own]],
  PlanResult = [[plans=FoundPlan* pareto=FoundPlan* simulated=FoundPlan* refused counts pruned left too_large
    lower_bound_s runtime straddles cost_of fused stopped nearest impossible seconds]],
  PlanTotals = [[work_s gap_s after_s update_s spread_update_s host_update_s spread_host_update_s weight_bytes
    spread_weight_bytes optimizer_bytes spread_optimizer_bytes gradient_bytes spread_gradient_bytes kept_bytes
    compute_s layers_s end_s forward_share]],
  PriceRow = [[dollars_per_hour watts source]],
  Problem = [[graph cluster reward on_evaluated rules default_schedule cost_coverage step_state=StepState
    bounds=Bounds]],
  Profile = [[format version trinity date machine=Machine libraries model settings devices kinds path
    links=ProfileLink*]],
  ProfileKind = [[memory_bytes peak_flops_per_s memory_bandwidth_bytes_per_s launch_s compute_efficiency
    memory_efficiency operators residuals=ProfileResiduals operator_time_s contention]],
  ProfileLink = [[from to bytes time_s latency_s bandwidth_bytes_per_s residuals=ProfileResiduals]],
  ProfileResiduals = [[count median mean largest]],
  RankOrder = [[order step_time_s straddles segment_size devices rank_file]],
  Ranker = [[notes hidden weights memory_features]],
  Ranking = [[seconds trials improving plain_trials plain_improving]],
  Remedy = [[what step_time_s samples_per_s gain stages devices micro_batches]],
  Replay = [[path steps workers stages types recorded_s replayed_s busy_s typical_s slowdown what_if=ReplayAnswer
    waits=ReplayWait*]],
  ReplayAnswer = [[slowdown alone_s without_s saved]],
  ReplayWait = [[worker stage type time_s]],
  ReplicaWait = [[stage replica time_s]],
  Rules = [[queue memory device_pause_s link_pause_s]],
  Run = [[path name]],
  Search = [[problem method options evaluations step mean_reward updates stages sum_of_means curve=CurvePoint*
    placement plan best start stopped progress resumable]],
  StageAccount = [[stage layers traffic=Traffic* device parameters weight_bytes gradient_bytes optimizer_bytes
    gathered_weight_bytes activation_bytes delayed_bytes peak_bytes=PeakBytes activations flops computation_s
    recomputation_s host_wait_s exposed_s=ExposedSeconds idle_s]],
  StepState = [[step_time_s computation_blame_s held_blame_s queue_blame_s transfer_blame_s wait_s slack_s tight_s
    peak_bytes operator_slack_s collision_s crowd_s busy_s memory_bytes room_s critical_s]],
  StepWait = [[device stage replica type time_s]],
  Stragglers = [[step_time_s mean_s p50_s p95_s error_s draws_s degrees waits=StepWait* replica_waits=ReplicaWait*
    remedies=Remedy*]],
  stragglers = [[run=Stragglers context_degrees=ContextDegree* expert_load=ExpertLoad]],
  Strategy = [[mesh devices virtual_stages stages recompute operators inside sequence_parallel scatter_gather
    overlap_tp_grad_allreduce zero_stage optimizer_offload_fraction activation_offload_fraction bucket_bytes
    cp_comm_type sync problem metrics reward method seed evaluations updates ranking=Ranking search_stages seconds
    curve=CurvePoint* stopped optimal saved reevaluated placement schedule micro_batches priority order tasks stage
    splits bounds=Bounds infeasibility=Infeasibility breakdown=Account rank_orders=RankOrder*]],
  system = [[describe_machine=Machine]],
  TaskGraph = [[task_count device_count edge_count cost_ns mean_cost_ns edge_from edge_to edge_tensor edge_bytes
    in_edges first_in first_out latency_ns bytes_per_ns unit follows output_bytes workspace_bytes fixed_bytes
    capacity_bytes mean_latency_ns mean_ns_per_byte]],
  Tensor = [[number shape dtype]],
  TensorInfo = [[name bytes shape dtype gradient producer readers]],
  TensorTarget = [[dtype device]],
  Timeline = [[cluster metrics micro_batches tasks ready_s start_s end_s device transfers=Transfer*
    collectives=CollectiveRun* memory=MemoryLevel* critical_path=CriticalPath critical_steps=CriticalSteps
    by_type=TypeShare*]],
  TorchTensor = [[dtype device grad requires_grad]],
  Traffic = [[kind axis devices phase part bytes count]],
  Transfer = [[task operator micro_batch output from to bytes ready_s start_s end_s]],
  TypeShare = [[type tasks total_s]],
  UnitEdges = [[count from to bytes]],
  UpdateReport = [[timesteps episode_return policy_loss value_loss entropy approx_kl]],
}
