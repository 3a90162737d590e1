"""Plain words for the reasons of waiting: order, resources, other jobs, time, holds.

A text is whole sentences marked for translation; the limits are in ``reason_limits``, wrong requests, faults and
ends in ``reason_faults``. Who acts, permanence and meaning follow slurmctld's code of 17.11 to 25.11.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from queuecast.i18n import N_

Who = Literal["user", "admin", "wait"]
Permanence = Literal["no", "maybe", "yes"]
WaitClass = Literal[
    "resources", "priority", "limit", "dependency", "time", "hold", "configuration", "system", "ended", "none"
]

WAIT: tuple[Who, ...] = ("wait",)
USER: tuple[Who, ...] = ("user",)
ADMIN: tuple[Who, ...] = ("admin",)
WAIT_ADMIN: tuple[Who, ...] = ("wait", "admin")
WAIT_USER: tuple[Who, ...] = ("wait", "user")
USER_ADMIN: tuple[Who, ...] = ("user", "admin")
WAIT_USER_ADMIN: tuple[Who, ...] = ("wait", "user", "admin")


@dataclass(frozen=True)
class Text:
    """What is said about one code; every string is a message to translate, ``<jobid>`` stands for the job's number.

    ``predictable``: a start can be estimated from the queue, the running jobs and known times.
    ``after_end``: the code also describes a job that has ended.
    """

    wait_class: WaitClass
    who: tuple[Who, ...]
    permanence: Permanence
    predictable: bool
    title: str
    meaning: tuple[str, ...]
    steps: tuple[str, ...]
    ends_by: str
    after_end: bool = False


NOTHING = N_("Nothing to do: just wait.")
RELEASE = N_("Release it when the cause is gone: scontrol release <jobid>")
BY_CHANGE = N_("The job or the cluster's settings are changed; waiting alone does not help.")
BY_RELEASE = N_("Someone releases it.")
SMALLER = N_(
    "A smaller request or a shorter time limit may fit into a gap sooner: scontrol update JobId=<jobid> TimeLimit=<time>"
)

WAITING: dict[str, Text] = {
    "None": Text(
        "none", WAIT, "no", True,
        N_("Not looked at yet"),
        (
            N_("Slurm has not looked at this job since it was submitted or changed, or ran out of time before reaching it."),
            N_("This says neither that the job fits nor that it will start soon."),
        ),
        (N_("Look again in a minute."),),
        N_("The scheduler's next pass, normally within a minute; longer if many jobs are ahead."),
    ),
    "Priority": Text(
        "priority", WAIT, "no", True,
        N_("Other jobs come first"),
        (
            N_("Jobs with a higher priority are waiting for the same part of the cluster, so Slurm has not tried this one yet."),
            N_("It does not say whether enough is free for this job."),
        ),
        (N_("See what makes up its priority: sprio -j <jobid>"), SMALLER),
        N_("The jobs ahead start, or the job fits into a gap without delaying them."),
    ),
    "Resources": Text(
        "resources", WAIT_USER, "maybe", True,
        N_("Not enough free right now"),
        (
            N_("Slurm tried to start this job, but the nodes, CPUs, memory or GPUs it asks for are not all free together."),
            N_("It is usually among the next jobs in its partition."),
        ),
        (NOTHING, SMALLER),
        N_("Running jobs end. If the nodes that fit are out of service for good, the job never starts."),
    ),
    "Licenses": Text(
        "resources", WAIT, "maybe", True,
        N_("Not enough software licenses free"),
        (N_("The job asks for licenses that other jobs are using now."),),
        (N_("See how many there are and how many are free: scontrol show licenses"),),
        N_("A job that holds such a license ends. If the job asks for more than exist, it never starts."),
    ),
    "ReqNodeNotAvail": Text(
        "resources", WAIT_USER_ADMIN, "maybe", False,
        N_("Nodes it needs are not available"),
        (N_("Nodes that this job needs are down, being drained, reserved or kept for maintenance."),),
        (
            N_("See reservations and nodes out of service: scontrol show reservation and sinfo -R"),
            N_("If you named nodes with --nodelist, leave them out so that others can be used."),
        ),
        N_("The nodes come back, or the reservation ends."),
    ),
    "Reservation": Text(
        "resources", WAIT_ADMIN, "maybe", True,
        N_("Waits for its reservation"),
        (N_("The job asked to run in a reservation that has not started yet or whose nodes are busy."),),
        (
            N_("See when it starts: scontrol show reservation"),
            N_("To run outside it: scontrol update JobId=<jobid> ReservationName="),
        ),
        N_("The reservation starts and its nodes are free."),
    ),
    "BurstBufferResources": Text(
        "resources", WAIT, "maybe", True,
        N_("Not enough burst-buffer space"),
        (N_("The job asks for space on the fast temporary storage (burst buffer), and too little is free."),),
        (N_("See how much is free: scontrol show burst"), N_("Or ask for less space in the #BB or #DW lines of the script.")),
        N_("Other jobs give back their space. If it asks for more than there is, it never starts."),
    ),
    "MaxPoweredUpNodes": Text(
        "resources", WAIT_ADMIN, "maybe", True,
        N_("No more nodes may be switched on"),
        (N_("The site limits how many nodes may be powered on at once, and that many are on."),),
        (NOTHING, N_("If it lasts, ask your administrators about the limit.")),
        N_("Other nodes are switched off, or the limit is raised."),
    ),
    "MpiPortsBusy": Text(
        "resources", WAIT, "no", True,
        N_("Network ports for MPI are in use"),
        (N_("On the nodes chosen for this job, all network ports set aside for MPI programs are in use."),),
        (NOTHING,),
        N_("Jobs on those nodes end."),
    ),
    "NvidiaImexChannels": Text(
        "resources", WAIT_ADMIN, "maybe", True,
        N_("No channel for GPU memory sharing is free"),
        (N_("The job needs a channel for sharing GPU memory between nodes (NVIDIA IMEX), and all are in use."),),
        (NOTHING, N_("If it lasts while few jobs run, tell your administrators.")),
        N_("A job that holds a channel ends."),
    ),
    "Dependency": Text(
        "dependency", WAIT_USER, "maybe", False,
        N_("Waits for another job"),
        (N_("You asked that this job start only after another job (--dependency). That has not happened yet."),),
        (
            N_("See which job: scontrol show job <jobid>, entry Dependency"),
            N_("To stop waiting for it: scontrol update JobId=<jobid> Dependency="),
        ),
        N_("The other job starts or ends as asked. If that one never does, this one does not either."),
    ),
    "DependencyNeverSatisfied": Text(
        "dependency", USER, "yes", False,
        N_("The job it waits for did not go as asked"),
        (N_("This job was to start only if another job ended in a certain way, and it ended differently."),),
        (
            N_("Start it anyway: scontrol update JobId=<jobid> Dependency="),
            N_("Or cancel it: scancel <jobid>"),
            N_("To have such jobs cancelled by themselves, submit with --kill-on-invalid-dep=yes."),
        ),
        BY_CHANGE,
    ),
    "BeginTime": Text(
        "time", WAIT_USER, "no", True,
        N_("Its start time has not come yet"),
        (N_("The job may not start before a set time: given with --begin, or two minutes after Slurm put it back."),),
        (N_("To start sooner: scontrol update JobId=<jobid> StartTime=now"),),
        N_("The set time passes; only then does it queue with the others."),
    ),
    "JobArrayTaskLimit": Text(
        "limit", WAIT_USER, "no", True,
        N_("Your job array runs as many tasks as you allowed"),
        (N_("You limited how many tasks of this array run at once (the number after % in --array), and that many run."),),
        (N_("To let more run at once: scontrol update JobId=<jobid> ArrayTaskThrottle=<n> (0 takes the limit away)"),),
        N_("A task of the array ends."),
    ),
    "QOSUsageThreshold": Text(
        "priority", WAIT_ADMIN, "no", False,
        N_("Too much used lately for this QOS"),
        (N_("The service class (QOS) takes no jobs from an account that has used much more than its share lately."),),
        (
            N_("See your fair share: sshare -U"),
            N_("Another QOS may be open to you: scontrol update JobId=<jobid> QOS=<name>"),
        ),
        N_("Past use fades and the fair share rises."),
    ),
    "JobHeldUser": Text(
        "hold", USER_ADMIN, "yes", False,
        N_("On hold"),
        (N_("The job was put on hold by its owner (or by someone on the owner's behalf). It keeps waiting until released."),),
        (N_("Release it: scontrol release <jobid>"), N_("Or cancel it: scancel <jobid>")),
        BY_RELEASE,
    ),
    "JobHeldAdmin": Text(
        "hold", ADMIN, "yes", False,
        N_("On hold by an administrator"),
        (N_("An administrator or Slurm itself put the job on hold. You cannot release it yourself."),),
        (N_("Ask your administrators why, and to release it: scontrol release <jobid>"),),
        N_("An administrator releases it."),
    ),
    "JobHoldMaxRequeue": Text(
        "hold", USER_ADMIN, "yes", False,
        N_("On hold after several failed starts"),
        (N_("The job failed to start several times and was put back each time, so Slurm stopped trying."),),
        (
            N_("Check that the working directory and the output path exist on the nodes; if they do, tell your administrators."),
            RELEASE,
        ),
        BY_RELEASE,
    ),
    "Cleaning": Text(
        "system", WAIT_ADMIN, "maybe", True,
        N_("Its earlier run is being cleaned up"),
        (N_("The job was put back into the queue, and a node has not finished cleaning up after its earlier run."),),
        (NOTHING, N_("If it lasts more than half an hour, a node may hang: tell your administrators.")),
        N_("The clean-up on the nodes ends."),
    ),
    "Prolog": Text(
        "system", WAIT_ADMIN, "no", True,
        N_("Being prepared"),
        (N_("The job has its nodes; the site's preparation script is running on them."),),
        (NOTHING, N_("If it lasts more than half an hour, tell your administrators.")),
        N_("The preparation ends."),
    ),
    "FedJobLock": Text(
        "system", WAIT, "no", True,
        N_("Clusters agree on where it runs"),
        (N_("Several clusters share this job, and they are agreeing on which one starts it."),),
        (NOTHING,),
        N_("The clusters agree, normally at once."),
    ),
    "BurstBufferStageIn": Text(
        "system", WAIT, "no", True,
        N_("Its data is being copied"),
        (N_("The files the job needs are being copied to the fast temporary storage (burst buffer)."),),
        (N_("See how far it is: scontrol show burst"),),
        N_("The copy is complete."),
    ),
}

# Sentences slurmctld prints instead of the code, by (code, kind); they replace the text above.
VARIANTS: dict[tuple[str, str], Text] = {
    ("Resources", "nodes_down"): Text(
        "resources", WAIT_USER_ADMIN, "maybe", True,
        N_("The nodes it could use are out of service or taken"),
        (
            N_("Of the nodes this job could use, too many are down, being drained, restarting, or kept for more important "
               "partitions."),
            N_("This is often just a full partition with a few broken nodes."),
        ),
        (
            N_("See which nodes are out of service and why: sinfo -R"),
            N_("Another partition or GPU type may be open to you: scontrol update JobId=<jobid> Partition=<name>"),
        ),
        N_("Running jobs end or nodes come back."),
    ),
    ("ReqNodeNotAvail", "maintenance"): Text(
        "resources", WAIT_USER, "no", True,
        N_("Would run into a maintenance"),
        (N_("Nodes are reserved for maintenance, and with its time limit this job could still be running when that begins."),),
        (
            N_("See when it begins: scontrol show reservation"),
            N_("If a shorter time is enough, the job may start before: scontrol update JobId=<jobid> TimeLimit=<time>"),
        ),
        N_("The maintenance is over."),
    ),
    ("ReqNodeNotAvail", "reserved"): Text(
        "resources", WAIT_USER, "maybe", True,
        N_("The nodes may be reserved for others"),
        (N_("The nodes this job needs are reserved, or would be needed by a reservation before this job's time limit ends."),),
        (
            N_("See reservations: scontrol show reservation"),
            N_("A shorter time limit may fit before it: scontrol update JobId=<jobid> TimeLimit=<time>"),
            N_("If you named nodes with --nodelist, leave them out so that others can be used."),
        ),
        N_("The reservation ends or lets the job in."),
    ),
    ("ReqNodeNotAvail", "unavailable"): Text(
        "resources", WAIT_USER_ADMIN, "maybe", False,
        N_("Nodes it needs are out of service"),
        (N_("Nodes that this job could use or asked for by name are down or being drained."),),
        (
            N_("See why: sinfo -R"),
            N_("If you named nodes with --nodelist, leave them out so that others can be used."),
        ),
        N_("Administrators bring the nodes back."),
    ),
    ("JobHeldUser", "launch_failed"): Text(
        "hold", USER_ADMIN, "yes", False,
        N_("On hold after a failed start"),
        (N_("A node failed to start the job. Slurm put it back into the queue and holds it."),),
        (
            N_("Release it to try again: scontrol release <jobid>"),
            N_("If it happens again, tell your administrators which node it was; to avoid one: "
               "scontrol update JobId=<jobid> ExcNodeList=<node>"),
        ),
        BY_RELEASE,
    ),
    ("JobHeldUser", "requeued_held"): Text(
        "hold", USER_ADMIN, "yes", False,
        N_("Put back into the queue, on hold"),
        (N_("Someone put the job back into the queue and held it there (scontrol requeuehold)."),),
        (N_("Release it: scontrol release <jobid>"), N_("Or cancel it: scancel <jobid>")),
        BY_RELEASE,
    ),
    ("JobHeldUser", "special_exit"): Text(
        "hold", USER_ADMIN, "yes", False,
        N_("Put back after a special exit, on hold"),
        (N_("The job ended with an exit code that the site treats specially, or was marked so, and is held in the queue."),),
        (N_("Look at its output, then release it: scontrol release <jobid>"), N_("Or cancel it: scancel <jobid>")),
        BY_RELEASE,
    ),
    ("JobHeldUser", "env_failed"): Text(
        "hold", USER_ADMIN, "yes", False,
        N_("On hold: your environment could not be read"),
        (N_("Slurm could not read your login environment on the node in time (--get-user-env), and holds the job."),),
        (
            N_("Check that your shell's start-up files finish quickly, then release it: scontrol release <jobid>"),
        ),
        BY_RELEASE,
    ),
    ("JobHeldAdmin", "burst_buffer"): Text(
        "hold", ADMIN, "yes", False,
        N_("On hold: copying its data took too long"),
        (N_("Copying files to the fast temporary storage (burst buffer) took too long, and Slurm holds the job."),),
        (N_("Check the paths in the #BB or #DW lines, then ask your administrators to release it."),),
        N_("An administrator releases it."),
    ),
    ("TimeLimit", "budget"): Text(
        "ended", USER_ADMIN, "yes", False,
        N_("Stopped: a budget was used up"),
        (N_("The job was stopped while running, because the time budget of its account or QOS was used up."),),
        (N_("Ask your administrators about the budget before you submit again."),),
        N_("It has ended."),
        after_end=True,
    ),
}
