# Starts a command as the ranks of a job, by torchrun's variables: sh ranks.sh RANKS RANKS_A_NODE COMMAND ...
# Its status is that of the first rank, by number, that failed.
size=$1 per_node=$2 ranks= status=0
shift 2
export WORLD_SIZE="$size" LOCAL_WORLD_SIZE="$per_node" MASTER_ADDR=127.0.0.1 MASTER_PORT=$((20000 + $$ % 10000)) TRINITY_JOIN=1
for rank in $(seq 0 $((size - 1))); do
  RANK=$rank LOCAL_RANK=$((rank % per_node)) GROUP_RANK=$((rank / per_node)) "$@" &
  ranks="$ranks $!"
done
for rank in $ranks; do
  wait "$rank" || { code=$?; [ $status != 0 ] || status=$code; }
done
exit $status
