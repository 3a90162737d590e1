"""What to do about a failure: numbered steps, with the commands to type. ``{job}`` and the like are filled in."""

from __future__ import annotations

from collections.abc import Mapping

from queuecast.i18n import N_, _
from queuecast.reasons.failureclasses import FailureClass

_RETRY = N_("Make a copy of the script with what has to change: queuecast retry {job} > retry.sh")
_COPY = N_("When that is mended, make a copy with the same request: queuecast retry {job} --force > retry.sh")
_CHECK = N_("Look at it before it is sent: queuecast check retry.sh; then: sbatch retry.sh")
_AGAIN = N_("Send it again: sbatch with the same script, or: queuecast retry {job} > retry.sh && sbatch retry.sh")
_TELL_NODE = N_("Tell your administrators: job {job}, nodes {nodes}, ended {end}.")
_AVOID = N_("Send it again without that node: sbatch --exclude={nodes} ... (or: queuecast retry {job} > retry.sh)")
_READ = N_("Read the end of its log; the first error matters, later ones are often its consequence.")

OF_CLASS: dict[FailureClass, tuple[str, ...]] = {
    "user_code": (_READ, N_("Mend it, and try it on a short --time first (a debug partition starts sooner)."), _COPY, _CHECK),
    "oom_host": (
        N_("Ask for more memory than the {memory} it had (--mem, or --mem-per-cpu); half as much again is a usual first step."),
        N_("Or let it use less: fewer workers, smaller pieces, no second copy of the data."),
        _RETRY,
        _CHECK,
    ),
    "oom_gpu": (
        N_("Use a smaller batch (with gradient accumulation), mixed precision, or activation checkpointing."),
        N_("Or ask for a GPU with more memory, or spread the model over more GPUs: queuecast suggest shows what fits."),
        _RETRY,
        _CHECK,
    ),
    "time_limit": (
        N_("Ask for more time than {limit} if it was close to done; the log tells how far it came."),
        N_("If it saves checkpoints, continue from the last one instead of starting over: queuecast retry {job} looks for one."),
        N_("To save in time, let Slurm warn it: #SBATCH --signal=B:USR1@120"),
        _CHECK,
    ),
    "environment": (_READ, N_("Set up what is missing at the top of the script (module load, source activate, paths)."), _COPY, _CHECK),
    "node": (_AVOID, _TELL_NODE),
    "platform": (N_("Tell your administrators: job {job}, ended {end}, with the lines above."), _AGAIN),
    "scheduler_cancel": (
        N_("See what was said at the cancelling: scontrol show job {job}; sacct -j {job} -o JobID,State,Comment,AdminComment"),
        N_("Ask your administrators if it was not you, then send it again: queuecast retry {job} > retry.sh"),
    ),
    "preempted": (
        N_("If it was not queued again by itself, send it again with --requeue, and let it save checkpoints."),
        N_("Or use a partition or QOS that is not preempted: queuecast alternatives {job}"),
    ),
    "dependency": (
        N_("See which job it waited for: sacct -j {job} -o JobID,State,Reason,SubmitLine; then: queuecast failed THAT_JOB"),
        N_("Send the first job again, and this one after it with --dependency=afterok:NEW_JOB."),
    ),
    "user_cancel": (N_("Nothing, if that was meant. To run it again: queuecast retry {job} > retry.sh"),),
    "unknown": (
        N_("See its steps: sacct -j {job} -o JobID,State,ExitCode,DerivedExitCode,Elapsed,MaxRSS,NodeList"),
        N_("Name its log if it lies elsewhere: queuecast failed {job} --log FILE"),
        _AGAIN,
    ),
}

