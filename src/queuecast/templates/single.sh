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
most_restarts=50

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
