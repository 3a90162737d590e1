"""Plain words for limits, made from the parts of the code's name: whose limit, of what, measured how.

Some 160 codes are covered by a few templates, and so is a code of a later Slurm that is built the same way.
``%(resource)s`` is a noun ("CPUs"), ``%(time)s`` that resource over time ("CPU-minutes"), ``%(field)s`` the column
of sacctmgr that shows the limit.
"""

from __future__ import annotations

from dataclasses import dataclass

from queuecast.i18n import N_, Message, message
from queuecast.reasons.texts import (
    BY_CHANGE,
    NOTHING,
    USER_ADMIN,
    WAIT,
    WAIT_ADMIN,
    WAIT_USER,
    WAIT_USER_ADMIN,
    Permanence,
    Who,
)
from queuecast.slurmtext.reasoncodes import LimitCode


@dataclass(frozen=True)
class LimitText:
    """The finished messages for one limit code."""

    who: tuple[Who, ...]
    permanence: Permanence
    predictable: bool
    title: Message
    meaning: tuple[Message, ...]
    steps: tuple[Message, ...]
    ends_by: Message


@dataclass(frozen=True)
class _Resource:
    noun: str
    time: str
    less: str
    more: str


@dataclass(frozen=True)
class _Template:
    who: tuple[Who, ...]
    permanence: Permanence
    predictable: bool
    field: str
    title: str
    meaning: str
    steps: tuple[str, ...]
    ends_by: str
    advice: str = ""  # "less" or "more": the resource's own advice comes first


_RESOURCES: dict[str, _Resource] = {
    "cpu": _Resource(
        N_("CPUs"), N_("CPU-minutes"),
        N_("Ask for fewer CPUs: lower --ntasks or --cpus-per-task."),
        N_("Ask for more CPUs: raise --ntasks or --cpus-per-task."),
    ),
    "mem": _Resource(
        N_("memory"), N_("memory-minutes"),
        N_("Ask for less memory: lower --mem, --mem-per-cpu or --mem-per-gpu."),
        N_("Ask for more memory: raise --mem, --mem-per-cpu or --mem-per-gpu."),
    ),
    "node": _Resource(
        N_("nodes"), N_("node-minutes"),
        N_("Ask for fewer nodes: lower --nodes."),
        N_("Ask for more nodes: raise --nodes."),
    ),
    "gres": _Resource(
        N_("GPUs"), N_("GPU-minutes"),
        N_("Ask for fewer GPUs: lower --gpus, --gpus-per-node or --gres."),
        N_("Ask for more GPUs: raise --gpus, --gpus-per-node or --gres."),
    ),
    "license": _Resource(
        N_("licenses"), N_("license-minutes"),
        N_("Ask for fewer licenses: lower --licenses."),
        N_("Ask for more licenses: raise --licenses."),
    ),
    "bb": _Resource(
        N_("burst-buffer space"), N_("burst-buffer-minutes"),
        N_("Ask for less burst-buffer space: lower it in --bb or in the #BB or #DW lines of the script."),
        N_("Ask for more burst-buffer space: raise it in --bb or in the #BB or #DW lines of the script."),
    ),
    "energy": _Resource(
        N_("energy"), N_("energy-minutes"),
        N_("Energy cannot be asked for directly: ask your administrators what counts here."),
        N_("Energy cannot be asked for directly: ask your administrators what counts here."),
    ),
    "billing": _Resource(
        N_("billing units"), N_("billing-minutes"),
        N_("Ask for fewer CPUs, less memory or fewer GPUs: billing units are worked out from all of them."),
        N_("Ask for more CPUs, memory or GPUs: billing units are worked out from all of them."),
    ),
    "unknown": _Resource(
        N_("resources of one kind"), N_("minutes of one resource"),
        N_("Ask your administrators which resource is meant, and ask for less of it."),
        N_("Ask your administrators which resource is meant, and ask for more of it."),
    ),
}
_RESOURCES["other"] = _RESOURCES["unknown"]

