#!/bin/bash
export CUDA_DEVICE_MAX_CONNECTIONS=1
GPUS_PER_NODE=8
NODES=${NODES:-1}
TENSOR=2
MODEL_ARGS=(
  --num-layers 8 --hidden-size 1024 --num-attention-heads 16 # a small GPT
  --seq-length 1024 --max-position-embeddings 1024
)
if [ "$TENSOR" -gt 1 ]; then
  MODEL_ARGS+=(--sequence-parallel)
fi
torchrun --nproc_per_node $GPUS_PER_NODE --nnodes $NODES pretrain_gpt.py \
  ${MODEL_ARGS[@]} \
  --tensor-model-parallel-size $TENSOR \
  --pipeline-model-parallel-size 2 \
  --micro-batch-size 2 --global-batch-size $((2 * 2 * 4)) \
  --use-distributed-optimizer --overlap-grad-reduce \
  --bf16 --lr 1e-4 --min-lr 1e-5 --train-iters 100
