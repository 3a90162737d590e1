"""Plain words for the reasons where waiting is not the point: requests that cannot run, faults, ends, old codes."""

from __future__ import annotations

from queuecast.i18n import N_
from queuecast.reasons.texts import (
    ADMIN,
    BY_CHANGE,
    BY_RELEASE,
    NOTHING,
    RELEASE,
    USER,
    USER_ADMIN,
    WAIT_ADMIN,
    WAIT_USER_ADMIN,
    Text,
)

_OTHER_PARTITION = N_("Use another partition: scontrol update JobId=<jobid> Partition=<name>")
_SEE_PARTITION = N_("See what the partition allows: scontrol show partition <name>")
_SHORTEN = N_("Shorten the job: scontrol update JobId=<jobid> TimeLimit=<time>")
_ENDED = N_("It has ended.")
_TELL_ADMIN = N_("If it happens again, tell your administrators.")
_REASON_CHANGES = N_("Slurm replaces or clears it at its next pass.")

FAULTS: dict[str, Text] = {
    # Requests that this cluster cannot or may not run.
    "BadConstraints": Text(
        "configuration", USER_ADMIN, "yes", False,
        N_("No node here can ever run it as it is"),
        (
            N_("No node of the partition has what the job asks for: too many GPUs, CPUs or too much memory on one node, or a "
               "feature that does not exist."),
            N_("Slurm has put it on hold."),
        ),
        (
            N_("See what the nodes have: sinfo -N --Format=NodeList,CPUs,Memory,Gres,Features"),
            N_("Correct the request, then release it: scontrol release <jobid>; or cancel it and submit again."),
        ),
        BY_CHANGE,
    ),
    "Constraints": Text(
        "configuration", WAIT_USER_ADMIN, "maybe", False,
        N_("No node meets its conditions now"),
        (N_("The conditions on nodes (features or extra data) are not met by any node at the moment, but might be later."),),
        (N_("If you can, drop conditions: scontrol update JobId=<jobid> Features=<name>"),),
        N_("A node comes to meet the conditions."),
    ),
    "PartitionTimeLimit": Text(
        "configuration", USER_ADMIN, "yes", False,
        N_("Asks for more time than its partition allows"),
        (N_("The time limit is longer than the longest this partition takes. It never starts as it is."),),
        (_SHORTEN, _OTHER_PARTITION, _SEE_PARTITION),
        BY_CHANGE,
    ),
    "PartitionNodeLimit": Text(
        "configuration", USER_ADMIN, "yes", False,
        N_("Asks for a number of nodes its partition does not take"),
        (N_("The number of nodes is above or below what this partition allows, or more than it has. It never starts as it is."),),
        (N_("Change the number of nodes: scontrol update JobId=<jobid> NumNodes=<n>"), _OTHER_PARTITION, _SEE_PARTITION),
        BY_CHANGE,
    ),
    "PartitionConfig": Text(
        "configuration", USER_ADMIN, "yes", False,
        N_("Its partition does not take this job"),
        (N_("The partition's rules on who may use it (accounts, groups, QOS, login nodes) shut this job out."),),
        (_OTHER_PARTITION, _SEE_PARTITION),
        BY_CHANGE,
    ),
    "AccountNotAllowed": Text(
        "configuration", USER_ADMIN, "yes", False,
        N_("Its account may not use this partition"),
        (N_("The partition takes jobs of certain accounts only, and this job's account is not one of them."),),
        (
            N_("Use an account that is allowed: scontrol update JobId=<jobid> Account=<name>"),
            _OTHER_PARTITION,
            N_("See your accounts: sacctmgr show assoc where user=$USER format=Account,Partition,QOS"),
        ),
        BY_CHANGE,
    ),
    "QOSNotAllowed": Text(
        "configuration", USER_ADMIN, "yes", False,
        N_("Its QOS may not use this partition"),
        (N_("The partition takes certain service classes (QOS) only, and this job's is not one of them."),),
        (N_("Use a QOS that is allowed: scontrol update JobId=<jobid> QOS=<name>"), _OTHER_PARTITION, _SEE_PARTITION),
        BY_CHANGE,
    ),
    "MaxMemPerLimit": Text(
        "configuration", USER_ADMIN, "yes", False,
        N_("Asks for more memory per CPU or node than allowed"),
        (N_("The memory asked for is above what the partition allows per CPU or per node. It never starts as it is."),),
        (
            N_("Ask for less memory (--mem, --mem-per-cpu), or for more CPUs to go with it."),
            _OTHER_PARTITION,
            _SEE_PARTITION,
        ),
        BY_CHANGE,
    ),
    "InvalidAccount": Text(
        "configuration", USER_ADMIN, "yes", False,
        N_("Its account is not valid any more"),
        (N_("The account the job is charged to was removed or closed, or you are no longer in it."),),
        (
            N_("Use another account: scontrol update JobId=<jobid> Account=<name>"),
            N_("Or ask your administrators or your account's coordinator to let you in."),
        ),
        BY_CHANGE,
    ),
    "InvalidQOS": Text(
        "configuration", USER_ADMIN, "yes", False,
        N_("Its QOS is not valid for you"),
        (N_("The service class (QOS) of the job was removed, or you may not use it."),),
        (
            N_("Use another: scontrol update JobId=<jobid> QOS=<name>"),
            N_("See yours: sacctmgr show assoc where user=$USER format=Account,QOS"),
        ),
        BY_CHANGE,
    ),
    "ReservationDeleted": Text(
        "hold", USER_ADMIN, "yes", False,
        N_("Its reservation was deleted"),
        (N_("The reservation the job asked for no longer exists, and Slurm holds the job."),),
        (
            N_("Run it without: scontrol update JobId=<jobid> ReservationName="),
            N_("Then release it: scontrol release <jobid>"),
        ),
        BY_CHANGE,
    ),
    "ReservationInvalid": Text(
        "hold", USER_ADMIN, "yes", False,
        N_("It may not use its reservation any more"),
        (N_("The reservation the job asked for no longer admits it, and Slurm holds the job."),),
        (
            N_("Run it without: scontrol update JobId=<jobid> ReservationName="),
            N_("Then release it: scontrol release <jobid>"),
        ),
        BY_CHANGE,
    ),
    "BurstBufferOperation": Text(
        "hold", USER_ADMIN, "yes", False,
        N_("Copying its data failed"),
        (N_("An operation on the fast temporary storage (burst buffer) failed, and Slurm holds the job."),),
        (N_("Check the paths in the #BB or #DW lines of the script."), RELEASE),
        BY_RELEASE,
    ),
    "SchedDefer": Text(
        "configuration", USER, "yes", False,
        N_("Could not start at once, as asked"),
        (N_("The job asked to start at once or not at all (--immediate), and this cluster never starts jobs at once."),),
        (N_("Submit it again without --immediate."),),
        N_("It does not: the request has failed."),
    ),
    # The state of the system.
    "PartitionDown": Text(
        "system", ADMIN, "no", False,
        N_("Its partition is closed"),
        (N_("Administrators have taken the partition out of service; no job starts in it."),),
        (_OTHER_PARTITION, N_("See the state of partitions: sinfo -s")),
        N_("Administrators open the partition again."),
    ),
    "PartitionInactive": Text(
        "system", ADMIN, "no", False,
        N_("Its partition is switched off"),
        (N_("Administrators have made the partition inactive: it neither takes nor starts jobs."),),
        (_OTHER_PARTITION, N_("See the state of partitions: sinfo -s")),
        N_("Administrators switch the partition on again."),
    ),
    "NodeDown": Text(
        "system", WAIT_ADMIN, "no", False,
        N_("One of its nodes failed"),
        (N_("A node of the job went down. The fault is the machine's, not the job's."),),
        (N_("If it was not put back into the queue, submit it again."), _TELL_ADMIN),
        N_("Slurm puts the job back into the queue, where that is allowed."),
        after_end=True,
    ),
    "SystemFailure": Text(
        "system", ADMIN, "maybe", False,
        N_("Slurm or a file system failed"),
        (N_("Slurm itself or a file system failed when the job was to start."),),
        (N_("Tell your administrators; submit it again if it is gone."),),
        N_("The fault is mended and the start is tried again."),
        after_end=True,
    ),
    "JobLaunchFailure": Text(
        "system", USER_ADMIN, "maybe", False,
        N_("It could not be started on its node"),
        (N_("The start on the node failed: often the working directory or output path is missing there."),),
        (N_("Check that the working directory and the output path exist on the nodes."), RELEASE, _TELL_ADMIN),
        N_("Slurm tries again, or someone releases or resubmits it."),
        after_end=True,
    ),
    # Ends.
    "NonZeroExitCode": Text(
        "ended", USER, "yes", False,
        N_("The job's own program failed"),
        (N_("The script or program ended with an exit code other than zero."),),
        (N_("Read the end of its output and error files."), N_("See the exit code: sacct -j <jobid> -o JobID,State,ExitCode")),
        _ENDED,
        after_end=True,
    ),
    "RaisedSignal": Text(
        "ended", USER, "yes", False,
        N_("The job was ended by a signal"),
        (N_("The program crashed or was stopped by a signal; 9 is a kill, 11 a memory access error, 15 a request to stop."),),
        (
            N_("Read the end of its output and error files."),
            N_("Signal 53 means that the output file could not be opened: check the output path."),
        ),
        _ENDED,
        after_end=True,
    ),
    "TimeLimit": Text(
        "ended", USER, "yes", False,
        N_("The job ran into its time limit"),
        (N_("The job was still running when its time limit was reached, and Slurm stopped it."),),
        (N_("Submit it again with a longer --time, or let it save its state and continue in a further job."),),
        _ENDED,
        after_end=True,
    ),
    "OutOfMemory": Text(
        "ended", USER, "yes", False,
        N_("The job ran out of memory"),
        (N_("The job used more main memory than it had asked for, and was stopped, wholly or in part."),),
        (
            N_("Submit it again with more --mem."),
            N_("See what it used: sacct -j <jobid> -o JobID,State,ReqMem,MaxRSS"),
        ),
        _ENDED,
        after_end=True,
    ),
    "InactiveLimit": Text(
        "ended", USER, "yes", False,
        N_("The interactive job was idle too long"),
        (N_("Nothing was run in the interactive job for longer than the site allows."),),
        (N_("Submit it again; for work without you, use sbatch."),),
        _ENDED,
        after_end=True,
    ),
    "DeadLine": Text(
        "ended", USER, "yes", False,
        N_("It could not finish by its deadline"),
        (N_("The job had a --deadline that it can no longer keep, so Slurm ends it."),),
        (N_("Submit it again with a later --deadline or none, or with a shorter --time."),),
        N_("It has ended, or ends now."),
        after_end=True,
    ),
}

