"""Lines that tell of a mistake of the program itself, and those that say only that something failed."""

from __future__ import annotations

from queuecast.i18n import N_
from queuecast.reasons.logpatterns import Pattern, pattern

CAUSES: tuple[Pattern, ...] = (
    pattern("interrupted", N_("It was interrupted (Ctrl-C or SIGINT)"), "keyboardinterrupt", user_cancel=2.6, user_code=0.4,
            advice="exception"),
    pattern("checkpoint", N_("A checkpoint could not be read"), (
                "failed reading zip archive", "pytorchstreamreader", "error(s) in loading state_dict", "unpicklingerror",
                "invalid load key",
                "ran out of input", "badzipfile", "not a zip file", "unexpected key(s) in state_dict", "missing key(s) in state_dict",
                "checkpoint", "safetensors", "truncated file"),
            r"failed reading zip|pytorchstreamreader|loading state_dict|unpicklingerror|invalid load key|ran out of input|badzipfile|"
            r"not a zip file|key\(s\) in state_dict|safetensorerror|truncated file: eof|(corrupt|truncated|fail\w* to (load|read|restore))"
            r".{0,60}checkpoint|checkpoint.{0,80}(corrupt|truncated|incomplete|invalid|mismatch|damaged|cannot be read|could not be read|"
            r"failed to load)", user_code=3.0),
    pattern("nan", N_("The loss became NaN"), "nan",
            r"\bloss\b.{0,30}\bnan\b|\bnan\b.{0,40}\b(loss|gradient|grad)|(input|output|tensor|gradient).{0,40}(contains?|has) nan|"
            r"non-?finite (loss|grad)", user_code=2.2),
    pattern("missing_file", N_("A file was not found"), (
                "filenotfounderror", "no such file or directory", "file does not exist", "cannot open file", "unable to open file",
                "filenotfoundexception", "cannot find file", "could not find file", "nosuchfile"), user_code=1.7, environment=1.5),
    pattern("cuda_assert", N_("An index in the program's GPU code is out of bounds"), (
                "device-side assert", "illegal memory access", "misaligned address", "unspecified launch failure", "cuda_exception"),
            user_code=2.6, node=0.6),
    pattern("gpu_assert_line", N_("An index in the program's GPU code is out of bounds"), "assertion `",
            r"\.cu:\d+.{0,120}assertion `.{1,120} failed", user_code=2.6, advice="cuda_assert"),
    pattern("arguments", N_("The program was called with arguments that it does not take"), (
                "unrecognized arguments", "the following arguments are required", "invalid choice", "unknown option", "unrecognized option",
                "invalid option", "missing required argument", "no such option", "usage: "),
            r"unrecognized (arguments|option)|following arguments are required|invalid (choice|option)|unknown option|"
            r"missing required argument|no such option|^usage: ", user_code=2.4),
    pattern("shell", N_("The shell script has a mistake"), (
                "syntax error", "unbound variable", "unexpected eof while", "unexpected end of file", "bad substitution",
                "ambiguous redirect", "bad array subscript"), user_code=2.6),
    pattern("segfault", N_("The program accessed memory that is not its own"), (
                "segmentation fault", "sigsegv", "signal 11", "invalid memory reference"), user_code=2.6, node=-0.3),
    pattern("memory_misuse", N_("The program damaged its own memory"), (
                "double free", "corrupted size vs", "corrupted double-linked", "munmap_chunk", "stack smashing", "invalid pointer",
                "malloc(): ", "buffer overflow detected"), user_code=2.8, advice="segfault"),
    pattern("bus_error", N_("A mapped file or shared memory broke off (bus error)"), ("bus error", "sigbus"), environment=2.0, node=0.9,
            user_code=0.9),
    pattern("arithmetic", N_("The program divided by zero or overflowed"), ("floating point exception", "sigfpe", "erroneous arithmetic"),
            user_code=2.4),
    pattern("fortran", N_("The Fortran program stopped with an error"), ("forrtl: severe", "fortran runtime error", "error stop"),
            user_code=2.4),
    pattern("build", N_("Compiling failed"), (
                "make: *** ", "make[", "compilation terminated", "cmake error", "ninja: build stopped", "ld returned"),
            r"make(\[\d+\])?: \*\*\* |compilation terminated|cmake error|ninja: build stopped|ld returned \d+ exit", user_code=2.0),
    pattern("workflow", N_("A workflow tool reports a failed step"), ("error in rule ", "executing process", "process `", "workflowerror"),
            r"error in rule |error executing process|process `.{1,100}` terminated with an error|workflowerror", follows=True,
            user_code=1.6),
)

GENERAL: tuple[Pattern, ...] = (
    pattern("mpi_abort", N_("A rank ended the MPI program"), ("mpi_abort", "application called mpi"), follows=True, user_code=1.6),
    pattern("rank_failed", N_("A process of the program ended with an error"), (
                "childfailederror", "noticed that process rank", "exited on signal", "exit code 1", "exited with exit code",
                "bad termination of one of", "primary job terminated", "processexitedexception", "terminated with signal"),
            follows=True, user_code=0.9),
    pattern("killed", N_("A process was killed"), "killed",
            r"^\S*\s*(line \d+: )?.{0,80}\bkilled\b( {2,}.*|\s*)$|: tasks? [\d,-]+: killed|line \d+: +\d+ killed\b",
            follows=True, oom_host=1.2, user_code=0.4),
    pattern("aborted", N_("The program stopped itself"), ("aborted (core dumped)", "sigabrt", "terminate called", "core dumped"),
            user_code=1.8),
    pattern("exception", N_("The program raised an error"), (
                "error:", "error", "exception:", "execution halted", "panicked at", "assertion", "systemexit", "exception in thread",
                "uncaught exception", "stopiteration"),
            r"^(\[[^\]]{1,40}\]:? ?)?\s{0,3}([a-z_][\w.]{0,80})?(error|exception|exit|iteration)\b(: |$)|^error in |execution halted|"
            r"panicked at|assertion.{0,200}failed|exception in thread|uncaught exception", user_code=2.2),
    pattern("traceback", N_("A Python program raised an error"), "traceback (most recent call last)", user_code=1.4, advice="exception"),
    pattern("bus_pipe", N_("A process lost its partner"), (
                "broken pipe", "connection reset by peer", "exited unexpectedly", "connection refused"),
            follows=True, user_code=0.6, environment=0.6, platform=0.4),
)
"""What says only that something failed; tried last."""