_QOS_NOTE = N_("A QOS is a service class with its own limits; this one may be the partition's rather than your job's.")
_GRES_NOTE = N_("Slurm counts GPUs as GRES, which can also be other devices.")
_UNKNOWN_NOTE = N_("Slurm does not say which resource it is.")
_RESOURCE_NOTES = {"gres": (_GRES_NOTE,), "unknown": (_UNKNOWN_NOTE,), "other": (_UNKNOWN_NOTE,)}
_SHARED_NAME_NOTE = N_("Slurm uses this same name for the burst-buffer limit of a QOS.")
_SEE_QOS = N_("See the limit: sacctmgr show qos format=Name,%(field)s")
_SEE_TREE = N_("See the limit (perhaps of an account above yours): sacctmgr show assoc tree format=Account,User,%(field)s")
_SEE_OWN = N_("See the limit: sacctmgr show assoc where user=$USER format=Account,User,%(field)s")

_SHORTER = N_("A shorter time limit may let it in: scontrol update JobId=<jobid> TimeLimit=<time>")
_RESUBMIT = N_("Change the request: scancel <jobid>, then submit it again.")
_OTHER_QOS = N_("Or use a QOS or account that allows it, or ask your administrators.")
_MORE_NODES = N_("Or spread the job over more nodes with --nodes.")
_CUT_TIME = N_("Shorten the job: scontrol update JobId=<jobid> TimeLimit=<time>")
_TOO_BIG_EVER = N_("If this job alone asks for more than the limit, it never starts: make it smaller.")
_FADES = N_("Past use fades or is reset, or the budget is raised. At sites where use never fades, only an administrator helps.")
_NEVER_AS_IS = BY_CHANGE

_USE_STEPS = (NOTHING, _TOO_BIG_EVER)
_RUN_STEPS = (_SHORTER, _TOO_BIG_EVER)

