#!/bin/sh
# make demo: read the recording, learn, answer, serve. --no-serve stops before serving.
set -eu
q="$BIN/queuecast"
export QUEUECAST_LAKE="$DEMO/lake"
ask="when -p gpu --gres gpu:a100:4 -t 1-00:00:00 -A vision -q normal --at data"

echo "== reading 12 days of a real Slurm's output (data/campus-22.05)"
"$q" ingest data/campus-22.05 --demo
echo "== learning what waits depend on (about two minutes)"
"$q" train
echo "== how long will this wait?  queuecast $ask"
# shellcheck disable=SC2086  # the words are arguments
"$q" $ask
echo "== ask it yourself: QUEUECAST_LAKE=$QUEUECAST_LAKE $q when JOBID|SCRIPT|-p ... --at data"
for word in "$@"; do
  [ "$word" = --no-serve ] && exit 0
done
exec "$q" serve "$@"
