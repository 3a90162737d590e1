"""How a table of Slurm's text is laid out: read from its header line, never assumed.

A header tells the delimiter (0x1f, ``|``, any other, or fixed width), the columns in any order, and, by its names, which
command printed it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from itertools import pairwise

from queuecast.errors import ParseError


def words(text: str) -> list[str]:
    """The words of a text: long lists of names stay readable."""
    return text.split()


_SACCT = words("""
account admincomment alloccpus allocgres allocnodes alloctres associd avecpu avecpufreq avediskread avediskwrite
avepages averss avevmsize blockid cluster comment constraints consumedenergy consumedenergyraw container cputime
cputimeraw dbindex derivedexitcode elapsed elapsedraw eligible end exitcode extra failednode flags gid group jobid
jobidraw jobname layout licenses maxdiskread maxdiskreadnode maxdiskreadtask maxdiskwrite maxdiskwritenode
maxdiskwritetask maxpages maxpagesnode maxpagestask maxrss maxrssnode maxrsstask maxvmsize maxvmsizenode maxvmsizetask
mcslabel mincpu mincpunode mincputask ncpus nnodes nodelist ntasks originalsluid partition planned plannedcpu
plannedcpuraw priority qos qosraw qosreq reason reqcpufreq reqcpufreqgov reqcpufreqmax reqcpufreqmin reqcpus reqgres
reqmem reqnodes reqreservation reqtres reservation reservationid reserved restarts resvcpu resvcpuraw segmentsize
sluid start state stderr stdin stdout submit submitline suspended systemcomment systemcpu timelimit timelimitraw
totalcpu tresusageinave tresusageinmax tresusageinmaxnode tresusageinmaxtask tresusageinmin tresusageinminnode
tresusageinmintask tresusageintot tresusageoutave tresusageoutmax tresusageoutmaxnode tresusageoutmaxtask
tresusageoutmin tresusageoutminnode tresusageoutmintask tresusageouttot uid user usercpu wckey wckeyid workdir""")
_SQUEUE = words("""
accruetime activesiblings admincomment allocnodes allocsid arrayjobid arraytaskid associd batchflag boardspernode
burstbuffer burstbufferstate clusterfeatures command contiguous corespersocket corespec cpus cpuspertask cpuspertres
deadline delayboot dependency derivedec eligibletime endtime excnodes exechost features hetjobid hetjobidset
hetjoboffset lastschedeval maxcpus maxnodes mempertres mincpus minmemory mintmpdisk name network nice nodelistreason
nodes ntasksperboard ntaskspercore ntaskspernode ntaskspersocket origin originraw oversubscribe pendingtime
preempttime prefer profile reboot reqnodes reqswitch requeue resizetime restartcount resvport schednodes sct
siblingsactive socketsperboard socketspernode st starttime stepid submittime tasks threadspercore time timeleft
timemin tresalloc tresbind tresfreq tresperjob trespernode trespersocket tresperstep trespertask viablesiblings
wait4switch""")
_SINFO = words("""
activefeatures alloccmem allocmem avail availfeatures cores cpuload cpusaiot defaulttime freemem gres gresused groups
hostnames jobsize maxcpuspernode memory nodeaddr nodesai nodesaiot port preemptmode priojobfactor priotier root
sockets statecomplete statelong threads timestamp tmpdisk version weight""")
_OTHER = words("""
age assoc fairshare jobsize site tres qosname rawshares normshares rawusage normusage effectvusage levelfs grptresmins
grptresraw tresrunmins id nodename timestart timeend unusedwall gracetime preempt preemptexempttime usagethres
usagefactor grptres grptresrunmins grpjobs grpsubmit grpwall maxtres maxtrespernode maxtresmins maxwall maxtrespu
maxjobspu maxsubmitpu maxtrespa maxjobspa maxsubmitpa mintres share maxjobs maxsubmit defqos defaultqos parentname lft
rgt lineage descr org admin defacct controlhost controlport rpc problem action actor where info type grpnodes grpcpus
grpmem grpcpumins maxnodes maxcpumins maxtresrunminspa maxtresrunminspu""")
_JOB_USE = words("""
cpus mempeakbytes gpusseen gpusused gpuutilmean gpuutilpeak gpumempeakbytes gpumemtotalbytes energyjoules generated source""")
"""Of queuecast's own table of what jobs used (docs/usage.md); ``cpu_s`` reads as ``cpus`` here."""
KNOWN = frozenset((*_SACCT, *_SQUEUE, *_SINFO, *_OTHER, *_JOB_USE))