# (scope, bound, per, measure)
_TEMPLATES: dict[tuple[str, str, str, str], _Template] = {
    ("assoc", "grp", "group", "use"): _Template(
        WAIT_ADMIN, "maybe", True, "GrpTRES",
        N_("No more %(resource)s for your account right now"),
        N_("Running jobs of your account (or of one it belongs to) already use all the %(resource)s it may have at "
           "once, or leave too little for this job."),
        _USE_STEPS,
        N_("Jobs of that account end."),
    ),
    ("assoc", "grp", "group", "minutes"): _Template(
        WAIT_ADMIN, "maybe", False, "GrpTRESMins",
        N_("Your account's %(time)s are used up"),
        N_("Your account (or one it belongs to) has a budget of %(time)s; it is used up, or too little is left for this job."),
        (N_("A shorter or smaller job may still fit into what is left."), N_("Ask your administrators about the budget.")),
        _FADES,
    ),
    ("assoc", "grp", "group", "run_minutes"): _Template(
        WAIT_USER, "maybe", True, "GrpTRESRunMins",
        N_("Your account's running jobs have too many %(time)s left"),
        N_("Running jobs of your account (or of one it belongs to) have many %(time)s left until their time limits: "
           "with this job, more than allowed."),
        _RUN_STEPS,
        N_("Running jobs of that account get closer to their time limits, or end."),
    ),
    ("assoc", "max", "job", "use"): _Template(
        USER_ADMIN, "yes", False, "MaxTRES",
        N_("More %(resource)s than one job may have"),
        N_("The job asks for more %(resource)s than one job of yours in this account may have. It never starts as it is."),
        (_RESUBMIT, _OTHER_QOS),
        _NEVER_AS_IS, "less",
    ),
    ("assoc", "max", "node", "use"): _Template(
        USER_ADMIN, "yes", False, "MaxTRESPerNode",
        N_("More %(resource)s on one node than allowed"),
        N_("The job asks for more %(resource)s on one node than a job of yours in this account may have. It never "
           "starts as it is."),
        (_MORE_NODES, _RESUBMIT, _OTHER_QOS),
        _NEVER_AS_IS, "less",
    ),
    ("assoc", "max", "job", "minutes"): _Template(
        USER_ADMIN, "yes", False, "MaxTRESMins",
        N_("Too many %(time)s for one job"),
        N_("What the job asks for, times its time limit, gives more %(time)s than one job of yours in this account "
           "may use. It never starts as it is."),
        (_CUT_TIME, _RESUBMIT, _OTHER_QOS),
        _NEVER_AS_IS, "less",
    ),
    ("qos", "grp", "group", "use"): _Template(
        WAIT_ADMIN, "maybe", True, "GrpTRES",
        N_("No more %(resource)s in this QOS right now"),
        N_("Running jobs of all users together already use all the %(resource)s that this QOS may have at once, or "
           "leave too little for this job."),
        _USE_STEPS,
        N_("Any job in that QOS ends."),
    ),
    ("qos", "grp", "group", "minutes"): _Template(
        WAIT_ADMIN, "maybe", False, "GrpTRESMins",
        N_("The %(time)s of this QOS are used up"),
        N_("This QOS has a budget of %(time)s for all its users together; it is used up, or too little is left for this job."),
        (
            N_("A shorter or smaller job may still fit into what is left."),
            N_("Another QOS may be open to you: scontrol update JobId=<jobid> QOS=<name>"),
        ),
        _FADES,
    ),
    ("qos", "grp", "group", "run_minutes"): _Template(
        WAIT_USER_ADMIN, "maybe", True, "GrpTRESRunMins",
        N_("Running jobs in this QOS have too many %(time)s left"),
        N_("Running jobs of all users in this QOS have many %(time)s left until their time limits: with this job, "
           "more than allowed."),
        _RUN_STEPS,
        N_("Running jobs in that QOS get closer to their time limits, or end."),
    ),
    ("qos", "max", "job", "use"): _Template(
        USER_ADMIN, "yes", False, "MaxTRES",
        N_("More %(resource)s than this QOS allows one job"),
        N_("The job asks for more %(resource)s than this QOS allows one job. It never starts as it is."),
        (_RESUBMIT, _OTHER_QOS),
        _NEVER_AS_IS, "less",
    ),
    ("qos", "max", "node", "use"): _Template(
        USER_ADMIN, "yes", False, "MaxTRESPerNode",
        N_("More %(resource)s on one node than this QOS allows"),
        N_("The job asks for more %(resource)s on one node than this QOS allows. It never starts as it is."),
        (_MORE_NODES, _RESUBMIT, _OTHER_QOS),
        _NEVER_AS_IS, "less",
    ),
    ("qos", "max", "job", "minutes"): _Template(
        USER_ADMIN, "yes", False, "MaxTRESMins",
        N_("Too many %(time)s for one job in this QOS"),
        N_("What the job asks for, times its time limit, gives more %(time)s than this QOS allows one job. It never "
           "starts as it is."),
        (_CUT_TIME, _RESUBMIT, _OTHER_QOS),
        _NEVER_AS_IS, "less",
    ),
    ("qos", "max", "user", "use"): _Template(
        WAIT, "maybe", True, "MaxTRESPU",
        N_("Your own jobs use all the %(resource)s you may have"),
        N_("Your running jobs already use all the %(resource)s that this QOS allows one user, or leave too little "
           "for this job. How busy the cluster is does not matter."),
        _USE_STEPS,
        N_("One of your own jobs in that QOS ends."),
    ),
    ("qos", "max", "account", "use"): _Template(
        WAIT, "maybe", True, "MaxTRESPA",
        N_("Your account's jobs use all the %(resource)s it may have"),
        N_("Running jobs of your account already use all the %(resource)s that this QOS allows one account, or leave "
           "too little for this job."),
        _USE_STEPS,
        N_("A job of your account in that QOS ends."),
    ),
    ("qos", "max", "user", "run_minutes"): _Template(
        WAIT_USER, "maybe", True, "MaxTRESRunMinsPU",
        N_("Your running jobs have too many %(time)s left"),
        N_("Your running jobs have many %(time)s left until their time limits: with this job, more than this QOS "
           "allows one user."),
        _RUN_STEPS,
        N_("Your running jobs get closer to their time limits, or end."),
    ),
    ("qos", "max", "account", "run_minutes"): _Template(
        WAIT_USER, "maybe", True, "MaxTRESRunMinsPA",
        N_("Your account's jobs have too many %(time)s left in this QOS"),
        N_("Running jobs of your account have many %(time)s left until their time limits: with this job, more than "
           "this QOS allows one account."),
        _RUN_STEPS,
        N_("Running jobs of your account get closer to their time limits, or end."),
    ),
    ("qos", "min", "job", "use"): _Template(
        USER_ADMIN, "yes", False, "MinTRES",
        N_("Below this QOS's minimum of %(resource)s"),
        N_("The job does not ask for enough %(resource)s: this QOS is for larger jobs. It never starts as it is."),
        (_RESUBMIT, _OTHER_QOS),
        _NEVER_AS_IS, "more",
    ),
}

