#!/bin/bash
#SBATCH --job-name=train
#SBATCH --gres=gpu:1
#SBATCH --cpus-per-task=8
#SBATCH --mem=32G
#SBATCH --time=04:00:00
#SBATCH --signal=B:USR1@300
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.out

# One GPU. Five minutes before the time limit Slurm sends USR1 to this script, which passes it on; the program saves and
# ends, the job is put back into the queue under its own number and goes on from what was saved.
#
# What the program must do: go on from the file after --checkpoint if there is one; on SIGUSR1 write it and end.
#   stop = False
#   def on_signal(*_):
#       global stop; stop = True
#   signal.signal(signal.SIGUSR1, on_signal)     # and in the loop: if stop: save(checkpoint); sys.exit(0)
# Saving every half hour as well helps against node failures. Write to another name first and rename, so that no half file is left.

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
export SRUN_CPUS_PER_TASK=$SLURM_CPUS_PER_TASK # srun does not take it over since Slurm 22.05
trap on_timeout USR1
srun python3 "$program" --checkpoint "$checkpoint" "$@" &
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
