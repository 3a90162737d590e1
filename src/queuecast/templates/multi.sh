#!/bin/bash
#SBATCH --job-name=train
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --gres=gpu:4
#SBATCH --cpus-per-task=4
#SBATCH --mem=48G
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.out

# Several GPUs on one or more nodes, one process for each GPU, started by srun. (torchrun would do as well, but a signal ends
# torchrun itself instead of reaching the processes that must save.) For torch.distributed: init_process_group(), and
# torch.cuda.set_device(int(os.environ["LOCAL_RANK"])).
#
# Five minutes before the time limit Slurm sends USR1 to this script, which passes it on to every process; the program saves and
# ends, the job is put back into the queue under its own number and goes on from what was saved.
#
# What the program must do: go on from the file after --checkpoint if there is one; on SIGUSR1 finish the step, let rank 0 write
# it, and end everywhere. Write to another name first and rename, so that no half file is left.

program=train.py
checkpoint="checkpoint-$SLURM_JOB_ID"
parts="" # what of model, optimizer, random_state, data_position the program saves (words with blanks between); empty: not told
most_restarts=50

# queuecast: checkpoint=.
# queuecast retry looks there for what is saved, and sets QUEUECAST_RESUME in the copy.
if [ -n "${QUEUECAST_RESUME:-}" ] && [ ! -e "$checkpoint" ]; then # go on from what an earlier job saved, and leave that as it is
    cp -r "$QUEUECAST_RESUME" "$checkpoint.part" && mv "$checkpoint.part" "$checkpoint" || exit 1
fi

manifest() { # says what was saved, so that it can be told whether it is whole; of a folder write one by hand (docs/retry.md)
    local sum part told=""
    [ -f "$checkpoint" ] && sum=$(sha256sum <"$checkpoint") || return 0
    for part in ${parts:+model optimizer random_state data_position}; do
        case " $parts " in *" $part "*) told="$told, \"$part\": true" ;; *) told="$told, \"$part\": false" ;; esac
    done
    printf '{"queuecast_checkpoint": 1, "job": "%s", "saved_at": "%s", "code": "%s", "parts": {%s},\n' \
        "$SLURM_JOB_ID" "$(date -u +%FT%TZ)" "$(git rev-parse HEAD 2>/dev/null)" "${told#, }" >"$checkpoint.manifest.part"
    printf ' "files": [{"path": "%s", "bytes": %d, "sha256": "%s"}]}\n' "$checkpoint" "$(stat -c %s "$checkpoint")" "${sum%% *}" \
        >>"$checkpoint.manifest.part" && mv "$checkpoint.manifest.part" "$checkpoint.manifest.json"
}

stopped=0
on_timeout() {
    echo "$(date '+%F %T') the time limit is near: saving"
    stopped=1
    kill -USR1 "$pid"
}

echo "$(date '+%F %T') start number $((${SLURM_RESTART_COUNT:-0} + 1)) on $SLURM_JOB_NODELIST"
MASTER_ADDR=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
MASTER_PORT=$((20000 + SLURM_JOB_ID % 20000)) # jobs that share a node do not meet
export MASTER_ADDR MASTER_PORT
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK # srun does not take it over since Slurm 22.05
export OMP_NUM_THREADS=$SLURM_CPUS_PER_TASK
trap on_timeout USR1
srun --kill-on-bad-exit=1 bash -c 'export RANK=$SLURM_PROCID LOCAL_RANK=$SLURM_LOCALID WORLD_SIZE=$SLURM_NTASKS; exec python3 "$@"' \
    start "$program" --checkpoint "$checkpoint" "$@" &
pid=$!
wait "$pid"
status=$?
while kill -0 "$pid" 2>/dev/null; do # the signal ended wait, not the program
    wait "$pid"
    status=$?
done

manifest
if [ "$stopped" = 0 ]; then
    exit "$status"
elif [ ! -e "$checkpoint" ]; then
    echo "nothing was saved: the job is not requeued, since it would begin anew each time"
    exit 1
elif [ "${SLURM_RESTART_COUNT:-0}" -ge "$most_restarts" ]; then
    echo "requeued $most_restarts times already: that is enough"
    exit 1
fi
scontrol requeue "$SLURM_JOB_ID"