_SUBMIT_END = N_("Enough of those jobs end; waiting ones count too.")
_SUBMIT_STEPS = (N_("Wait, or cancel jobs you no longer need: scancel <jobid>"),)
# Codes about numbers of jobs and wall time: (scope, bound, per, resource)
_COUNTS: dict[tuple[str, str, str, str], _Template] = {
    ("assoc", "grp", "group", "jobs"): _Template(
        WAIT_ADMIN, "maybe", True, "GrpJobs",
        N_("Your account runs as many jobs as it may"),
        N_("Your account (or one it belongs to) already runs as many jobs at once as it may."),
        (NOTHING, N_("If none of its jobs run, the limit may be zero: ask your administrators.")),
        N_("A job of that account ends."),
    ),
    ("assoc", "grp", "group", "submit"): _Template(
        WAIT_ADMIN, "no", True, "GrpSubmit",
        N_("Your account has as many jobs in the queue as it may"),
        N_("Running and waiting jobs of your account (or one it belongs to) exceed the number allowed."),
        _SUBMIT_STEPS, _SUBMIT_END,
    ),
    ("assoc", "grp", "group", "wall"): _Template(
        WAIT_ADMIN, "maybe", False, "GrpWall",
        N_("Your account's running time is used up"),
        N_("The total running time that jobs of your account (or one it belongs to) may have is used up."),
        (N_("Ask your administrators about the limit, or use another account: scontrol update JobId=<jobid> Account=<name>"),),
        _FADES,
    ),
    ("assoc", "max", "user", "jobs"): _Template(
        WAIT, "no", True, "MaxJobs",
        N_("You run as many jobs as you may"),
        N_("You already run as many jobs at once in this account as you may. How busy the cluster is does not matter."),
        (NOTHING,),
        N_("One of your own jobs ends."),
    ),
    ("assoc", "max", "user", "submit"): _Template(
        WAIT, "no", True, "MaxSubmit",
        N_("You have as many jobs in the queue as you may"),
        N_("Your running and waiting jobs in this account exceed the number allowed."),
        _SUBMIT_STEPS, _SUBMIT_END,
    ),
    ("assoc", "max", "job", "wall"): _Template(
        USER_ADMIN, "yes", False, "MaxWall",
        N_("Asks for more time than you may"),
        N_("The job's time limit is longer than your account allows one job. It never starts as it is."),
        (_CUT_TIME, _OTHER_QOS),
        _NEVER_AS_IS,
    ),
    ("qos", "grp", "group", "jobs"): _Template(
        WAIT_ADMIN, "no", True, "GrpJobs",
        N_("The QOS runs as many jobs as it may"),
        N_("All users together already run as many jobs at once in this QOS as it may have."),
        (NOTHING, N_("If no job runs in it, the limit may be zero: ask your administrators.")),
        N_("Any job in that QOS ends."),
    ),
    ("qos", "grp", "group", "submit"): _Template(
        WAIT, "no", True, "GrpSubmit",
        N_("The QOS has as many jobs in the queue as it may"),
        N_("Running and waiting jobs of all users in this QOS exceed the number allowed."),
        _SUBMIT_STEPS, _SUBMIT_END,
    ),
    ("qos", "grp", "group", "wall"): _Template(
        WAIT_ADMIN, "maybe", False, "GrpWall",
        N_("The QOS's running time is used up"),
        N_("The total running time that jobs in this QOS may have is used up."),
        (N_("Another QOS may be open to you: scontrol update JobId=<jobid> QOS=<name>"),),
        _FADES,
    ),
    ("qos", "max", "user", "jobs"): _Template(
        WAIT, "no", True, "MaxJobsPU",
        N_("You run as many jobs as this QOS allows one user"),
        N_("You already run as many jobs at once as this QOS allows one user. How busy the cluster is does not matter."),
        (NOTHING,),
        N_("One of your own jobs in that QOS ends."),
    ),
    ("qos", "max", "account", "jobs"): _Template(
        WAIT, "no", True, "MaxJobsPA",
        N_("Your account runs as many jobs as this QOS allows one account"),
        N_("Your account already runs as many jobs at once as this QOS allows one account."),
        (NOTHING,),
        N_("A job of your account in that QOS ends."),
    ),
    ("qos", "max", "user", "submit"): _Template(
        WAIT, "no", True, "MaxSubmitPU",
        N_("You have as many jobs in the queue as this QOS allows one user"),
        N_("Your running and waiting jobs in this QOS exceed the number allowed one user."),
        _SUBMIT_STEPS, _SUBMIT_END,
    ),
    ("qos", "max", "account", "submit"): _Template(
        WAIT, "no", True, "MaxSubmitPA",
        N_("Your account has as many jobs in the queue as this QOS allows one account"),
        N_("Running and waiting jobs of your account in this QOS exceed the number allowed one account."),
        _SUBMIT_STEPS, _SUBMIT_END,
    ),
    ("qos", "max", "job", "wall"): _Template(
        USER_ADMIN, "yes", False, "MaxWall",
        N_("Asks for more time than this QOS allows"),
        N_("The job's time limit is longer than this QOS allows one job. It never starts as it is."),
        (_CUT_TIME, _OTHER_QOS),
        _NEVER_AS_IS,
    ),
}


