"""Lines of a log that tell of what stands around a program: memory, time, modules, paths, space, licences, connections."""

from __future__ import annotations

from queuecast.i18n import N_
from queuecast.reasons.logpatterns import Pattern, pattern

AROUND: tuple[Pattern, ...] = (
    # Memory of the GPU.
    pattern(
        "cuda_oom",
        N_("The GPU's memory was full"),
        (
            "out of memory",
            "outofmemory",
            "out_of_memory",
            "oom when allocating",
            "resource_exhausted",
            "alloc_failed",
            "cuda_error_out",
            "no available memory for the cache",
            "cudaerrormemoryallocation",
        ),
        r"(cuda|hip|gpu|cudnn|cublas|xla|device|xpu|torch)\S* ?.{0,60}(out[ _]of[ _]memory|outofmemory)|"
        r"torch\.\S*outofmemoryerror|"
        r"cudaerrormemoryallocation|cu(da|blas|dnn|solver|sparse|fft)_\w*(alloc_failed|out_of_memory)|"
        r"resource_exhausted: (out of memory|oom|failed "
        r"to allocate)|oom when allocating tensor.{0,300}gpu|out of memory.{0,80}\b(gpu|cuda|device)\b|"
        r"no available memory for the cache blocks",
        oom_gpu=4.5,
    ),
    pattern(
        "opencl_oom",
        N_("The GPU's memory was full"),
        ("cl_mem_object_allocation_failure", "vk::outofdevicememory", "hiperroroutofmemory"),
        oom_gpu=4.0,
        advice="cuda_oom",
    ),
    pattern(
        "shm_full",
        N_("Shared memory (/dev/shm) was full"),
        ("out of shared memory", "insufficient shared memory", "/dev/shm"),  # noqa: S108  # a word to look for
        r"(out of|insufficient|not enough|no space).{0,80}(shared memory|/dev/shm)|/dev/shm.{0,80}(no space|full|too small)",
        environment=4.2,
        oom_host=0.8,
        advice="shm",
    ),
    # Main memory.
    pattern(
        "kernel_oom",
        N_("The kernel killed a process for memory"),
        ("out of memory: kill", "memory cgroup out of memory", "oom-killer", "oom_reaper", "oom killer"),
        oom_host=4.0,
        advice="host_oom",
    ),
    pattern(
        "worker_killed",
        N_("A worker was killed, most often for memory"),
        ("killed by signal: killed", "worker killed", "excessive memory usage", "running low on memory", "worker was restarted more"),
        r"killed by signal: killed|worker killed|excessive memory usage|running low on memory|"
        r"out of memory.*worker",
        oom_host=2.6,
        advice="host_oom",
    ),
    pattern(
        "java_heap",
        N_("The memory that Java may use was full"),
        ("java heap space", "gc overhead limit", "java.lang.outofmemory"),
        oom_host=2.4,
        user_code=0.8,
        advice="java_heap",
    ),
    pattern(
        "host_oom",
        N_("Memory could not be had"),
        (
            "memoryerror",
            "bad_alloc",
            "cannot allocate memory",
            "unable to allocate",
            "cannot allocate vector",
            "virtual memory exhausted",
            "outofmemoryerror()",
            "oom when allocating",
            "not enough memory",
            "insufficient virtual memory",
            "out of memory.",
        ),
        r"\bmemoryerror\b|std::bad_alloc|cannot allocate memory|unable to allocate [\d.]+ ?[kmgtp]i?b|"
        r"cannot allocate vector of size|virtual memory "
        r"exhausted|^(error: )?outofmemoryerror\(\)|oom when allocating|(not enough|insufficient) (virtual |host |"
        r"system )?memory|^(error.{0,40})?out of memory\.",
        oom_host=3.2,
    ),
    # Time.
    pattern(
        "own_timeout",
        N_("A time limit inside the script ended it"),
        ("timeout: sending signal", "subprocess.timeoutexpired"),
        user_code=1.5,
        time_limit=0.8,
        advice="own_timeout",
    ),
    # What stands around the program.
    pattern(
        "dos_lines",
        N_("The script has Windows line ends"),
        ("$'\\r'", "bad interpreter", "\\r: command not found"),
        r"\$?'?\\r'?: (command )?not found|\$'\\r'|bad interpreter.{0,60}\^M",
        environment=3.5,
    ),
    pattern(
        "lmod",
        N_("A module could not be loaded"),
        (
            "lmod has detected",
            "unable to locate a modulefile",
            "the following module(s) are unknown",
            "module: command not found",
            "module unknown",
            "these module(s) or extension(s) exist but cannot be loaded",
            "unable to load module",
        ),
        environment=3.6,
    ),
    pattern(
        "conda",
        N_("The conda environment was not found or not set up"),
        (
            "environmentnamenotfound",
            "could not find conda environment",
            "run 'conda init'",
            "conda: command not found",
            "environmentlocationnotfound",
            "condaerror",
        ),
        environment=3.6,
    ),
    pattern(
        "python_module",
        N_("A Python module was not found or could not be loaded"),
        ("modulenotfounderror", "importerror", "no module named", "cannot import name", "packagenotfounderror"),
        environment=3.4,
    ),
    pattern(
        "r_package",
        N_("A package was not found"),
        ("there is no package called", "package not found in current path", "argumenterror: package"),
        r"there is no package called|package not found in current path|argumenterror: package \S+ (not found|does not have)",
        environment=3.2,
    ),
    pattern(
        "shared_library",
        N_("A library was not found or has another version"),
        (
            "error while loading shared libraries",
            "cannot open shared object",
            "glibc_",
            "glibcxx_",
            "symbol lookup error",
            "undefined symbol",
            "libcudart",
            "could not load library",
        ),
        r"error while loading shared|cannot open shared object|version [`'\"]?(glibc|glibcxx|cxxabi)\w*|"
        r"symbol lookup error|undefined symbol|"
        r"could not load (dynamic )?library",
        environment=3.4,
    ),
    pattern("quota", N_("A quota was used up"), ("disk quota exceeded", "quota exceeded", "edquot"), environment=4.2),
    pattern(
        "no_space",
        N_("A file system was full"),
        ("no space left on device", "enospc", "not enough disk space", "disk full", "disk is full", "file write failed: no space"),
        environment=3.8,
        platform=0.6,
    ),
    pattern(
        "license",
        N_("A licence could not be had"),
        ("license", "licence", "licensing", "licensed number", "flexnet", "flexlm", "lmgrd", "no such feature exists"),
        r"licen[sc]\w*.{0,80}(fail|error|denied|not available|unavailable|checkout|could not|cannot|expired|no more|exceed|unable)|"
        r"(fail\w*|error|denied|unable|could not|cannot|no) .{0,60}(obtain|get|acquire|check ?out|connect).{0,40}licen[sc]e|"
        r"no (more )?licen[sc]es?\b|licensed number of users|(flexnet|flexlm).{0,20}error|no such feature exists",
        environment=3.2,
    ),
    pattern(
        "hub_auth",
        N_("A service refused the access"),
        (
            "gated repo",
            "401 client error",
            "403 client error",
            "401 unauthorized",
            "403 forbidden",
            "invalid token",
            "invalid user token",
            "api_key not configured",
            "authentication failed",
            "host key verification failed",
            "permission denied (publickey",
            "access to model",
            "not a valid credential",
            "expired token",
            "no api key",
            "invalid credentials",
        ),
        environment=3.3,
    ),
    pattern(
        "no_network",
        N_("The node could not reach a host"),
        (
            "temporary failure in name resolution",
            "name or service not known",
            "could not resolve host",
            "network is unreachable",
            "no route to host",
            "max retries exceeded",
            "newconnectionerror",
            "failed to establish a new connection",
            "connectionerror",
            "connection timed out",
            "offlinemodeisenabled",
            "localentrynotfounderror",
            "couldn't connect to",
            "getaddrinfo failed",
            "unable to resolve host",
            "readtimeouterror",
        ),
        environment=2.9,
        platform=0.7,
    ),
    pattern(
        "port_in_use", N_("A port was already in use on the node"), ("address already in use", "eaddrinuse"), environment=2.6, user_code=0.8
    ),
    pattern(
        "driver_old",
        N_("The program does not fit the GPU or its driver"),
        (
            "driver version is insufficient",
            "driver on your system is too old",
            "no kernel image is available",
            "is not compatible with the current pytorch",
            "forward compatibility was attempted",
            "ptx was compiled",
            "unsupported gpu architecture",
            "invalid device function",
            "unsupported toolchain",
        ),
        environment=3.6,
    ),
    pattern(
        "no_gpu",
        N_("No GPU was found"),
        (
            "no cuda-capable device",
            "found no nvidia driver",
            "no cuda gpus are available",
            "cuda_error_no_device",
            "cudaerrornodevice",
            "cuda is not available",
            "cuda not available",
            "no gpu found",
            "no gpus found",
            "no gpu detected",
            "torch not compiled with cuda",
            "no hip gpus are available",
            "visible cuda devices",
            "invalid cuda device",
            "attempting to deserialize object on a cuda device but",
        ),
        environment=2.8,
        node=0.5,
    ),
    pattern(
        "gpu_busy",
        N_("The GPU could not be used"),
        (
            "devices are busy or unavailable",
            "cudaerrordevicesunavailable",
            "cuda unknown error",
            "cudaerrorunknown",
            "cudaerrorsystemnotready",
            "system not yet initialized",
            "cuda_error_system_not_ready",
            "driver shutting down",
        ),
        node=3.6,
        user_code=0.4,
        environment=0.6,
        advice="gpu_fault",
    ),
    pattern(
        "container",
        N_("The container could not be started"),
        ("apptainer", "singularity", "oci runtime", "enroot", "pyxis", "podman", "docker:", "fatal:  ", ".sif"),
        r"^fatal: {2,}\S|(fatal|error)[: ].{0,99}(\.sif|apptainer|singularity|container|image|enroot|pyxis|squashfs|overlay)|(pyxis|enroot|"
        r"enroot-\w+): .{0,60}(fail|error|invalid|couldn)|"
        r"oci runtime .{0,20}error|docker: error",
        environment=2.8,
    ),
    pattern(
        "mpi_setup",
        N_("MPI could not start its processes"),
        ("not built with slurm", "pmi2_", "pmix", "pmi_init", "orte_init", "ompi_mpi_init", "mpi_init", "mpiexec_", "without the mpiexec",
            "invalid mpi type",
            "hydu_"),
        r"not built with slurm'?s? pmi|pmi2?_init.{0,40}(fail|error)|pmix.{0,80}(error|fail|unreach|bad)|orte_init.{0,60}fail|"
        r"mpi_init.{0,60}(fail|error|cannot)|error occurred in mpi_init|hydu_\w+ .*(fail|error|unable)|"
        r"without the mpiexec|invalid mpi type",
        environment=2.4,
        platform=0.6,
    ),
    pattern(
        "permission",
        N_("A file may not be read, written or run"),
        ("permission denied", "operation not permitted", "eacces"),
        environment=2.8,
    ),
    pattern(
        "command",
        N_("A command was not found"),
        (
            "command not found",
            "not recognized as an internal",
            "no such command",
            "cannot execute binary file",
            "exec format error",
            "execve(): ",
            "execvp: ",
            "unable to locate executable",
        ),
        r"command not found|cannot execute binary file|exec format error|execve\(\): |"
        r"execvp: |unable to locate executable|no such command",
        environment=3.2,
    ),
    pattern(
        "illegal_instruction", N_("The program was built for another kind of CPU"), "illegal instruction", environment=2.4, user_code=1.2
    ),
    pattern(
        "too_many_files",
        N_("Too many files or processes were open"),
        (
            "too many open files",
            "resource temporarily unavailable",
            "can't start new thread",
            "cannot create thread",
            "pthread_create failed",
            "fork: retry",
        ),
        environment=2.2,
        user_code=1.2,
        advice="ulimit",
    ),
)
"""From the messages of CUDA, ROCm, frameworks, languages, shells, Lmod, containers and libc (errno texts)."""
