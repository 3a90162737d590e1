"""The first half of the labelled cases: the classifier's numbers were set on these. All invented."""

from __future__ import annotations

from tests.unit.answers.failure_case import Case, G, step

_TRACE = 'Traceback (most recent call last):\n  File "train.py", line 88, in <module>\n    main()\n'

FIRST: tuple[Case, ...] = (
    # user_code
    Case("a key error", "user_code", log=_TRACE + "KeyError: 'labels'\n"),
    Case(
        "shapes that do not fit",
        "user_code",
        log="epoch 1\n" + _TRACE + "RuntimeError: mat1 and mat2 shapes cannot be multiplied (64x512 and 256x10)\n"
        "srun: error: gpu07: task 0: Exited with exit code 1\n",
    ),
    Case("exit code 3, no log", "user_code", {"exit_code": 3}),
    Case("segmentation fault by signal", "user_code", {"exit_code": 0, "exit_signal": 11}, log="step 100 ok\n"),
    Case(
        "segmentation fault as 139",
        "user_code",
        {"exit_code": 139},
        version="25.11",
        log="slurm_script: line 9: 4711 Segmentation fault      (core dumped) ./solver\n",
    ),
    Case("segmentation fault printed as 11", "user_code", {"exit_code": 11}, log=None),
    Case(
        "abort",
        "user_code",
        {"exit_code": 6},
        log="terminate called after throwing an instance of 'std::out_of_range'\n  what():  map::at\nAborted (core dumped)\n",
    ),
    Case(
        "wrong arguments",
        "user_code",
        {"exit_code": 2},
        log="usage: train.py [-h] --data DATA\ntrain.py: error: unrecognized arguments: --batchsize\n",
    ),
    Case(
        "shell mistake",
        "user_code",
        {"exit_code": 2},
        log="/var/spool/slurmd/job7/slurm_script: line 12: syntax error near unexpected token `done'\n",
    ),
    Case("nan", "user_code", log="step 900 loss=2.1\nstep 901 loss=nan\nFloatingPointError: loss is NaN, stopping\n"),
    Case(
        "corrupt checkpoint",
        "user_code",
        log="resuming from last.ckpt\n"
        + _TRACE
        + "RuntimeError: PytorchStreamReader failed reading zip archive: failed finding central directory\n",
    ),
    Case(
        "state dict",
        "user_code",
        log=_TRACE + 'RuntimeError: Error(s) in loading state_dict for Net:\n\tMissing key(s) in state_dict: "head.weight"\n',
    ),
    Case(
        "device assert",
        "user_code",
        log="/pytorch/aten/src/ATen/native/cuda/Loss.cu:250: nll_loss: block: [0,0,0], thread: [3,0,0] Assertion `t "
        ">= 0 && t < n_classes` failed.\n" + _TRACE + "RuntimeError: CUDA error: device-side assert triggered\n",
    ),
    Case("Fortran", "user_code", {"exit_code": 24}, log="forrtl: severe (174): SIGSEGV, segmentation fault occurred\n"),
    Case(
        "MPI abort",
        "user_code",
        {"exit_code": 5},
        log="rank 3: bad input line 7\nMPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD\nwith errorcode 5.\n",
    ),
    Case("requeue by exit code", "user_code", {"state": "REQUEUED", "exit_code": 98}, steps=(step("batch", code=98),)),
    Case("missing data file", "user_code", log=_TRACE + "FileNotFoundError: [Errno 2] No such file or directory: 'data/train.csv'\n"),
    Case("R", "user_code", log="Error in lm.fit(x, y) : NA/NaN/Inf in 'y'\nCalls: lm -> lm.fit\nExecution halted\n"),
    # oom_host
    Case("Slurm says OOM", "oom_host", {"state": "OUT_OF_MEMORY", "exit_code": 0, "exit_signal": 125}),
    Case(
        "completed, a step was killed for memory",
        "oom_host",
        {"state": "COMPLETED", "exit_code": 0},
        steps=(step("0", "OUT_OF_MEMORY", 0, 125), step("batch", "COMPLETED", 0)),
    ),
    Case("signal 9 at the limit", "oom_host", {"exit_code": 0, "exit_signal": 9, "max_rss_bytes": int(15.9 * G)}),
    Case("137 with memory at the limit", "oom_host", {"exit_code": 137, "max_rss_bytes": int(15.6 * G)}, version="25.11"),
    Case("137 printed as 9", "oom_host", {"exit_code": 9, "max_rss_bytes": int(15.8 * G)}),
    Case(
        "slurmstepd's line",
        "oom_host",
        {"exit_code": 9},
        log="loading\nslurmstepd: error: Detected 2 oom_kill events in StepId=7.batch. Some of the step tasks have been OOM Killed.\n",
    ),
    Case(
        "older Slurm's line",
        "oom_host",
        {"state": "CANCELLED", "cancelled_by": 0, "exit_code": 0, "exit_signal": 15},
        version="17.11",
        log="slurmstepd: error: Job 7 exceeded memory limit (17825792 > 16777216), being killed\n"
        "slurmstepd: error: *** JOB 7 ON gpu07 CANCELLED AT 2026-05-20T12:00:00 ***\n",
    ),
    Case(
        "Python's MemoryError",
        "oom_host",
        log=_TRACE + "numpy.core._exceptions._ArrayMemoryError: Unable to allocate 48.0 GiB for an array with shape (80000, 80000)\n",
    ),
    Case(
        "bad_alloc",
        "oom_host",
        {"exit_code": 6},
        log="terminate called after throwing an instance of 'std::bad_alloc'\n  what():  std::bad_alloc\nAborted (core dumped)\n",
    ),
    Case("loader worker killed", "oom_host", log=_TRACE + "RuntimeError: DataLoader worker (pid 2231) is killed by signal: Killed.\n"),
    Case("R's vector", "oom_host", log="Error: cannot allocate vector of size 7.5 Gb\nExecution halted\n"),
    # oom_gpu
    Case(
        "torch",
        "oom_gpu",
        log=_TRACE + "torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity "
        "of 39.39 GiB\n",
    ),
    Case(
        "newer torch, many ranks",
        "oom_gpu",
        log=_TRACE + "[rank3]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 160.00 MiB.\n"
        "[rank0]: torch.distributed.DistBackendError: NCCL communicator was aborted on rank 0.\n"
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: train.py FAILED\n"
        "srun: error: gpu07: task 0: Exited with exit code 1\n",
    ),
    Case(
        "tensorflow",
        "oom_gpu",
        log="tensorflow.python.framework.errors_impl.ResourceExhaustedError: OOM when allocating tensor with "
        "shape[256,64,112,112] on /device:GPU:0 by allocator GPU_0_bfc\n",
    ),
    Case(
        "jax",
        "oom_gpu",
        log=_TRACE + "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
        "34359738368 bytes.\n",
    ),
    Case("cublas", "oom_gpu", log=_TRACE + "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`\n"),
    Case(
        "llama.cpp",
        "oom_gpu",
        log="ggml_backend_cuda_buffer_type_alloc_buffer: allocating 8000.00 MiB on device 0: cudaMalloc failed: out of memory\n",
    ),
    # time_limit
    Case("timeout", "time_limit", {"state": "TIMEOUT", "exit_code": 0, "elapsed_s": 3610}),
    Case("caught the warning, exit 143", "time_limit", {"exit_code": 143, "elapsed_s": 3590}, version="25.11"),
    Case("143 printed as 15", "time_limit", {"exit_code": 15, "elapsed_s": 3602}),
    Case("CPU time limit", "time_limit", {"exit_code": 0, "exit_signal": 24}),
    Case(
        "log says so, state does not",
        "time_limit",
        {"exit_code": 0, "exit_signal": 15, "elapsed_s": 3605},
        log="step 10\nslurmstepd: error: *** JOB 7 ON gpu07 CANCELLED AT 2026-05-20T12:00:00 DUE TO TIME LIMIT ***\n",
    ),
    # environment
    Case("127 alone", "environment", {"exit_code": 127}),
    Case("126", "environment", {"exit_code": 126}, log="slurm_script: line 4: ./run.sh: Permission denied\n"),
    Case("no module named", "environment", log=_TRACE + "ModuleNotFoundError: No module named 'einops'\n"),
    Case("lmod", "environment", log='Lmod has detected the following error: The following module(s) are unknown: "cuda/13.9"\n'),
    Case(
        "shared library",
        "environment",
        {"exit_code": 127},
        log="./a.out: error while loading shared libraries: libfftw3.so.3: cannot open shared object file: No such file or directory\n",
    ),
    Case("quota", "environment", log=_TRACE + "OSError: [Errno 122] Disk quota exceeded: '/home/u/ckpt/last.pt'\n"),
    Case(
        "no space",
        "environment",
        log="tar: out/part3: Cannot write: No space left on device\ntar: Exiting with failure status due to previous errors\n",
        row={"exit_code": 2},
    ),
    Case(
        "shared memory",
        "environment",
        log=_TRACE + "RuntimeError: DataLoader worker (pid 91) is killed by signal: Bus error. It is possible that "
        "dataloader's workers are out of shared memory.\n",
    ),
    Case("licence", "environment", log="License checkout failed.\nLicense Manager Error -4: maximum number of users reached\n"),
    Case(
        "gated model",
        "environment",
        log="huggingface_hub.errors.GatedRepoError: 401 Client Error. Cannot access gated repo for url "
        "https://hub.example/m/config.json.\n",
    ),
    Case(
        "no internet",
        "environment",
        log="requests.exceptions.ConnectionError: HTTPSConnectionPool(host='hub.example', port=443): Max retries "
        "exceeded (Caused by NewConnectionError: Temporary failure in name resolution)\n",
    ),
    Case("driver too old", "environment", log="RuntimeError: The NVIDIA driver on your system is too old (found version 11040).\n"),
    Case("output folder missing", "environment", {"exit_code": 0, "exit_signal": 53, "elapsed_s": 1}),
    Case(
        "conda",
        "environment",
        log="CommandNotFoundError: Your shell has not been properly configured to use 'conda activate'.\nRun 'conda init' before.\n",
    ),
    # node
    Case("node fail", "node", {"state": "NODE_FAIL", "exit_code": 1}, version="24.11"),
    Case("ECC", "node", log=_TRACE + "RuntimeError: CUDA error: uncorrectable ECC error encountered\n"),
    Case(
        "GPU lost",
        "node",
        log="Unable to determine the device handle for GPU 0000:3B:00.0: GPU is lost.  Reboot the system to recover this GPU\n",
    ),
    Case("node went down", "node", {"exit_code": 0, "exit_signal": 9}, events=((-0.5, "DOWN*", "Not responding"),)),
    Case("others died too", "node", {"elapsed_s": 40}, peers=True),
    Case("NVML mismatch", "node", log="Failed to initialize NVML: Driver/library version mismatch\n"),
    # platform
    Case("stale handle", "platform", log="cp: cannot stat '/scratch/u/x': Stale file handle\n"),
    Case("I/O error", "platform", log=_TRACE + "OSError: [Errno 5] Input/output error: '/lustre/u/shard-7.tar'\n"),
    Case("launch failure", "platform", {"reason": "JobLaunchFailure", "exit_code": 1, "elapsed_s": 0}),
    Case(
        "munge",
        "platform",
        log="srun: error: Task launch for StepId=7.0 failed on node gpu07: Job credential expired\n"
        "srun: error: Application launch failed: Job credential expired\n",
    ),
    # wordings met in the wild after both halves were written
    Case("no device is visible", "environment", log="[error] device cuda:1 is invalid: there are 0 visible CUDA devices\n"),
    Case("the adapter does not come up", "node", log="NVRM: RmInitAdapter failed! (0x22:0x56:884)\n"),
    Case("Slurm's own configuration is not found", "platform", log="srun: error: fetch_config: DNS SRV lookup failed\n"),
    Case("no MPI of that kind", "environment", log="srun: error: invalid MPI type 'pmix_v9', --mpi=list for acceptable types\n"),
    Case(
        "a library that told what it did without",
        "user_code",
        log="n1:7:7 [0] NCCL INFO NET/Plugin: libnccl-net.so: cannot open shared object file: No such file or directory\n"
        "2026-05-20 11:59:00.1: W tensorflow/dso_loader.cc:64] Could not load dynamic library 'libcudart.so.9'\n"
        + _TRACE
        + "KeyError: 3\n",
    ),
    Case(
        "sent from inside a job",
        "environment",
        log="srun: error: CPU binding outside of job step allocation, allocated CPUs are: 0x3.\n"
        "srun: error: Task launch for StepId=7.0 failed on node gpu07: Unable to satisfy cpu bind request\n",
    ),
    # scheduler_cancel, user_cancel, preempted, dependency, unknown
    Case("cancelled by root", "scheduler_cancel", {"state": "CANCELLED", "cancelled_by": 0, "exit_code": 0, "exit_signal": 15}),
    Case("deadline", "scheduler_cancel", {"state": "DEADLINE", "start": None, "node_list": None, "nodes_alloc": 0, "elapsed_s": 0}),
    Case("refused request", "scheduler_cancel", {"start": None, "node_list": None, "nodes_alloc": 0, "elapsed_s": 0}),
    Case("cancelled by its owner", "user_cancel", {"state": "CANCELLED", "cancelled_by": 1000, "exit_code": 0, "exit_signal": 15}),
    Case("preempted", "preempted", {"state": "PREEMPTED", "exit_code": 0, "exit_signal": 15}),
    Case(
        "preempted and put back",
        "preempted",
        {"state": "REQUEUED", "exit_code": 0},
        log="slurmstepd: error: *** JOB 7 ON gpu07 CANCELLED AT 2026-05-20T12:00:00 DUE TO PREEMPTION ***\n",
    ),
    Case(
        "dependency",
        "dependency",
        {
            "state": "CANCELLED",
            "reason": "DependencyNeverSatisfied",
            "start": None,
            "node_list": None,
            "nodes_alloc": 0,
            "exit_code": None,
            "exit_signal": None,
        },
    ),
    Case("failed with nothing said", "unknown", {"exit_code": 0}),
)