_LEGACY = Text(
    "limit", WAIT_USER_ADMIN, "maybe", False,
    N_("A limit of your account or QOS"),
    (N_("A limit set on your account or service class (QOS) keeps the job from starting; this old code does not say which."),),
    (N_("See limits: sacctmgr show assoc where user=$USER and sacctmgr show qos"),),
    N_("The jobs that count towards the limit end, or the request or the limit is changed."),
)
LEGACY: dict[str, Text] = {
    "AccountingPolicy": _LEGACY,
    "AssociationJobLimit": _LEGACY,
    "AssociationResourceLimit": _LEGACY,
    "AssociationTimeLimit": _LEGACY,
    "QOSJobLimit": _LEGACY,
    "QOSResourceLimit": _LEGACY,
    "QOSTimeLimit": _LEGACY,
}

_BLOCK = Text(
    "system", WAIT_ADMIN, "maybe", False,
    N_("A fault of the machine's blocks"),
    (N_("On a machine made of blocks (IBM Blue Gene), a block of nodes could not be set up or freed."),),
    (NOTHING, _TELL_ADMIN),
    N_("The block works again."),
)
_POWER = Text(
    "resources", WAIT_ADMIN, "maybe", True,
    N_("Not enough electric power"),
    (N_("The site limits its electric power, and too little is left for this job or it is set aside for others."),),
    (NOTHING,),
    N_("Other jobs end, or more power is allowed."),
)
REMOVED: dict[str, Text] = {
    "BlockMaxError": _BLOCK,
    "BlockFreeAction": _BLOCK,
    "PowerNotAvail": _POWER,
    "PowerReserved": _POWER,
    "FrontEndDown": Text(
        "system", WAIT_ADMIN, "no", False,
        N_("The machine that starts jobs is down"),
        (N_("On this cluster, jobs start through a front-end machine, and none is available."),),
        (NOTHING, _TELL_ADMIN),
        N_("The front-end machine comes back."),
    ),
}

UNKNOWN = Text(
    "system", WAIT_USER_ADMIN, "maybe", False,
    N_("A reason this program does not know"),
    (N_("Slurm gives a reason that this program does not know."),),
    (N_("See the job: scontrol show job <jobid>"), N_("Ask your administrators.")),
    _REASON_CHANGES,
)