def limit_text(limit: LimitCode) -> LimitText | None:
    """The words for a limit; None for a combination no Slurm up to 25.11 has (e.g. a minimum per account)."""
    template = _COUNTS.get((limit.scope, limit.bound, limit.per, limit.resource))
    resource = _RESOURCES.get(limit.resource)
    if template is None:
        template = _TEMPLATES.get((limit.scope, limit.bound, limit.per, limit.measure))
        if template is None or resource is None:
            return None
    values: dict[str, str | Message] = {"field": template.field}
    if resource is not None:
        values |= {"resource": message(resource.noun), "time": message(resource.time)}

    def fill(text: str) -> Message:
        return message(text, **{name: value for name, value in values.items() if f"%({name})s" in text})

    see = _SEE_QOS if limit.scope == "qos" else _SEE_TREE if limit.bound == "grp" else _SEE_OWN
    advice: tuple[str, ...] = ()
    if resource is not None and template.advice:
        advice = (resource.less if template.advice == "less" else resource.more,)
    notes: tuple[str, ...] = _RESOURCE_NOTES.get(limit.resource, ())
    if limit.scope == "qos":
        notes += (_QOS_NOTE,)
    elif limit == LimitCode("assoc", "max", "job", "bb", "minutes"):
        notes += (_SHARED_NAME_NOTE,)
    return LimitText(
        template.who,
        template.permanence,
        template.predictable,
        fill(template.title),
        tuple(map(fill, (template.meaning, *notes))),
        tuple(map(fill, (*advice, *template.steps, see))),
        fill(template.ends_by),
    )


def general_limit(scope: str) -> LimitText:
    """For a code that begins like a limit's but whose parts are not known; it may or may not end by waiting."""
    steps: tuple[Message, ...] = (message(N_("Ask your administrators what the limit is, or look it up in Slurm's manual.")),)
    meaning: tuple[Message, ...]
    if scope == "qos":
        meaning = (message(N_("A limit of a service class (QOS) keeps the job from starting.")), message(_QOS_NOTE))
    else:
        meaning = (message(N_("A limit of your account keeps the job from starting.")),)
    return LimitText(
        WAIT_USER_ADMIN, "maybe", False,
        message(N_("A limit is reached")), meaning, steps,
        message(N_("The jobs that count towards the limit end, or the request or the limit is changed.")),
    )