_SACCT_ONLY = frozenset(words("""
jobname jobidraw submit eligible start end elapsed elapsedraw alloccpus reqcpus exitcode alloctres reqtres reqmem
timelimitraw maxrss totalcpu ncpus nnodes cputime submitline"""))
_SQUEUE_ONLY = frozenset(words("""
st time starttime submittime nodelistreason name timeleft schednodes endtime arrayjobid trespernode tresalloc exechost
minmemory"""))
_JOB_USE_ONLY = frozenset(_JOB_USE) - {"cpus", "generated", "source"}
_LEFT = frozenset(("schednodes", "nodelist", "nodelistreason", "hostnames"))
"""Columns that Slurm's own fixed-width formats align to the left where the width exceeds the header."""

_DELIMITERS = (b"\x1f", b"\x1e", b"|", b"\t", b";", b",", b"^", b"~")


@dataclass(frozen=True)
class Dialect:
    """Layout of one table. ``delimiter`` is empty for fixed width; then ``spans`` holds byte ranges (None: to the end)."""

    kind: str
    what: str
    header: tuple[str, ...]
    keys: tuple[str, ...]
    delimiter: bytes
    raw: bytes
    spans: tuple[tuple[int, int | None], ...] = ()
    ruled: bool = False
    quoted: bool = False

    @property
    def readable(self) -> bool:
        return self.kind != "other"


def key_of(name: str) -> str:
    """A header name without case, blanks and punctuation: ``NODELIST(REASON)`` and ``Def QOS`` compare safely."""
    return re.sub(r"[^a-z0-9]", "", name.lower())


def classify(keys: tuple[str, ...], command: str = "") -> tuple[str, str]:
    """(kind of capture, name of what it is) by the header's names; the command line decides what they leave open."""
    has = frozenset(keys)
    if "stepid" in has:
        return "other", "steps of squeue -s"
    if has & {"jobid", "jobidraw"} and has & _JOB_USE_ONLY and "state" not in has:
        return "job_use", "what jobs used"
    if "jobid" in has:
        if len(has & {"age", "fairshare", "jobsize", "qos", "tres"}) >= 3 and "priority" in has:
            if "user" not in has:
                return "sprio_weights", "sprio -w"
            return ("sprio", "sprio") if "site" in has or "nice" in has else ("other", "normalised priorities of sprio -n")
        if {"maxvmsize", "avecpu"} <= has and not has & {"submit", "state", "jobname"}:
            return "other", "sstat"
        if len(has & _SACCT_ONLY) > len(has & _SQUEUE_ONLY):
            return "sacct", "sacct"
        if has & {"st", "state"}:
            start = "starttime" in has and not has & {"time", "timelimit", "submittime"}
            return ("squeue_start", "squeue --start") if start or " --start" in command else ("squeue", "squeue")
        return "other", "a list of jobs without their state"
    if has & {"rawshares", "normshares"}:
        return "sshare", "sshare"
    if {"action", "actor"} <= has:
        return "other", "sacctmgr transactions"
    if {"nodename", "timestart"} <= has:
        return "events", "sacctmgr events"
    if {"timestart", "timeend", "name"} <= has:
        return "resv_history", "sacctmgr reservations"
    if "name" in has and len(has & {"gracetime", "preempt", "usagefactor", "maxtrespu", "priority"}) >= 2:
        return "qos", "sacctmgr qos"
    for name, what in (("descr", "accounts"), ("org", "accounts"), ("admin", "users"), ("defacct", "users"),
                       ("controlhost", "clusters"), ("problem", "problems")):
        if name in has:
            return "other", f"sacctmgr {what}"
    if {"account", "cluster"} <= has and has & {"share", "qos", "maxjobs", "grptres"}:
        return "assoc", "sacctmgr associations"
    if {"type", "name", "id"} <= has:
        return "other", "sacctmgr tres"
    if has & {"nodelist", "hostnames"}:
        return ("sinfo", "sinfo") if has & {"state", "statelong", "statecomplete"} else ("other", "sinfo without node states")
    return "other", "a table that queuecast does not know"


def is_header(names: list[str], at_least: int = 2) -> bool:
    keys = [key_of(n) for n in names]
    known = sum(k in KNOWN for k in keys)
    named = sum(bool(k) for k in keys)
    return known >= at_least and known >= 0.6 * named


