#!/bin/bash
#SBATCH --job-name=serve
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --time=08:00:00
#SBATCH --signal=B:USR1@120
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.out

# A server that answers requests on one node. Submit with the server's command: sbatch serve.sh vllm serve MODEL
# {port} in it is filled in. Where it answers stands in the file endpoint-<job name> as long as it does.
#
# Two minutes before the time limit Slurm sends USR1 to this script: the endpoint is withdrawn, the server gets TERM, finishes
# what it has begun and writes what it wants to keep; the job is put back into the queue and serves again.

port=$((20000 + SLURM_JOB_ID % 20000)) # jobs that share a node do not meet
endpoint="endpoint-$SLURM_JOB_NAME"
most_restarts=200

if [ "$#" = 0 ]; then
    echo "no server: sbatch $SLURM_JOB_NAME.sh vllm serve MODEL --port {port}"
    exit 2
fi

stopped=0
on_timeout() {
    echo "$(date '+%F %T') the time limit is near: closing"
    stopped=1
    rm -f "$endpoint"
    kill -TERM "$pid"
}

echo "$(date '+%F %T') start number $((${SLURM_RESTART_COUNT:-0} + 1)) on $SLURM_JOB_NODELIST"
trap on_timeout USR1
trap 'rm -f "$endpoint"' EXIT
"${@//\{port\}/$port}" &
pid=$!
echo "http://$(hostname -f):$port" >"$endpoint"
wait "$pid"
status=$?
while kill -0 "$pid" 2>/dev/null; do # the signal ended wait, not the server
    wait "$pid"
    status=$?
done

if [ "$stopped" = 0 ]; then
    exit "$status"
elif [ "${SLURM_RESTART_COUNT:-0}" -ge "$most_restarts" ]; then
    echo "requeued $most_restarts times already: that is enough"
    exit 1
fi
scontrol requeue "$SLURM_JOB_ID"
