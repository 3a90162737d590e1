"""The second half of the labelled cases, written when the classifier stood: docs/failures.md tells how it did at first sight.

All invented. ``expected`` was set before the classifier was asked.
"""

from __future__ import annotations

from tests.unit.answers.failure_case import Case, G, step

_OLD, _NEW = "20.11", "25.11"
_NEVER_RAN = {"start": None, "node_list": None, "nodes_alloc": 0, "elapsed_s": 0}
_LIGHTNING = "Epoch 3:  41%|####      | 812/1980 [10:22<14:55,  1.30it/s, v_num=4, train/loss=0.731]\r" * 40

SECOND: tuple[Case, ...] = (
    # user_code
    Case(
        "index error under hydra",
        "user_code",
        log="Error executing job with overrides: ['model=big']\nTraceback (most recent call last):\n"
        '  File "/w/run.py", line 3, in main\n    x = xs[4]\n'
        "IndexError: list index out of range\n\n"
        "Set the environment variable HYDRA_FULL_ERROR=1 for a complete stack trace.\n",
    ),
    Case(
        "custom exception",
        "user_code",
        log='Traceback (most recent call last):\n  File "/w/fit.py", line 31, in fit\n'
        "    raise mylib.errors.BadConfig('lr must be > 0')\nmylib.errors.BadConfig: lr must be > 0\n",
    ),
    Case(
        "julia",
        "user_code",
        log="ERROR: LoadError: UndefVarError: `weights` not defined\nStacktrace:\n [1] top-level scope\n"
        "   @ ~/sim.jl:4\nin expression starting at /home/u/sim.jl:4\n",
    ),
    Case("matlab", "user_code", log="{Undefined function or variable 'datta'.\n\nError in run_model (line 12)\n    y = datta(1);\n}\n"),
    Case(
        "assert in C",
        "user_code",
        {"exit_code": 134},
        version=_NEW,
        log="sim: mesh.c:211: refine: Assertion `n > 0' failed.\nslurm_script: line 7: 990 Aborted (core dumped) ./sim\n",
    ),
    Case("134 printed as 6, empty log", "user_code", {"exit_code": 6}, log=""),
    Case(
        "floating point exception as 136",
        "user_code",
        {"exit_code": 136},
        version=_NEW,
        log="slurm_script: line 5: 1123 Floating point exception(core dumped) ./cfd\n",
    ),
    Case("unbound variable", "user_code", log="/var/spool/slurmd/job00007/slurm_script: line 22: DATA_DIR: unbound variable\n"),
    Case(
        "compile error",
        "user_code",
        {"exit_code": 2},
        log="main.cpp:14:3: error: 'foo' was not declared in this scope\nmake: *** [Makefile:8: main.o] Error 1\n",
    ),
    Case("heap corruption", "user_code", {"exit_code": 0, "exit_signal": 6}, log="free(): invalid pointer\n"),
    Case(
        "ansys style own error",
        "user_code",
        {"exit_code": 8},
        log="*** ERROR ***  The solution diverged at iteration 41. Reduce the time step.\n",
    ),
    Case(
        "illegal access in a kernel",
        "user_code",
        log="terminate called after throwing an instance of 'c10::Error'\n"
        "  what():  CUDA error: an illegal memory access was encountered\n",
    ),
    Case(
        "rust panic",
        "user_code",
        {"exit_code": 101},
        log="thread 'main' panicked at src/main.rs:40:17:\nindex out of bounds: the len is 3 but the index is 3\n",
    ),
    Case(
        "pickle cut off",
        "user_code",
        log='Traceback (most recent call last):\n  File "/w/r.py", line 9, in <module>\n    m = pickle.load(f)\n'
        "EOFError: Ran out of input\n",
    ),
    Case("java null", "user_code", log='Exception in thread "main" java.lang.NullPointerException\n\tat a.B.c(B.java:10)\n'),
    Case(
        "a handled warning before",
        "user_code",
        log="WARNING: wandb could not connect: Connection refused, retrying\n"
        + "step ok\n" * 400
        + 'Traceback (most recent call last):\n  File "a.py", line 2\nZeroDivisionError: division by zero\n',
    ),
    Case(
        "script masks a crash of its step",
        "user_code",
        {"exit_code": 1, "derived_exit_code": 0, "derived_exit_signal": 11},
        steps=(step("0", "FAILED", 0, 11), step("batch", "FAILED", 1)),
    ),
    Case(
        "snakemake",
        "user_code",
        log="Error in rule align:\n    jobid: 3\n    output: out.bam\nCalledProcessError in file Snakefile, line 9:\n"
        "Command 'set -euo pipefail; bwa mem' returned non-zero exit status 1.\n",
    ),
    Case(
        "gromacs",
        "user_code",
        log="-------------------------------------------------------\nProgram:     gmx mdrun\nFatal error:\n"
        "Step 120: The total potential energy is nan, which is not finite.\n",
    ),
    Case(
        "forrtl end of file", "user_code", {"exit_code": 24}, log="forrtl: severe (24): end-of-file during read, unit 11, file /w/in.dat\n"
    ),
    # oom_host
    Case(
        "newest Slurm, OOM with exit 0",
        "oom_host",
        {"state": "OUT_OF_MEMORY", "exit_code": 0, "exit_signal": 0},
        version=_NEW,
        log="slurmstepd: error: Detected 1 oom_kill event in StepId=7.0. Some of the step tasks have been OOM Killed.\n",
    ),
    Case(
        "polars killed, srun tells",
        "oom_host",
        {"exit_code": 137, "max_rss_bytes": 15 * G},
        version=_NEW,
        log="reading parquet\nsrun: error: gpu07: task 0: Killed\n",
    ),
    Case(
        "bash tells Killed, below 25.11",
        "oom_host",
        {"exit_code": 9},
        version="24.05",
        log="/var/spool/slurmd/job7/slurm_script: line 14: 31337 Killed                  python prep.py\n",
    ),
    Case(
        "java heap",
        "oom_host",
        log='Exception in thread "main" java.lang.OutOfMemoryError: Java heap space\n\tat java.base/java.util.Arrays.copyOf\n',
    ),
    Case("fork", "oom_host", log="OSError: [Errno 12] Cannot allocate memory\n"),
    Case(
        "kernel log copied",
        "oom_host",
        {"exit_code": 0, "exit_signal": 9},
        log="[8123.1] Memory cgroup out of memory: Killed process 4242 (python) total-vm:90000000kB, anon-rss:16700000kB\n",
    ),
    Case(
        "ray",
        "oom_host",
        log="ray.exceptions.OutOfMemoryError: Task was killed due to the node running low on memory.\n"
        "Memory on the node (IP: 10.0.0.7) was 121.5GB / 128.0GB\n",
    ),
    Case(
        "step level OOM, script goes on and fails",
        "oom_host",
        {"exit_code": 1},
        steps=(step("0", "OUT_OF_MEMORY", 0, 125), step("batch", "FAILED", 1)),
    ),
    Case(
        "old Slurm step limit",
        "oom_host",
        {"state": "CANCELLED", "cancelled_by": 64030, "exit_code": 0, "exit_signal": 9},
        version="17.11",
        log="slurmstepd: error: Exceeded job memory limit at some point.\n",
    ),
    Case(
        "joblib",
        "oom_host",
        log="joblib.externals.loky.process_executor.TerminatedWorkerError: A worker process managed by the executor "
        "was unexpectedly terminated. This could be caused by a segmentation fault while calling the function or "
        "by an excessive memory usage causing the Operating System to kill the worker.\n",
    ),
    Case("matlab out of memory", "oom_host", log='Error using zeros\nOut of memory. Type "help memory" for your options.\n'),
    # oom_gpu
    Case(
        "torch 1.8 text",
        "oom_gpu",
        log="RuntimeError: CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 15.78 GiB total capacity; 14.02 "
        "GiB already allocated)\n",
    ),
    Case(
        "behind a progress bar",
        "oom_gpu",
        log=_LIGHTNING + '\nTraceback (most recent call last):\n  File "x.py", line 1, in <module>\n'
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.12 GiB.\n" + _LIGHTNING + "\n",
    ),
    Case(
        "vllm",
        "oom_gpu",
        log="ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when initializing the engine.\n",
    ),
    Case(
        "rocm",
        "oom_gpu",
        log="torch.OutOfMemoryError: HIP out of memory. Tried to allocate 4.00 GiB. GPU 0 has a total capacity of 64.00 GiB\n",
    ),
    Case(
        "cupy",
        "oom_gpu",
        log="cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,589,934,592 bytes (allocated so far: 31,000,000,000 bytes).\n",
    ),
    Case(
        "driver API",
        "oom_gpu",
        {"exit_code": 134},
        version=_NEW,
        log="F0520 12:00:00.123456  4242 cuda_driver.cc:412] failed call to cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY: out of memory\n",
    ),
    Case("gromacs on a small card", "oom_gpu", log="Fatal error:\ncudaMalloc failed: cudaErrorMemoryAllocation: out of memory\n"),
    Case(
        "lammps kokkos",
        "oom_gpu",
        log="terminate called after throwing an instance of 'Kokkos::Experimental::RawMemoryAllocationFailure'\n"
        '  what():  Kokkos failed to allocate memory for label "x".  Allocation using MemorySpace named '
        '"Cuda" failed with the following error:  The allocation mechanism was cudaMalloc() out of memory.\n',
    ),
    # time_limit
    Case(
        "array task timed out after restarts",
        "time_limit",
        {"state": "TIMEOUT", "exit_code": 0, "exit_signal": 0, "array_job_id": 7, "array_task": 3, "elapsed_s": 3600},
    ),
    Case("USR1 kills an unprepared script", "time_limit", {"exit_code": 138, "elapsed_s": 3560}, version=_NEW),
    Case(
        "cancelled by Slurm's user at the limit",
        "time_limit",
        {"state": "CANCELLED", "cancelled_by": 0, "exit_code": 0, "exit_signal": 15, "elapsed_s": 3630},
        log="slurmstepd: error: *** JOB 7 ON gpu07 CANCELLED AT 2026-05-20T12:00:00 DUE TO TIME LIMIT ***\n",
    ),
    Case(
        "timed out while NCCL hung",
        "time_limit",
        {"state": "TIMEOUT", "exit_code": 0, "elapsed_s": 3606},
        log="[E ProcessGroupNCCL.cpp:828] [Rank 2] Watchdog caught collective operation timeout\n",
    ),
    Case("reason only", "time_limit", {"reason": "TimeLimit", "exit_code": 0, "exit_signal": 15, "elapsed_s": 3601}),
    # environment
    Case(
        "import of a compiled part",
        "environment",
        log="ImportError: /lib64/libstdc++.so.6: version `GLIBCXX_3.4.29' not found (required by /env/lib/python3.11/site-packages/x.so)\n",
    ),
    Case(
        "command not found, script goes on",
        "environment",
        {"exit_code": 1},
        log="slurm_script: line 3: module: command not found\nslurm_script: line 5: mpirun: command not found\n",
    ),
    Case("Tcl modules", "environment", log="ERROR: Unable to locate a modulefile for 'gcc/14.1'\n"),
    Case(
        "quota, via HDF5",
        "environment",
        log="HDF5-DIAG: Error detected in HDF5 (1.14.0) thread 0:\n"
        "  #005: H5FDsec2.c line 808 in H5FD__sec2_write(): file write failed: errno = 122, error message = 'Disk "
        "quota exceeded'\n",
    ),
    Case("CUDA without a GPU", "environment", {"gpus_alloc": 0}, log="RuntimeError: No CUDA GPUs are available\n"),
    Case("no kernel image", "environment", log="RuntimeError: CUDA error: no kernel image is available for execution on the device\n"),
    Case("FlexNet", "environment", log="Feature:       mech_1\nFlexNet Licensing error:-5,357\nNo such feature exists.\n"),
    Case("windows line ends", "environment", {"exit_code": 127}, log="slurm_script: line 2: $'\\r': command not found\n"),
    Case(
        "container image",
        "environment",
        {"exit_code": 255},
        log="FATAL:   could not open image /home/u/img.sif: failed to retrieve path for /home/u/img.sif: lstat "
        "/home/u/img.sif: no such file or directory\n",
    ),
    Case(
        "hub without token",
        "environment",
        log="OSError: You are trying to access a gated repo.\n"
        "Make sure to have access to it at https://hub.example/m.\n401 Client Error. (Request ID: Root=1-0)\n",
    ),
    Case(
        "wandb login", "environment", log="wandb.errors.UsageError: api_key not configured (no-tty). call wandb.login(key=[your_api_key])\n"
    ),
    Case(
        "git in the job",
        "environment",
        {"exit_code": 128},
        log="fatal: unable to access 'https://git.example/x.git/': Could not resolve host: git.example\n",
        version=_NEW,
    ),
    Case("permission on scratch", "environment", log="PermissionError: [Errno 13] Permission denied: '/scratch/other/out.csv'\n"),
    Case(
        "illegal instruction",
        "environment",
        {"exit_code": 132},
        version=_NEW,
        log="slurm_script: line 8: 5150 Illegal instruction     (core dumped) ./app\n",
    ),
    Case(
        "bus error by full /dev/shm",
        "environment",
        {"exit_code": 135},
        version=_NEW,
        log="slurm_script: line 8: 5150 Bus error               (core dumped) python load.py\n",
    ),
    Case(
        "pmix",
        "environment",
        log='The application appears to have been direct launched using "srun",\n'
        "but OMPI was not built with SLURM's PMI support and therefore cannot\nexecute.\n",
    ),
    Case("working directory gone", "environment", {"exit_code": 0, "exit_signal": 53, "elapsed_s": 0}, version=_NEW),
    Case("R package", "environment", log="Error in library(terra) : there is no package called 'terra'\nExecution halted\n"),
    # node
    Case("Xid", "node", {"exit_code": 0, "exit_signal": 9}, log="NVRM: Xid (PCI:0000:3b:00): 79, pid=4242, GPU has fallen off the bus.\n"),
    Case("drained for a bad GPU while it ran", "node", events=((-3, "DRAIN", "gpu3 xid 63 row remap failure"),)),
    Case("boot failed", "node", {"state": "BOOT_FAIL", "elapsed_s": 0}),
    Case(
        "srun lost a node",
        "node",
        {"exit_code": 0, "exit_signal": 9},
        log="srun: error: Node failure on gpu07\n"
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
        "slurmstepd: error: *** STEP 7.0 ON gpu06 CANCELLED AT 2026-05-20T12:00:00 DUE TO NODE FAILURE, SEE "
        "SLURMCTLD LOG FOR DETAILS ***\n",
    ),
    Case(
        "machine check",
        "node",
        {"exit_code": 0, "exit_signal": 7},
        log="kernel: mce: [Hardware Error]: Machine check events logged\nBus error (core dumped)\n",
    ),
    Case("busy GPU", "node", log="RuntimeError: CUDA error: all CUDA-capable devices are busy or unavailable\n"),
    # platform
    Case("Lustre gone", "platform", log="OSError: [Errno 108] Cannot send after transport endpoint shutdown: '/lustre/u/x.bin'\n"),
    Case("NFS home stale", "platform", {"exit_code": 1, "elapsed_s": 3}, log="-bash: /home/u/.bashrc: Stale file handle\n"),
    Case(
        "infiniband",
        "platform",
        log="gpu07:4242:4300 [2] NCCL WARN NET/IB : Got completion from peer 10.1.0.8<4242> with error 12, opcode 0, "
        "len 0, vendor err 129\n"
        "ncclSystemError: System call (e.g. socket, malloc) or external library call failed or device error.\n",
    ),
    Case(
        "authentication in srun",
        "platform",
        {"elapsed_s": 20},
        log="srun: error: Unable to confirm allocation for job 7: Zero Bytes were transmitted or received\n"
        "srun: Check SLURM_JOB_ID environment variable. Expired or invalid job 7\n",
    ),
    Case("launch failed, old reason", "platform", {"reason": "SystemFailure", "exit_code": 0, "exit_signal": 0, "elapsed_s": 0}),
    # the rest
    Case(
        "by an operator",
        "scheduler_cancel",
        {"state": "CANCELLED", "cancelled_by": 1500, "exit_code": 0, "exit_signal": 15},
        log="step 1\n",
    ),
    Case(
        "inactive interactive job", "scheduler_cancel", {"state": "CANCELLED", "cancelled_by": 0, "reason": "InactiveLimit", "exit_code": 0}
    ),
    Case("deadline while running", "scheduler_cancel", {"state": "DEADLINE", "exit_code": 0, "exit_signal": 15}),
    Case(
        "owner cancels a job full of errors",
        "user_cancel",
        {"state": "CANCELLED", "cancelled_by": 1000, "exit_code": 0, "exit_signal": 15},
        log="ERROR: loss is nan\nTraceback (most recent call last):\nValueError: x\n",
    ),
    Case("owner cancels while it waits", "user_cancel", {"state": "CANCELLED", "cancelled_by": 1000, **_NEVER_RAN, "exit_code": 0}),
    Case("ctrl-c", "user_cancel", {"exit_code": 130}, version=_NEW, log="^C\nKeyboardInterrupt\n"),
    Case(
        "preempted by QOS",
        "preempted",
        {"state": "PREEMPTED", "exit_code": 0, "exit_signal": 15, "reason": "QOSGrpGRES"},
        version=_OLD,
        log="slurmstepd: error: *** JOB 7 ON gpu07 CANCELLED AT 2026-05-20T12:00:00 DUE TO PREEMPTION ***\n",
    ),
    Case(
        "preempted, the log shows a crash on TERM",
        "preempted",
        {"state": "PREEMPTED", "exit_code": 1},
        log="Traceback (most recent call last):\nRuntimeError: received signal 15\n",
    ),
    Case("never satisfied", "dependency", {"state": "CANCELLED", "cancelled_by": 0, "reason": "DependencyNeverSatisfied", **_NEVER_RAN}),
    Case(
        "hostile bytes and nothing else",
        "unknown",
        {"exit_code": 0, "exit_signal": 0},
        log=b"\x1b]0;owned\x07\x1b[2J\xff\xfe\x9b31m <script>alert(1)</script> =cmd|' /C calc'!A0\n",
    ),
    Case(
        "hostile words of others' errors, the state stands",
        "time_limit",
        {"state": "TIMEOUT", "exit_code": 0, "elapsed_s": 3600},
        log="\x1b[31mCUDA out of memory\x1b[0m No space left on device DUE TO PREEMPTION\n" * 3,
    ),
)