def sniff(line: bytes, following: list[bytes], command: str = "") -> Dialect:
    """The layout that this header line tells. ``following`` are some lines after it (to see a ruler and column edges).

    Raises `ParseError` if it is no header that Slurm prints.
    """
    text = line.decode("utf-8", "replace").rstrip("\r\n")
    best: tuple[float, int, bytes] | None = None
    for delimiter in (*_DELIMITERS, *_inferred(text)):
        parts = text.split(delimiter.decode())
        if len(parts) < 2 or not is_header(parts):
            continue
        keys = [key_of(p) for p in parts]
        score = (sum(k in KNOWN for k in keys) / len(parts), len(parts), delimiter)
        if best is None or score > best:
            best = score
    if best is None:
        return _fixed(text, line, following, command)
    delimiter = best[2]
    parts = [p.strip().strip('"').strip() for p in text.split(delimiter.decode())]
    keys_ = tuple(key_of(p) for p in parts)
    kind, what = classify(keys_, command)
    # A comma cannot separate Slurm's own fields (TRES hold commas), so such a file was written by another program.
    return Dialect(kind, what, tuple(parts), keys_, delimiter, line, quoted=delimiter == b"," or text.lstrip().startswith('"'))


def _inferred(text: str) -> list[bytes]:
    """A delimiter of several characters: what stands after the first known name."""
    match = re.match(r"\s*([A-Za-z0-9_]+)([^A-Za-z0-9_\s]{2,16})(?=[A-Za-z])", text)
    return [match[2].encode()] if match and key_of(match[1]) in KNOWN else []


def _fixed(text: str, line: bytes, following: list[bytes], command: str) -> Dialect:
    words = [w.decode("utf-8", "replace") for w in re.findall(rb"\S+", line)]
    if len(words) < 2 or not is_header(words):
        raise ParseError("no header line", text)
    following = [x for x in following if x.rstrip() != line.rstrip()]  # samples without rows repeat the header
    nxt = following[0] if following else b""
    if len(words) >= 3 and is_header(nxt.decode("utf-8", "replace").split(), 3):
        return Dialect("other", "a list of field names", tuple(words), (), b"", line)
    if nxt.strip() and not nxt.strip(b"- \r\n") and b"-" in nxt:
        spans: tuple[tuple[int, int | None], ...] = tuple((m.start(), m.end()) for m in re.finditer(rb"-+", nxt))
        header = tuple(line[a:b].decode("utf-8", "replace").strip() for a, b in spans)
        ruled = True
    else:
        header, ruled = tuple(words), False
        spans = _spans(line.rstrip(b"\r\n"), [x.rstrip(b"\r\n") for x in following if not x.startswith(b"### ")])
    keys = tuple(key_of(h) for h in header)
    kind, what = classify(keys, command)
    return Dialect(kind, what, header, keys, b"", line, spans, ruled)


def _spans(header: bytes, rows: list[bytes]) -> tuple[tuple[int, int | None], ...]:
    """Byte ranges of fixed-width columns. Right-aligned ones (nearly all) end where their name ends, left-aligned ones
    begin where it begins; between a left- and a right-aligned one the edge is where no row has text."""
    found = [(m.start(), m.end(), key_of(m[0].decode("utf-8", "replace"))) for m in re.finditer(rb"\S+", header)]
    edges: list[int] = []
    for (_, end, name), (start, _, following) in pairwise(found):
        if following in _LEFT:
            edges.append(start - 1)
        elif name in _LEFT:
            blank = [p for p in range(end, start) if all(r[p : p + 1] in (b" ", b"") for r in rows)]
            edges.append(blank[0] if blank else end)
        else:
            edges.append(end)
    starts = [0, *(e + 1 for e in edges)]
    return tuple(zip(starts, [*edges, None], strict=True))


def with_trailing(dialect: Dialect, extra: int) -> Dialect:
    """The layout where rows end with ``extra`` more (or one fewer) empty field than the header."""
    if extra > 0:
        return replace(dialect, header=(*dialect.header, *[""] * extra), keys=(*dialect.keys, *[""] * extra))
    return replace(dialect, header=dialect.header[:extra], keys=dialect.keys[:extra])


def likely_delimiter(rows: list[bytes], count: int) -> bytes | None:
    """The delimiter that would give most of the rows ``count + 1`` fields."""
    for delimiter in _DELIMITERS:
        if sum(r.count(delimiter) in (count, count + 1) for r in rows) > len(rows) / 2:
            return delimiter
    return None