OF_KEY: dict[str, tuple[str, ...]] = {
    "cuda_oom": OF_CLASS["oom_gpu"],
    "host_oom": OF_CLASS["oom_host"],
    "java_heap": (N_("Give Java more of the job's memory (-Xmx, a little below --mem), or ask for more of both."), _RETRY, _CHECK),
    "shm": (
        N_("Use fewer data loader workers (num_workers), or share by file: torch.multiprocessing.set_sharing_strategy('file_system')."),
        N_("In a container, give it a larger /dev/shm; what lies there counts as the job's memory, so --mem has to allow for it."),
        _RETRY,
        _CHECK,
    ),
    "bus_error": (
        N_("Look for a full /dev/shm or /tmp and for quotas: df -h /dev/shm /tmp; quota -s"),
        N_("A file that is mapped must not be cut or rewritten while the job runs."),
        N_("If neither is so and it comes back on the same node ({nodes}), tell your administrators."),
        _RETRY,
    ),
    "lmod": (
        N_("Look for the module: module spider NAME; names and versions change with the site's updates."),
        N_("Begin the script with: module purge; module load ... (and not from a login shell's leftovers)"),
        _RETRY,
        _CHECK,
    ),
    "conda": (
        N_('Set conda up in the script: source "$(conda info --base)/etc/profile.d/conda.sh"; conda activate NAME'),
        N_("See that the environment is there on the nodes: conda env list"),
        _RETRY,
        _CHECK,
    ),
    "python_module": (
        N_("Activate the environment in the script itself, and check it: python -c 'import sys, MODULE; print(sys.executable)'"),
        N_("Install what is missing there: python -m pip install NAME"),
        _RETRY,
        _CHECK,
    ),
    "command": (
        N_("Load its module or set PATH in the script; try it in a short job: srun --pty bash, then: command -v NAME"),
        _RETRY,
        _CHECK,
    ),
    "paths": (
        N_("The folder of --output and --chdir has to be there on the nodes before the job starts: mkdir -p FOLDER"),
        N_("See that you may write there and have room: touch FOLDER/x; quota -s"),
        _RETRY,
        _CHECK,
    ),
    "quota": (
        N_("See what is used: quota -s (or your site's command); du -sh FOLDER/* | sort -h"),
        N_("Remove or move what is not needed, or write to the scratch file system."),
        _AGAIN,
    ),
    "no_space": (
        N_("See which is full: df -h . /tmp /dev/shm; quota -s"),
        N_("Write to the scratch file system, or clean up; if it was /tmp of {nodes}, tell your administrators."),
        _AGAIN,
    ),
    "license": (
        N_("Let Slurm count the licences, so that the job waits for one: #SBATCH --licenses=NAME:1 (see: scontrol show lic)"),
        N_("If the licence server does not answer, tell your administrators."),
        _AGAIN,
    ),
    "hub_auth": (
        N_("Log in again where the job can see it (a token file in your home, or an environment variable of the script)."),
        N_("For a gated model or data set, accept its terms first. Keep tokens out of logs and scripts."),
        _RETRY,
    ),
    "no_network": (
        N_("Nodes often have no way to the internet: fetch data and models on a login node first, and work offline."),
        N_("If a host of your site cannot be reached, tell your administrators: nodes {nodes}, {end}."),
        _RETRY,
    ),
    "no_gpu": (
        N_("Ask for a GPU (--gres=gpu:1 or --gpus=1), and see that CUDA_VISIBLE_DEVICES is not changed in the script."),
        N_("If it had one, tell your administrators: job {job}, nodes {nodes}."),
        _RETRY,
        _CHECK,
    ),
    "driver_old": (
        N_("Use a build of the program for the driver and GPU there: nvidia-smi shows both in a short job on that partition."),
        N_("Or ask for another GPU type (--gres=gpu:TYPE:1)."),
        _RETRY,
        _CHECK,
    ),
    "gpu_fault": (N_("Tell your administrators: a GPU of {nodes} needs to be looked at (job {job}, ended {end})."), _AVOID),
    "filesystem": (
        N_("Tell your administrators: file system and nodes {nodes}, {end}."),
        N_("Check what was being written then: files may be cut off."),
        _AGAIN,
    ),
    "fabric": (N_("Tell your administrators: the network between {nodes}, {end}."), _AVOID),
    "nccl": (
        N_("Look for the rank that stopped first: the others only waited for it. An error or a kill for memory there is the cause."),
        N_("If none stopped, run once with NCCL_DEBUG=INFO and TORCH_NCCL_TRACE_BUFFER_SIZE=2000 to see where they wait."),
        N_("If it is always the same node, tell your administrators: nodes {nodes}."),
        _RETRY,
    ),
    "checkpoint": (
        N_("Go back to the checkpoint before it; the last one was cut off or is of another version."),
        N_("Save to a new file and rename it when it is whole, so that a kill leaves the old one."),
        _RETRY,
    ),
    "nan": (
        N_("Go back to a checkpoint before it, with a smaller learning rate or clipped gradients; check the data around that step."),
        _RETRY,
    ),
    "missing_file": (
        N_("See that the file is there as the job sees it: srun ls -l FILE (paths are relative to the working directory)."),
        _RETRY,
        _CHECK,
    ),
    "ulimit": (N_("Raise the limit in the script (ulimit -n 65536), or open fewer files, workers or threads at once."), _RETRY),
    "dos_lines": (N_("Turn the line ends: sed -i 's/\\r$//' SCRIPT"), _CHECK),
    "own_timeout": (N_("The script itself sets a time limit (timeout): raise it there, not in Slurm."), _RETRY),
    "request": (N_("An srun in the script asks for more than the job has: compare its options with the #SBATCH lines."), _RETRY, _CHECK),
    "refused": (N_("See what can never start in the request: queuecast check SCRIPT"), _RETRY),
    "launch": (_TELL_NODE, _AGAIN),
    "signal_53": (
        N_("The folder of --output and --chdir has to be there on the nodes before the job starts: mkdir -p FOLDER"),
        _RETRY,
        _CHECK,
    ),
    "status_127": (
        N_("A command of the script is not found on the node: load its module or set PATH in the script."),
        N_("Try it in a short job: srun --pty bash, then: command -v NAME"),
        _RETRY,
        _CHECK,
    ),
    "status_126": (
        N_("A program of the script cannot be run: chmod +x FILE; and see that it is built for these nodes: file FILE"),
        _RETRY,
        _CHECK,
    ),
    "killed": (
        N_("Something killed it, most often the kernel for memory: ask for more than the {memory} it had, or see what it used."),
        N_("If memory was plenty, tell your administrators: they see the node's kernel log ({nodes}, {end})."),
        _RETRY,
        _CHECK,
    ),
    "nested": (
        N_("Send it from a login node, or clear what the outer job left: unset ${{!SLURM_@}} before sbatch or srun."),
        _RETRY,
        _CHECK,
    ),
    "requeued": (N_("Nothing: it is in the queue again. See when it starts: queuecast when {job}"),),
}


def steps_for(failure_class: FailureClass, key: str | None, values: Mapping[str, str]) -> tuple[str, ...]:
    """Steps for a class; ``key`` (a pattern's advice, or one of this module) has its own where there are some."""
    found = OF_KEY.get(key or "", OF_CLASS[failure_class])
    return tuple(_(text).format_map(_Values(values)) for text in found)


class _Values(dict[str, str]):
    def __missing__(self, key: str) -> str:
        return "?"
