-- Arguments of Megatron-LM at commit d98e8a64 (megatron/training/arguments.py and the configuration classes that it
-- makes arguments of), as a declaration of trinity.job.arguments.

return [[
-- flag: account-for-embedding-in-pipeline-split account-for-loss-in-pipeline-split accumulate-allreduce-grads-in-fp32
  add-qkv-bias adlr-autoresume allow-ambiguous-pad-tokens apply-layernorm-1p apply-query-key-layer-scaling
  apply-residual-connection-post-layernorm apply-wd-to-qk-layernorm async-ckpt-use-cpu-shm async-save
  attention-output-gate attention-softmax-in-fp32 auto-detect-ckpt-format batch-invariant-mode bf16
  biencoder-shared-query-context-model cache-mla-latents calc-ft-timeouts calculate-per-token-loss
  check-for-large-grads check-for-spiky-loss checkpoint-activations ckpt-assume-constant-structure
  ckpt-convert-update-legacy-dist-opt-format ckpt-drop-redundant-extra-state ckpt-fully-parallel-load
  ckpt-fully-parallel-load-per-rank-objects ckpt-fully-parallel-save>ckpt_fully_parallel_save_deprecated
  ckpt-pg-tensors-cache-create cpu-offloading-retain-pinned-cpu-buffers create-all-gather-group
  cross-entropy-loss-fusion data-parallel-random-init dataloader-defer-npy-index-mmap dataloader-fast-cache-load
  dataloader-inter-document-masking ddp-average-in-collective ddp-pad-buckets-for-high-nccl-busbw
  ddp-reduce-scatter-with-fp32-accumulation decode-only-cuda-graphs decrease-batch-size-if-needed
  defer-embedding-wgrad-compute delay-offload-until-cuda-graph delay-wgrad-compute deterministic-mode
  dino-norm-last-layer disable-bf16-reduced-precision-matmul disable-jit-fuser disable-msc
  disable-straggler-on-startup disable-symmetric-registration dist-ckpt-optim-fully-reshardable
  dist-ckpt-save-pre-mcore-014 distrib-optim-fully-reshardable-mem-efficient distribute-saved-activations
  dsa-indexer-k-norm-fp32 dsa-indexer-rope-interleaved dsa-indexer-use-sparse-loss enable-chunked-prefill
  enable-cuda-graph enable-experimental enable-ft-package enable-full-sharding-in-hsdp enable-gpt-oss
  enable-mhc-connections enable-msc eod-mask-loss ep-overlap-early-attn-memory-release exit-on-missing-checkpoint
  exit-signal-handler exit-signal-handler-for-dataloader exit-signal-handler-for-training export-default-te-spec
  export-force-local-attention export-legacy-megatron export-moe-apply-probs-on-input export-offline-model
  export-qk-l2-norm export-te-mcore-model external-cuda-graph fake-process-group fim-data
  fine-grained-activation-offloading finetune first-last-layers-bf16 flash-decode flight-recorder-include-stack-trace
  fp16 fp16-lm-cross-entropy fp32-residual-connection fp4-param-gather fp8-output-proj fp8-param-gather
  freeze-all-layers freeze-base-for-mtp fsdp-db-use-persist-buf-on-alloc-fail fsdp-double-buffer
  fsdp-manual-registration full-validation fused-residual-rmsnorm gdp-cutedsl-kernel grad-reduce-in-bf16
  group-query-attention grpo-filter-groups-with-same-reward gtp-expert-remat-nccl-ub gtp-remat-nccl-ub
  gtp-remat-reduce-scatter-with-fp32-accumulation high-priority-a2a-comm-stream hybrid-context-parallel
  inference-cuda-graph-all-prefills inference-disable-ep-consensus inference-disable-triton-nvls-kernels
  inference-dynamic-batching inference-dynamic-batching-prefix-caching
  inference-dynamic-batching-track-generated-token-events inference-dynamic-batching-track-paused-request-events
  inference-fuse-tp-communication inference-moe-disable-fused-quant-kernels inference-rng-tracker
  inference-text-gen-server-logging inference-use-synchronous-zmq-collectives inference-wandb-logging
  init-method-xavier-uniform init-model-with-meta-device inprocess-empty-cuda-cache inprocess-restart is-hybrid-model
  keep-fp8-transpose-cache lazy-mpu-init load-main-params-from-ckpt log-device-memory-used log-energy
  log-max-attention-logit log-memory-to-tensorboard log-num-zeros-in-grad log-params-norm log-progress log-straggler
  log-throughput log-timers-to-tensorboard log-validation-ppl-to-tensorboard log-world-size-to-tensorboard
  logits-load-ignore-errors manual-gc megatron-fsdp-enable-fine-grained-param-gather
  megatron-fsdp-max-pool-double-buffer mla-down-proj-fusion mock-data modelopt-enabled moe-apply-probs-on-input
  moe-enable-deepep moe-enable-routing-replay moe-grouped-gemm moe-hybridep-pad-uneven-dispatch-inputs
  moe-layer-recompute moe-ncclep-zero-copy moe-pad-expert-input-to-capacity moe-pad-experts-for-cuda-graph-inference
  moe-paged-stash moe-per-layer-logging moe-permute-fusion moe-permute-fusion-into-hybridep
  moe-router-enable-expert-bias moe-router-force-load-balancing moe-router-fusion moe-router-padding-for-fp8
  moe-router-padding-for-quantization moe-router-pre-softmax moe-routing-trace-capture-hidden-states
  moe-routing-trace-capture-logits moe-routing-trace-dump-weights moe-shared-expert-gate moe-shared-expert-overlap
  moe-single-grouped-bias moe-single-grouped-weight moe-use-grouped-tensor moe-use-upcycling mtp-detach-heads mtp-hsm
  mtp-standalone mtp-use-repeated-layer multi-latent-attention multiple-validation-sets muon-nesterov muon-use-syrk
  nccl-all-reduce-for-prefill no-load-optim no-load-rng no-persist-layer-norm no-save-optim no-save-rng nvtx-ranges
  one-logger-async openai-gelu optimizer-cpu-offload optimizer-cuda-graph otel-enabled output-bert-embeddings
  overlap-cpu-optimizer-d2h-h2d overlap-dispatch-backward-with-experts-wgrad overlap-grad-reduce
  overlap-moe-expert-parallel-comm overlap-p2p-communication-warmup-flush>overlap_p2p_comm_warmup_flush
  overlap-param-gather overlap-param-gather-with-optimizer-step override-opt-param-scheduler
  override-opt_param-scheduler perform-rl-step profile pytorch-profiler-collect-callstack
  pytorch-profiler-collect-chakra pytorch-profiler-collect-shapes qk-clip qk-l2-norm qk-layernorm quick-geglu
  recompute-activations record-memory-history record-shapes replication reset-attention-mask reset-position-ids
  retriever-score-scaling reuse-grad-buf-for-mxfp8-param-ag rl-durable-rollout-bank
  rl-inference-logprobs-is-correction rl-offload-inference-model-weights-when-idle
  rl-offload-optimizer-during-inference rl-partial-rollouts rl-persist-cuda-graphs rl-profile rl-skip-bos-token
  rl-training-cuda-graphs rl-use-sequence-packing rl-verify-model-weights-swap rotary-interleaved
  run-workload-inspector-server sequence-parallel sft skip-train squared-relu swiglu te-rng-tracker test-mode
  tokenizer-hf-no-include-special-tokens tokenizer-hf-no-use-fast tokenizer-sentencepiece-legacy tp-comm-overlap
  tp-comm-overlap-rs-dgrad trust-remote-code untie-embeddings-and-output-weights use-checkpoint-args
  use-checkpoint-opt-param-scheduler use-checkpoint-opt_param-scheduler use-cpu-initialization
  use-dist-ckpt>use_dist_ckpt_deprecated use-distributed-optimizer use-flash-attn use-fused-weighted-squared-relu
  use-gigatoken use-grouped-gemm-for-dense-mlp use-grouped-gemm-for-shared-expert use-kitchen-attention
  use-legacy-static-engine use-mcore-models use-megatron-fsdp use-mp-args-from-checkpoint-args use-mup
  use-nccl-ub>nccl_ub use-one-sent-docs use-persistent-ckpt-worker use-precision-aware-optimizer use-pytorch-profiler
  use-ring-exchange-p2p use-rope-scaling use-rotary-position-embeddings use-sharp use-te-activation-func
  use-torch-fsdp2 use-torch-optimizer-for-cpu-offload use-tp-pp-dp-mapping use-transformer-engine-op-fuser
  verify-integrity vision-pretraining yarn-correction-range-round-to-int
-- off: bert-no-binary-head disable-align-grad-reduce disable-bias-linear>add_bias_linear
  disable-ckpt-load-validate-sharding-integrity disable-clone-scatter-output-in-embedding
  disable-dsa-indexer-rotate-activation disable-dsa-indexer-scoring-relu disable-flight-recorder-dump-on-timeout
  disable-flight-recorder-extra-dump-on-exec disable-flight-recorder-include-only-active disable-fp8-wgrad
  disable-gloo-process-groups>use_gloo_process_groups disable-log-loss-scale-to-tensorboard disable-mamba-mem-eff-path
  disable-manual-gc-eval disable-pad-vocab-size disable-save-tokenizer-assets disable-strict-fsdp-dtensor-load
  disable-tokenizer-sentencepiece-ignore-extra-whitespaces disable-tp-comm-bulk-dgrad disable-tp-comm-bulk-wgrad
  disable-tp-comm-overlap-ag disable-tp-comm-overlap-rs disable-tp-comm-split-ag disable-tp-comm-split-rs
  disable-use-tokenizer-model-from-checkpoint-args muon-no-split-qkv no-align-grad-reduce no-align-param-gather
  no-barrier-with-level-1-timing no-bias-dropout-fusion no-bias-gelu-fusion no-bias-swiglu-fusion
  no-check-for-nan-in-loss-and-grad no-ckpt-fully-parallel-save no-ckpt-load-validate-sharding-integrity
  no-clone-scatter-output-in-embedding no-create-attention-mask-in-dataloader no-data-sharding
  no-dsa-indexer-rotate-activation no-dsa-indexer-scoring-relu no-flight-recorder-dump-on-timeout
  no-flight-recorder-extra-dump-on-exec no-flight-recorder-include-only-active no-fp8-wgrad
  no-gradient-accumulation-fusion no-gradient-reduce-div-fusion no-inference-disable-ep-consensus
  no-inference-dynamic-batching-prefix-caching no-inference-text-gen-server-logging
  no-inference-use-synchronous-zmq-collectives no-inference-wandb-logging no-initialization
  no-log-loss-scale-to-tensorboard no-manual-gc-eval no-masked-softmax-fusion no-mmap-bin-files no-one-logger
  no-overlap-p2p-communication>overlap_p2p_comm no-pad-vocab-size no-pin-cpu-grads no-pin-cpu-params
  no-position-embedding>add_position_embedding no-rl-inference-logprobs-is-correction
  no-rl-offload-inference-model-weights-when-idle no-rl-partial-rollouts no-rl-persist-cuda-graphs
  no-rl-skip-bos-token no-rl-training-cuda-graphs no-rl-use-sequence-packing no-rl-verify-model-weights-swap
  no-rope-fusion>apply_rope_fusion no-save-tokenizer-assets no-strict-fsdp-dtensor-load
  no-tokenizer-sentencepiece-ignore-extra-whitespaces no-tp-comm-bulk-dgrad no-tp-comm-bulk-wgrad
  no-tp-comm-overlap-ag no-tp-comm-overlap-rs no-tp-comm-split-ag no-tp-comm-split-rs no-use-layer-wise-param-layout
  no-use-tokenizer-model-from-checkpoint-args no-yarn-correction-range-round-to-int
  torch-fsdp2-no-reshard-after-forward use-same-sampling-seed-across-dp-ranks
-- int: adlr-autoresume-interval async-ckpt-cpu-priority async-ckpt-io-priority batch-size biencoder-projection-dim
  check-weight-hash-across-dp-replicas-interval ckpt-step context-parallel-size=1 cpu-offloading-num-layers=0
  cuda-graph-warmup-steps=3 ddp-bucket-size ddp-num-buckets decoder-first-pipeline-num-layers
  decoder-last-pipeline-num-layers decoder-num-layers decoder-seq-length delta-offload-bytes-across-pp-ranks=0
  dino-bottleneck-size dino-head-hidden-size dino-local-crops-number dino-local-img-size
  dino-warmup-teacher-temp-epochs dist-ckpt-workers distributed-timeout-minutes distributed-timeout-seconds-after-init
  dsa-indexer-head-dim dsa-indexer-n-heads dsa-indexer-skip-topk-offset=0 dsa-indexer-topk dsa-indexer-topk-freq=1
  empty-unused-memory-level{0|1|2} encoder-num-layers encoder-seq-length error-injection-rate eval-global-batch-size
  eval-interval eval-iters eval-micro-batch-size exit-duration-in-mins exit-interval expert-model-parallel-size=1
  expert-tensor-parallel-num-weight-shards expert-tensor-parallel-size fault-injector-delay-start-iteration
  fault-injector-num-ranks fault-injector-seed ffn-hidden-size fine-grained-offloading-max-inflight-offloads
  flash-attention-version{2|3|4} flight-recorder-trace-buffer-size fp8-amax-history-len fp8-interval fp8-margin
  ft-num-warmup-iters gdp-num-chunk-states-to-recompute=2 gdp-num-householder=3 global-batch-size
  gpu-sniff-test-interval grpo-group-size grpo-iterations grpo-prompts-per-step hidden-size
  hierarchical-context-parallel-sizes+ hysteresis ict-head-size img-h img-w indexer-batch-size indexer-log-interval
  inference-batch-times-seqlen-threshold=-1 inference-coordinator-port inference-cuda-graph-max-tokens
  inference-dynamic-batching-block-size inference-dynamic-batching-cuda-graph-mixed-prefill-count
  inference-dynamic-batching-max-requests inference-dynamic-batching-max-tokens
  inference-dynamic-batching-num-cuda-graphs=16 inference-dynamic-batching-unified-memory-level{0|1}
  inference-logging-step-interval inference-max-requests inference-max-seq-length inprocess-active-world-size
  inprocess-max-iterations iter-per-epoch iterations-to-skip+ kitchen-recipe-number kv-channels kv-lora-rank=32
  linear-conv-kernel-dim=4 linear-key-head-dim=128 linear-num-key-heads=16 linear-num-value-heads=32
  linear-value-head-dim=128 local-rank log-interval=100 log-memory-interval logging-level logits-load-decode-threads
  logits-load-msc-prefetch-depth logits-load-prefetch-factor logits-save-top-k logits-save-top-p-min-k lr-decay-iters
  lr-decay-samples lr-warmup-iters=0 lr-warmup-samples=0 lr-wsd-decay-iters lr-wsd-decay-samples
  make-vocab-size-divisible-by=128 mamba-head-dim mamba-num-groups mamba-num-heads mamba-state-dim manual-gc-interval
  max-position-embeddings max-seqlen-per-dp-cp-rank max-tokens-to-oom megatron-fsdp-version{1|2}=1
  mhc-num-residual-streams mhc-recompute-layer-num mhc-sinkhorn-iterations=20 micro-batch-size
  microbatch-group-size-per-virtual-pipeline-stage>microbatch_group_size_per_vp_stage
  min-offloaded-tensor-size=1048576 mlp-chunks-for-prefill mlp-chunks-for-training model-parallel-size
  moe-deepep-num-sms moe-ffn-hidden-size moe-flex-dispatcher-num-sms moe-hybridep-num-blocks-permute
  moe-hybridep-num-blocks-unpermute moe-hybridep-num-sms moe-hybridep-num-sms-preprocessing moe-latent-size
  moe-mlp-glu-interleave-size moe-paged-stash-page-size moe-router-group-topk moe-router-num-groups moe-router-topk=2
  moe-routing-trace-max-training-iters moe-shared-expert-glu-interleave-size moe-shared-expert-intermediate-size
  moe-upcycling-granularity mrope-section+ mtp-num-layers muon-num-ns-steps mup-base-hidden-size
  non-persistent-save-interval null-tokenizer-eod-id null-tokenizer-pad-id num-attention-heads num-channels
  num-classes num-dataset-builder-threads=1 num-distributed-optimizer-instances=1 num-experts num-layers
  num-layers-at-end-in-bf16=1 num-layers-at-start-in-bf16=1 num-layers-per-virtual-pipeline-stage num-query-groups=1
  num-speculative-tokens num-virtual-stages-per-pipeline-rank num-workers override-ckpt-iteration padded-vocab-size
  patch-dim persistent-save-interval>save_interval pipeline-model-parallel-size=1 profile-ranks+ profile-step-end
  profile-step-start q-lora-rank qk-head-dim=128 qk-pos-emb-head-dim=64 rampup-batch-size+ recompute-num-layers
  relative-attention-max-distance relative-attention-num-buckets replication-factor replication-jump
  retriever-report-topk-accuracies+ rl-default-top-k rl-inference-expert-model-parallel-size
  rl-inference-expert-tensor-model-parallel-size rl-inference-model-unified-memory-level{0|1}
  rl-inference-pipeline-model-parallel-size rl-inference-tensor-model-parallel-size rl-max-inflight-requests
  rl-prompts-per-eval rl-rollout-bank-max-bytes rl-sequence-packing-max-sequences-per-bin rotary-base
  rotary-seq-len-interpolation-factor save-activations-interval save-dgrads-interval save-interval
  save-params-interval save-retain-interval save-tokens-per-expert-interval save-wgrads-interval seed seq-length
  start-eval-at-iter straggler-ctrlr-port straggler-minmax-count suggested-communication-unit-size
  tensor-model-parallel-size=1 tensor-parallel-num-weight-shards tensorboard-log-interval tensorboard-queue-size
  tiktoken-num-special-tokens timing-log-level{0|1|2} train-iters train-samples train-sync-interval v-head-dim=128
  vocab-extra-ids vocab-size warmup wgrad-deferral-limit=0 yarn-original-max-position-embeddings
-- float: activation-func-clamp-value activation-offload-fraction=1.0 adam-beta1 adam-beta2 adam-eps
  attention-dropout=0.1 classes-fraction clip-grad data-per-class-fraction decoupled-lr decoupled-min-lr
  dino-freeze-last-layer dino-teacher-temp dino-warmup-teacher-temp dsa-indexer-k-norm-epsilon dsa-indexer-loss-coeff
  embedding-init-method-std end-weight-decay fault-injector-fault-delay fault-injector-mtti-seconds
  fault-injector-offset-seconds fim-fragment-rate fim-rate=0.5 fim-spm-rate=0.5 glu-linear-offset=0.0
  grpo-clamp-eps-lower grpo-clamp-eps-upper grpo-entropy-term-weight grpo-kl-beta head-lr-mult hidden-dropout=0.1
  inference-dynamic-batching-buffer-size-gb inference-dynamic-batching-mamba-memory-ratio
  inference-dynamic-batching-paused-buffer-size-gb inference-dynamic-batching-prefix-caching-mamba-gb
  inference-dynamic-batching-prefix-caching-routing-alpha init-method-std initial-loss-scale inprocess-barrier-timeout
  inprocess-completion-timeout inprocess-hard-timeout inprocess-heartbeat-interval inprocess-heartbeat-timeout
  inprocess-last-call-wait inprocess-monitor-process-interval inprocess-monitor-thread-interval
  inprocess-progress-watchdog-interval inprocess-soft-timeout inprocess-termination-grace-time lion-beta1 lion-beta2
  logits-load-kd-loss-alpha logits-save-top-p loss-scale loss-scale-window lr lr-warmup-fraction lr-warmup-init
  mask-factor mask-prob mhc-init-gating-factor=0.01 mid-level-dataset-surplus min-loss-scale min-lr=0.0
  moe-aux-loss-coeff+=0.0 moe-expert-capacity-factor moe-expert-rank-capacity-factor moe-input-jitter-eps
  moe-paged-stash-buffer-size-factor-cpu moe-paged-stash-buffer-size-factor-cuda moe-router-bias-update-rate
  moe-router-force-biased moe-router-quantile-balancing-ema moe-router-topk-scaling-factor moe-z-loss-coeff
  mscale-all-dim mscale mtp-loss-scaling-factor muon-extra-scale-factor muon-momentum mup-attn-scale-power
  mup-base-head-dim mup-embedding-mult mup-output-mult mup-width-mult norm-epsilon optimizer-offload-fraction=1.0
  qk-clip-alpha=0.5 qk-clip-threshold=100 query-in-block-prob rl-default-temperature rl-default-top-p
  rl-generation-lag rl-importance-sampling-truncation-coef rope-scaling-factor rotary-percent rotary-scaling-factor
  sample-rate sgd-momentum short-seq-prob start-weight-decay weight-decay yarn-beta-fast yarn-beta-slow
-- text: app-tag-run-name app-tag-run-version async-strategy{nvrx|mcore}=nvrx
  attention-backend{flash|fused|unfused|local|auto}=auto batch-invariant-backend{te_native|deepgemm|triton}
  bert-embedder-type{megatron|huggingface} bert-load block-data-path chat-template
  ckpt-convert-format{torch|torch_dist} ckpt-convert-save ckpt-format{torch|torch_dist|torch_dcp|
  fsdp_dtensor}=torch_dist ckpt-fully-parallel-load-exchange-algo{broadcast|gather_rounds|gather_object}
  ckpt-fully-parallel-load-process-group{dp|ep_dp}=dp ckpt-fully-parallel-save-process-group{dp|ep_dp}=dp
  ckpt-pg-tensors-cache-path config-logger-dir cp-comm-type+=p2p cross-entropy-fusion-impl{native|te}=native
  cuda-graph-impl{none|local|transformer_engine|full_iteration}=none cuda-graph-modules+{attn|mlp|moe|moe_router|
  moe_preprocess|mamba|full|full_iteration|full_iteration_inference}
  cuda-graph-scope>cuda_graph_scope_deprecated+{attn|mlp|moe|moe_router|moe_preprocess|mamba|full|full_iteration|
  full_iteration_inference} data-args-path data-cache-path data-parallel-sharding-strategy{no_shard|optim|optim_grads|
  optim_grads_params}=optim_grads_params data-path+ dataloader-type{single|cyclic|external}
  ddp-param-name-patterns-for-fp32-local-accumulation+ dist-ckpt-format>dist_ckpt_format_deprecated
  dist-ckpt-strictness{assume_ok_unexpected|log_unexpected|log_all|raise_unexpected|raise_all|return_unexpected|
  return_all|ignore_all} distributed-backend{nccl|gloo} dsa-kernel-backend{none|tilelang|cudnn}
  dump-param-to-param-group-map embedding-path error-injection-type{correct_result|transient_error|persistent_error}
  evidence-data-path exit-signal exp-avg-dtype{fp32|fp16|bf16|fp8} exp-avg-sq-dtype{fp32|fp16|bf16|fp8}
  experimental-attention-variant{gdn|gdn2|dsa|gated_delta_net} export-kd-cfg
  export-kd-teacher-ckpt-format{torch|torch_dist|torch_dcp} export-kd-teacher-load export-kd-teacher-model-config
  export-kv-cache-quant{none|fp8|fp8_affine|nvfp4|nvfp4_affine|nvfp4_rotate}
  export-model-type{GPTModel|HybridModel|MambaModel} export-quant-cfg export-real-quant-cfg{fp8_real_quant|
  fp8_blockwise_real_quant|None} fault-injector-fault-probabilities fault-injector-fault-types fault-injector-ranks
  fim-eod-token fim-middle-token fim-no-prefix fim-pad-token fim-prefix-token fim-split-sample fim-suffix-token
  finetune-data-files+ finetune-data-split finetune-hf-dataset flight-recorder-dump-path fp4-format>fp4{e2m1}
  fp4-quantizer-factory fp4-recipe{nvfp4|custom}=nvfp4 fp8-amax-compute-algo{most_recent|max}
  fp8-format>fp8{e4m3|hybrid} fp8-quantizer-factory fp8-recipe{tensorwise|delayed|mxfp8|blockwise|custom}=delayed
  gtp-remat-opt-in-modules+ heterogeneous-layers-config-encoded-json heterogeneous-layers-config-path
  high-priority-stream-groups+ hybrid-layer-pattern hybrid-override-pattern ict-load inference-cuda-graph-scope
  inference-dynamic-batching-async-sched-mode{legacy|async}
  inference-dynamic-batching-cuda-graph-sizing-distribution{exponential|linear}
  inference-dynamic-batching-logprobs-mode{raw_logprobs|processed_logprobs}
  inference-dynamic-batching-prefix-caching-coordinator-policy{longest_prefix|first_prefix_block|load_balanced}
  inference-dynamic-batching-prefix-caching-eviction-policy{ref_zero|lru}
  inference-dynamic-batching-sampling-backend{torch|flashinfer}
  inference-grouped-gemm-backend{flashinfer|torch|vllm}=vllm inference-moe-token-dispatcher-type{nccl|nvls}
  inference-shards inprocess-granularity{node|rank} kitchen-attention-backend{sdpa|fa} kitchen-config-file
  langrl-env-config linear-attention-freq:layers load logits-load-dir logits-save-dir
  logits-save-dtype{fp16|bf16|fp32} lr-decay-style{constant|linear|cosine|inverse-square-root|WSD}
  lr-wsd-decay-style{exponential|linear|cosine|minus_sqrt} main-grads-dtype{fp32|bf16}=fp32
  main-params-dtype{fp32|fp16} mamba-inference-conv-states-dtype{bf16|fp16|fp32}
  mamba-inference-ssm-states-dtype{bf16|fp16|fp32} mamba-training-ssm-states-dtype{fp32|bf16} mask-type{random|row}
  megatron-fsdp-grad-comm-dtype{fp32|fp16|bf16|auto} megatron-fsdp-main-grads-dtype{fp32|bf16|fp16|auto}
  megatron-fsdp-main-params-dtype{fp32|bf16|fp16|auto} memory-snapshot-path merge-file
  moe-combine-bwd-dtype{bf16|mxfp8}=bf16 moe-dispatch-fwd-dtype{bf16|mxfp8}=bf16
  moe-flex-dispatcher-backend{deepep|hybridep|ncclep}=deepep moe-layer-freq:layers=1 moe-router-dtype{fp32|fp64}
  moe-router-load-balancing-type+{aux_loss|seq_aux_loss|global_aux_loss|sinkhorn|quantile_balancing|none}=aux_loss
  moe-router-score-function{softmax|sigmoid|sqrtsoftplus}=softmax moe-routing-trace-path
  moe-token-dispatcher-type{allgather|alltoall|flex}=allgather moe-token-drop-policy{probs|position}
  mtp-hybrid-override-pattern muon-coefficient-type muon-fp32-matmul-prec{low|medium|high}
  muon-scalar-optimizer{adam|lion} muon-scale-mode{spectral|unit_rms_norm|shape_scaling}
  muon-tp-mode{blockwise|duplicated|distributed} nccl-communicator-config-path no-rope-freq:layers
  no-weight-decay-cond-type{apply_wd_to_qk_layernorm} non-persistent-ckpt-type{global|local|in_memory}
  non-persistent-global-ckpt-dir non-persistent-local-ckpt-algo{fully_parallel|atomic} non-persistent-local-ckpt-dir
  normalization{LayerNorm|RMSNorm}=LayerNorm object-storage-cache-path offload-modules+ one-logger-project
  one-logger-run-name onnx-safe optimizer{adam|sgd|muon|dist_muon|lion|soap|adaptive_muon}=adam otel-service-name
  otel-span-groups outer-dp-sharding-strategy{no_shard|optim} output-logit-dtype{bf16|fp32} per-dataset-sequences-path
  per-split-data-args-path phase-transition-iterations pipeline-model-parallel-comm-backend{nccl|ucc}
  pipeline-model-parallel-layout position-embedding-type{learned_absolute|rope|yarn|mrope|relative|
  none}=learned_absolute pretrained-checkpoint qad-train-target{base|mtp|both} recompute-granularity{full|selective}
  recompute-method{uniform|block} recompute-modules+ refit-method{nccl|gloo|nvshmem}
  rerun-mode{disabled|validate_results|report_stats} result-rejected-tracker-filename
  rl-consumption-granularity{R|G|B}=B rl-inference-parsers+ rl-kv-cache-management-mode{persist|offload|
  recompute}=persist rl-profile-dir rl-rollout-bank-dir rl-sequence-packing-algo{fifo|round-robin}
  rl-submission-granularity{R|G|B}=B rope-type{rope|yarn} save sft-tokenizer-prompt-format
  sharp-enabled-group{dp|dp_replica} softmax-type{vanilla|off-by-one|learnable} spec+ split step-batch-size-schedule
  swin-backbone-type{tiny|base|h3} symmetric-ar-type{two_shot|one_shot|multimem_all_reduce} te-precision-config-file
  tensorboard-dir test-data-path+ tiktoken-pattern{v1|v2} timing-log-option{max|minmax|all} titles-data-path
  tokenizer-metadata tokenizer-model tokenizer-special-tokens+ tokenizer-type{BertWordPieceLowerCase|
  BertWordPieceCase|GPT2BPETokenizer|SentencePieceTokenizer|GPTSentencePieceTokenizer|HuggingFaceTokenizer|
  Llama2Tokenizer|TikTokenizer|MultimodalTokenizer|NullTokenizer|NullMultimodalTokenizer|SFTTokenizer}
  tp-comm-bootstrap-backend{nccl|mpi|gloo} tp-comm-overlap-cfg train-data-path+ transformer-impl{local|
  transformer_engine|inference_optimized}=transformer_engine valid-data-path+ validation-set-names+
  vision-backbone-type{vit|mit|swin} vision-pretraining-type{classify|inpaint|dino} vocab-file wandb-entity
  wandb-exp-name wandb-project wandb-save-dir weight-decay-incr-style{constant|linear|cosine}=constant
  window-attn-skip-freq window-size yaml-cfg
]]
