from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from babel.messages.extract import extract_from_dir
from hypothesis import example, given
from hypothesis import strategies as st

import queuecast.reasons as reasons_module
from queuecast.i18n import Message, use_language
from queuecast.reasons import ALL_REASONS, ReasonInfo, explain_reason, never_starts
from queuecast.slurmtext.reasoncodes import LimitCode, known_code, parse_limit_code, since
from queuecast.slurmtext.reasons import Reason, parse_reason

# The limits per resource of Slurm 25.11, one line per family, in its own uneven spelling:
# who can act (w wait, u user, a admin), permanence, first release, then the codes.
FAMILIES = """
F1  wa  maybe 17.11 AssocGrp{CpuLimit,MemLimit,NodeLimit,GRES,License,BB,Energy,Billing,Unknown}
F2  wa  maybe 17.11 AssocGrp{CPUMinutesLimit,MemMinutes,NodeMinutes,GRESMinutes,LicenseMinutes,BBMinutes,EnergyMinutes,BillingMinutes,UnknownMinutes}
F3  wu  maybe 17.11 AssocGrp{CPURunMinutesLimit,MemRunMinutes,NodeRunMinutes,GRESRunMinutes,LicenseRunMinutes,BBRunMinutes,EnergyRunMinutes,BillingRunMinutes,UnknownRunMinutes}
F4  ua  yes   17.11 AssocMax{CpuPerJobLimit,MemPerJob,NodePerJobLimit,GRESPerJob,LicensePerJob,BBPerJob,EnergyPerJob,BillingPerJob,UnknownPerJob}
F5  ua  yes   17.11 AssocMax{CpuPerNode,MemPerNode,GRESPerNode,BBPerNode,EnergyPerNode,BillingPerNode,UnknownPerNode}
F6  ua  yes   17.11 AssocMax{CpuMinutesPerJobLimit,MemMinutesPerJob,NodeMinutesPerJob,GRESMinutesPerJob,LicenseMinutesPerJob,BBMinutesPerJob,EnergyMinutesPerJob,BillingMinutesPerJob,UnknownMinutesPerJob}
F7  wa  maybe 17.11 QOSGrp{CpuLimit,MemLimit,NodeLimit,GRES,License,BB,Energy,Billing,Unknown}
F8  wa  maybe 17.11 QOSGrp{CPUMinutesLimit,MemoryMinutes,NodeMinutes,GRESMinutes,LicenseMinutes,BBMinutes,EnergyMinutes,BillingMinutes,UnknownMinutes}
F9  wua maybe 17.11 QOSGrp{CPURunMinutesLimit,MemoryRunMinutes,NodeRunMinutes,GRESRunMinutes,LicenseRunMinutes,BBRunMinutes,EnergyRunMinutes,BillingRunMinutes,UnknownRunMinutes}
F10 ua  yes   17.11 QOSMax{CpuPerJobLimit,MemoryPerJob,NodePerJobLimit,GRESPerJob,LicensePerJob,BBPerJob,EnergyPerJob,BillingPerJob,UnknownPerJob}
F11 ua  yes   17.11 QOSMax{CpuPerNode,MemoryPerNode,GRESPerNode,BBPerNode,EnergyPerNode,BillingPerNode,UnknownPerNode}
F12 ua  yes   17.11 QOSMax{CpuMinutesPerJobLimit,MemoryMinutesPerJob,NodeMinutesPerJob,GRESMinutesPerJob,LicenseMinutesPerJob,EnergyMinutesPerJob,BillingMinutesPerJob,UnknownMinutesPerJob}
F13 w   maybe 17.11 QOSMax{CpuPerUserLimit,MemoryPerUser,NodePerUserLimit,GRESPerUser,LicensePerUser,BBPerUser,EnergyPerUser,BillingPerUser,UnknownPerUser}
F14 w   maybe 17.11 Max{CpuPerAccount,MemoryPerAccount,NodePerAccount,GRESPerAccount,LicensePerAccount,BBPerAccount,EnergyPerAccount,BillingPerAccount,UnknownPerAccount}
F15 wu  maybe 24.05 Max{CpuRunMinsPerUser,MemoryRunMinsPerUser,NodeRunMinsPerUser,GRESRunMinsPerUser,LicenseRunMinsPerUser,BBRunMinsPerUser,EnergyRunMinsPerUser,BillingRunMinsPerUser,UnknownRunMinsPerUser}
F16 wu  maybe 24.05 Max{CpuRunMinsPerAccount,MemoryRunMinsPerAccount,NodeRunMinsPerAccount,GRESRunMinsPerAccount,LicenseRunMinsPerAccount,BBRunMinsPerAccount,EnergyRunMinsPerAccount,BillingRunMinsPerAccount,UnknownRunMinsPerAccount}
F17 ua  yes   17.11 QOSMin{CpuNotSatisfied,Memory,Node,GRES,License,BB,Energy,Billing,Unknown}
"""  # noqa: E501 - a table, one family per line

# The other codes: code, who, permanence, wait class.
SINGLES = """
None w no none | Priority w no priority | Resources wu maybe resources | Licenses w maybe resources
Dependency wu maybe dependency | DependencyNeverSatisfied u yes dependency | BeginTime wu no time
JobArrayTaskLimit wu no limit | JobHeldUser ua yes hold | JobHeldAdmin a yes hold | JobHoldMaxRequeue ua yes hold
BadConstraints ua yes configuration | Constraints wua maybe configuration | ReqNodeNotAvail wua maybe resources
Reservation wa maybe resources | ReservationDeleted ua yes hold | ReservationInvalid ua yes hold
PartitionDown a no system | PartitionInactive a no system | PartitionTimeLimit ua yes configuration
PartitionNodeLimit ua yes configuration | PartitionConfig ua yes configuration | AccountNotAllowed ua yes configuration
QOSNotAllowed ua yes configuration | MaxMemPerLimit ua yes configuration | QOSUsageThreshold wa no priority
InvalidAccount ua yes configuration | InvalidQOS ua yes configuration | BurstBufferResources w maybe resources
BurstBufferStageIn w no system | BurstBufferOperation ua yes hold | Cleaning wa maybe system | Prolog wa no system
DeadLine u yes ended | FedJobLock w no system | SchedDefer u yes configuration | MaxPoweredUpNodes wa maybe resources
MpiPortsBusy w no resources | NvidiaImexChannels wa maybe resources | NodeDown wa no system
SystemFailure a maybe system | JobLaunchFailure ua maybe system | NonZeroExitCode u yes ended | RaisedSignal u yes ended
TimeLimit u yes ended | OutOfMemory u yes ended | InactiveLimit u yes ended | AccountingPolicy wua maybe limit
AssociationJobLimit wua maybe limit | AssociationResourceLimit wua maybe limit | AssociationTimeLimit wua maybe limit
QOSJobLimit wua maybe limit | QOSResourceLimit wua maybe limit | QOSTimeLimit wua maybe limit
AssocGrpJobsLimit wa maybe limit | AssocGrpSubmitJobsLimit wa no limit | AssocGrpWallLimit wa maybe limit
AssocMaxJobsLimit w no limit | AssocMaxSubmitJobLimit w no limit | AssocMaxWallDurationPerJobLimit ua yes limit
QOSGrpJobsLimit wa no limit | QOSGrpSubmitJobsLimit w no limit | QOSGrpWallLimit wa maybe limit
QOSMaxJobsPerUserLimit w no limit | MaxJobsPerAccount w no limit | QOSMaxSubmitJobPerUserLimit w no limit
MaxSubmitJobsPerAccount w no limit | QOSMaxWallDurationPerJobLimit ua yes limit
"""
REMOVED = {"BlockMaxError": "23.02", "BlockFreeAction": "23.02", "PowerNotAvail": "24.05", "PowerReserved": "24.05",
           "FrontEndDown": "25.05"}
WHO = {"w": "wait", "u": "user", "a": "admin"}


def _families() -> dict[str, tuple[str, str, str, str]]:
    """Code -> family, who, permanence, since."""
    table = {}
    for line in FAMILIES.strip().splitlines():
        family, who, permanence, first, codes = line.split()
        prefix, ends = codes.rstrip("}").split("{")
        for end in ends.split(","):
            table[prefix + end] = (family, who, permanence, first)
    return table


def _singles() -> dict[str, tuple[str, str, str]]:
    rows = [entry.split() for entry in SINGLES.replace("\n", "|").split("|") if entry.strip()]
    return {code: (who, permanence, wait_class) for code, who, permanence, wait_class in rows}


FAMILY_OF, SINGLE = _families(), _singles()
EXPECTED = set(FAMILY_OF) | set(SINGLE)

# What squeue printed for pending jobs of real small clusters, 22.05 and 24.11.
SEEN = """
Priority
BeginTime
DependencyNeverSatisfied
QOSGrpGRES
ReqNodeNotAvail, Reserved for maintenance
Resources
JobHeldUser
Dependency
Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions
ReqNodeNotAvail, May be reserved for other job
QOSMaxGRESPerUser
Reservation
QOSMinGRES
QOSMaxWallDurationPerJobLimit
QOSMaxNodePerJobLimit
QOSMaxGRESPerJob
QOSMaxCpuPerJobLimit
QOSGrpGRESMinutes
PartitionTimeLimit
PartitionNodeLimit
PartitionInactive
MaxMemPerLimit
JobHeldAdmin
AssocMaxGRESPerJob
AssocGrpCPUMinutesLimit
Job's account not permitted to use this partition (h100 allows vision,nlp not bio)
AssocGrpMemLimit
AssocGrpCpuLimit
Reservation shortlived was deleted
QOSGrpJobsLimit
PartitionDown
JobArrayTaskLimit
InvalidQOS
ReqNodeNotAvail, UnavailableNodes:a100-04
QOSMaxJobsPerUserLimit
MaxGRESPerAccount
BadConstraints
QOSMaxCpuPerUserLimit
AssocMaxJobsLimit
Licenses
AssocMaxWallDurationPerJobLimit
job requeued in held state
AssocGrpGRES
TimeLimit
NonZeroExitCode
PartitionConfig
ReqNodeNotAvail
AssocMaxSubmitJobLimit
JobLaunchFailure
DeadLine
OutOfMemory
RaisedSignal:53(Real-time_signal_19)
RaisedSignal:11(Segmentation_fault)
""".strip().splitlines()


# ---------------------------------------------------------------- the list of codes


def test_the_codes_of_25_11_and_the_removed_ones() -> None:
    # 218 members of the enum; two texts stand for two members each (PartitionDown, AssocMaxBBMinutesPerJob).
    assert len(EXPECTED) == 218 - 2
    assert set(ALL_REASONS) == EXPECTED | set(REMOVED)
    assert len(ALL_REASONS) == len(set(ALL_REASONS))


@pytest.mark.parametrize("code", sorted(EXPECTED | set(REMOVED)))
def test_every_code_is_explained(code: str) -> None:
    info = explain_reason(Reason(code))
    assert info.code == code
    assert info.who
    assert info.since is not None
    assert info.removed == REMOVED.get(code)
    assert not info.title.endswith(".")
    assert info.title[0].isupper()
    for sentence in (info.meaning, info.ends_by):
        assert sentence.endswith((".", "?")), sentence
    assert info.steps
    assert all(step and step[0].isupper() for step in info.steps)
    for text in (info.title, info.meaning, info.todo, info.ends_by):
        assert "%(" not in text
        assert "  " not in text
        assert len(re.findall("[A-Z]", code)) == 1 or code not in text, "the explanation must not lean on the code"
        assert "association" not in text.lower(), "jargon"
        assert "TRES" not in text.replace(f"User,{_field(text)}", "").replace(f"Name,{_field(text)}", "")
    assert len(info.title) <= 80
    assert len(info.meaning) <= 360
    if info.permanence == "yes":
        assert not info.predictable
        assert set(info.who) <= {"user", "admin"}


def _field(text: str) -> str:
    """The column of sacctmgr that a step names; there the word TRES cannot be avoided."""
    found = re.search(r"format=(?:Account,User|Name),(\w+)", text)
    return found[1] if found else "-"


@pytest.mark.parametrize("code", sorted(FAMILY_OF))
def test_limits_per_resource_agree_with_their_family(code: str) -> None:
    family, who, permanence, first = FAMILY_OF[code]
    info = explain_reason(code)
    assert info.wait_class == "limit"
    assert set(info.who) == {WHO[letter] for letter in who}
    assert info.permanence == permanence
    assert info.since == first == since(code)
    assert info.predictable == (permanence == "maybe" and family not in ("F2", "F8"))
    assert never_starts(code) == (permanence == "yes")


@pytest.mark.parametrize("code", sorted(SINGLE))
def test_other_codes_agree_with_the_table(code: str) -> None:
    who, permanence, wait_class = SINGLE[code]
    info = explain_reason(Reason(code))
    assert set(info.who) == {WHO[letter] for letter in who}
    assert info.permanence == permanence
    assert info.wait_class == wait_class


def test_first_releases() -> None:
    later = {code: since(code) for code in EXPECTED if since(code) != "17.11" and "RunMinsPer" not in code}
    assert later == {
        "SchedDefer": "20.02", "RaisedSignal": "23.02", "ReservationInvalid": "23.02", "Constraints": "23.11",
        "MaxPoweredUpNodes": "24.05", "MpiPortsBusy": "24.05", "NvidiaImexChannels": "25.11",
    }
    assert since("NoSuchCode") is None


def test_families_say_the_resource_and_no_other() -> None:
    nouns = {"Cpu": "CPU", "CPU": "CPU", "Mem": "memory", "Node": "node", "GRES": "GPU", "License": "license", "BB": "burst",
             "Energy": "energy", "Billing": "billing"}
    for code in FAMILY_OF:
        part = next((part for part in nouns if re.search(rf"(Grp|Max|Min){part}", code)), None)
        if part is not None:
            assert nouns[part] in explain_reason(code).title, code


def test_texts_of_the_common_gpu_limits() -> None:
    per_user = explain_reason("QOSMaxGRESPerUser")
    assert per_user.meaning.startswith("Your running jobs already use all the GPUs that this QOS allows one user")
    assert "MaxTRESPU" in per_user.todo
    assert "own jobs" in per_user.ends_by
    per_job = explain_reason("QOSMaxGRESPerJob")
    assert "never starts as it is" in per_job.meaning
    assert per_job.steps[0].startswith("Ask for fewer GPUs")
    minutes = explain_reason("AssocGrpGRESMinutes")
    assert "budget of GPU-minutes" in minutes.meaning
    assert "fades or is reset" in minutes.ends_by
    assert "shorter time limit" in explain_reason("MaxGRESRunMinsPerUser").steps[0]
    assert explain_reason("QOSMinGRES").steps[0].startswith("Ask for more GPUs")


def test_a_qos_limit_may_be_the_partitions() -> None:
    for code in FAMILY_OF:
        about_qos = code.startswith(("QOS", "Max"))
        assert ("partition's" in explain_reason(code).meaning) == about_qos, code
    assert "burst-buffer limit of a QOS" in explain_reason("AssocMaxBBMinutesPerJob").meaning


# ---------------------------------------------------------------- reading by parts (D14)


@pytest.mark.parametrize(
    ("code", "parts"),
    [
        ("AssocGrpCpuLimit", LimitCode("assoc", "grp", "group", "cpu", "use")),
        ("AssocGrpCPUMinutesLimit", LimitCode("assoc", "grp", "group", "cpu", "minutes")),
        ("AssocGrpCPURunMinutesLimit", LimitCode("assoc", "grp", "group", "cpu", "run_minutes")),
        ("QOSMaxGRESPerUser", LimitCode("qos", "max", "user", "gres", "use")),
        ("AssocGrpGRESMinutes", LimitCode("assoc", "grp", "group", "gres", "minutes")),
        ("MaxGRESPerAccount", LimitCode("qos", "max", "account", "gres", "use")),
        ("MaxMemoryRunMinsPerAccount", LimitCode("qos", "max", "account", "mem", "run_minutes")),
        ("QOSMaxMemoryPerUser", LimitCode("qos", "max", "user", "mem", "use")),
        ("AssocGrpMemLimit", LimitCode("assoc", "grp", "group", "mem", "use")),
        ("QOSMaxCpuMinutesPerJobLimit", LimitCode("qos", "max", "job", "cpu", "minutes")),
        ("AssocMaxGRESPerNode", LimitCode("assoc", "max", "node", "gres", "use")),
        ("QOSMinCpuNotSatisfied", LimitCode("qos", "min", "job", "cpu", "use")),
        ("AssocMaxJobsLimit", LimitCode("assoc", "max", "user", "jobs", "use")),
        ("MaxSubmitJobsPerAccount", LimitCode("qos", "max", "account", "submit", "use")),
        ("QOSMaxWallDurationPerJobLimit", LimitCode("qos", "max", "job", "wall", "use")),
        ("QOSGrpWallLimit", LimitCode("qos", "grp", "group", "wall", "use")),
        ("MaxMemPerLimit", None),
        ("MaxPoweredUpNodes", None),
        ("Priority", None),
        ("QOSMaxMysteryPerReservation", None),
    ],
)
def test_limit_names_by_parts(code: str, parts: LimitCode | None) -> None:
    assert parse_limit_code(code) == parts


def test_every_limit_code_reads_by_parts() -> None:
    for code in FAMILY_OF:
        assert parse_limit_code(code) is not None, code


@pytest.mark.parametrize(
    ("code", "like", "word"),
    [
        ("QOSMaxShardPerUser", "QOSMaxUnknownPerUser", "resources of one kind"),
        ("MaxShardPerAccount", "MaxUnknownPerAccount", "resources of one kind"),
        ("AssocGrpTapeRunMinutes", "AssocGrpUnknownRunMinutes", "minutes of one resource"),
        ("QOSMaxGRESMinutesPerJobLimit", "QOSMaxGRESMinutesPerJob", "GPU-minutes"),
        ("AssocMaxTapePerJob", "AssocMaxUnknownPerJob", "resources of one kind"),
        ("QOSMinTape", "QOSMinUnknown", "resources of one kind"),
    ],
)
def test_a_later_limit_is_understood_by_its_parts(code: str, like: str, word: str) -> None:
    parsed = parse_reason(code)
    assert parsed == Reason(code, None, "unknown")
    new, known = explain_reason(parsed), explain_reason(like)
    assert (new.who, new.permanence, new.predictable, new.wait_class) == (
        known.who, known.permanence, known.predictable, known.wait_class,
    )
    assert word in new.title + new.meaning
    assert new.since is None
    assert code in new.meaning


def test_a_later_limit_of_another_build_is_still_a_limit() -> None:
    for code in ("QOSMaxMysteryPerReservation", "AssocMaxMystery", "QOSGrpGRESPerUser"):
        info = explain_reason(code)
        assert info.wait_class == "limit"
        assert info.permanence == "maybe"
        assert not info.predictable


def test_a_later_code_of_no_known_build() -> None:
    info = explain_reason("TopologyFragmented")
    assert parse_reason("TopologyFragmented") == Reason("TopologyFragmented", None, "unknown")
    assert info.title == "A reason this program does not know"
    assert "TopologyFragmented" in info.meaning
    assert not info.predictable
    assert not never_starts("TopologyFragmented")


# ---------------------------------------------------------------- parsing


@pytest.mark.parametrize("text", SEEN)
@pytest.mark.parametrize("shape", ["{}", "({})", "scontrol"])
def test_reasons_seen_on_real_clusters_parse(text: str, shape: str) -> None:
    printed = re.sub(r"\s", "_", text) if shape == "scontrol" else shape.format(text)
    reason = parse_reason(printed)
    assert reason is not None
    assert known_code(reason.code) == reason.code
    assert reason.kind != "unknown"
    assert reason.code != "Unknown"


@pytest.mark.parametrize("text", ["", "  ", "None", "(None)", "(null)", "()", "NONE", "N/A", "((null))"])
def test_no_reason(text: str) -> None:
    """D16."""
    assert parse_reason(text) is None


@pytest.mark.parametrize("code", ALL_REASONS)
def test_codes_parse_to_themselves(code: str) -> None:
    expected = None if code == "None" else Reason(code)
    assert parse_reason(code) == parse_reason(f"({code})") == parse_reason(code.upper()) == expected


@pytest.mark.parametrize(
    ("text", "kind", "nodes"),
    [
        ("(ReqNodeNotAvail, UnavailableNodes:gpu[01-03],cpu7)", "unavailable", ("gpu01", "gpu02", "gpu03", "cpu7")),
        ("ReqNodeNotAvail,_UnavailableNodes:a100-04", "unavailable", ("a100-04",)),
        ("ReqNodeNotAvail,_UnavailableNodes:rack_1", "unavailable", ("rack_1",)),
        ("ReqNodeNotAvail(Unavailable:cn[1-2])", "unavailable", ("cn1", "cn2")),
        ("ReqNodeNotAvail, UnavailableNodes:n1,n2,Priority,JobArrayTaskLimit", "unavailable", ("n1", "n2")),
        ("(ReqNodeNotAvail, UnavailableNodes:", "unavailable", ()),
        ("(ReqNodeNotAvail, UnavailableNodes:gpu[01-0", "unavailable", ()),
        ("(ReqNodeNotAvail, Un", "unavailable", ()),
        ("(ReqNodeNotAvail, May be reserved for other job)", "reserved", ()),
        ("ReqNodeNotAvail, May Be Reserved For Other Job", "reserved", ()),
        ("(ReqNodeNotAvail, Reserved for maintenance)", "maintenance", ()),
        ("reqnodenotavail, reserved for maintenance", "maintenance", ()),
        ("ReqNodeNotAvail,_Reserved_for_maintenance", "maintenance", ()),
        ("ReqNodeNotAvail", None, ()),
        ("ReqNodeNotAvail,", None, ()),
        ("ReqNodeNotAvail,Priority", "joined", ()),
        ("ReqNodeNotAvail, Something new", "detail", ()),
    ],
)
def test_nodes_not_available(text: str, kind: str | None, nodes: tuple[str, ...]) -> None:
    """D10."""
    reason = parse_reason(text)
    assert reason is not None
    assert (reason.code, reason.kind, reason.nodes) == ("ReqNodeNotAvail", kind, nodes)


@pytest.mark.parametrize(
    ("text", "code", "kind"),
    [
        ("(Nodes required for job are DOWN, DRAINED or reserved for jobs in higher priority partitions)",
         "Resources", "nodes_down"),
        ("Nodes required for job are DOWN, DRAINED, REBOOTING or reserved for jobs in higher priority partitions",
         "Resources", "nodes_down"),
        ("(Nodes required for", "Resources", "nodes_down"),
        ("(launch failed requeued held)", "JobHeldUser", "launch_failed"),
        ("launch_failed_requeued_held", "JobHeldUser", "launch_failed"),
        ("job requeued in held state", "JobHeldUser", "requeued_held"),
        ("job requeued in special exit state", "JobHeldUser", "special_exit"),
        ("(user env retrieval failed requeued held)", "JobHeldUser", "env_failed"),
        ("Reservation course-2 was deleted", "ReservationDeleted", "deleted"),
        ("Job's account not permitted to use this partition (big denies bio including bio)",
         "AccountNotAllowed", "partition_access"),
        ("Job's account not known, so it can't use this partition (big allows nlp)", "AccountNotAllowed", "partition_access"),
        ("Job's QOS not permitted to use this partition (big allows long not high)", "QOSNotAllowed", "partition_access"),
        ("burst_buffer/lua: slurm_bb_data_in: no such file (2)", "BurstBufferOperation", "burst_buffer"),
        ("burst_buffer/datawarp:_stage_in:_failed", "BurstBufferOperation", "burst_buffer"),
        ("Burst buffer stage-in timeout", "JobHeldAdmin", "burst_buffer"),
        ("Job is at or exceeds QOS high's group max TRES(cpu) minutes of 10 with 12", "TimeLimit", "budget"),
        ("FrontEndDown", "FrontEndDown", None),
        ("PartitionDown", "PartitionDown", None),
        ("RaisedSignal:9(Killed)", "RaisedSignal", "signal"),
    ],
)
def test_sentences(text: str, code: str, kind: str | None) -> None:
    """D11, D13."""
    reason = parse_reason(text)
    assert reason is not None
    assert (reason.code, reason.kind) == (code, kind)


def test_nested_parentheses_survive() -> None:
    sentence = "Job's account not permitted to use this partition (h100 allows vision,nlp not bio)"
    for text in (sentence, f"({sentence})", sentence.replace(" ", "_")):
        reason = parse_reason(text)
        assert reason is not None
        assert reason.detail == sentence
    assert parse_reason("(a) or (b)") == Reason("Unknown", "(a) or (b)", "unknown")
    assert "h100 allows vision,nlp not bio" in explain_reason(sentence).meaning


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("Priority,Resources", Reason("Priority", "Resources", "joined")),
        ("(Priority,Resources,JobArrayTaskLimit)", Reason("Priority", "Resources,JobArrayTaskLimit", "joined")),
        ("JobArrayTaskLimit,BrandNew", Reason("JobArrayTaskLimit", "BrandNew", "joined")),
        ("BrandNew,Priority", Reason("BrandNew", "Priority", "unknown")),
        ("None,Priority", Reason("Priority")),
        ("QOSGrpGRES,ReqNodeNotAvail, Reserved for maintenance",
         Reason("QOSGrpGRES", "ReqNodeNotAvail, Reserved for maintenance", "joined")),
    ],
)
def test_joined_reasons_of_an_array(text: str, reason: Reason) -> None:
    assert parse_reason(text) == reason


def test_joined_reasons_are_told() -> None:
    assert "Other tasks of this array wait for: Resources." in explain_reason("Priority,Resources").meaning


@pytest.mark.parametrize("text", ["gpu[01-02]", "something nobody wrote before", "节点坏了", "a, b", "x:y"])
def test_unknown_text_is_kept(text: str) -> None:
    assert parse_reason(text) == Reason("Unknown", text, "unknown")
    assert text in explain_reason(text).meaning


@given(st.one_of(
    st.text(),
    st.text(alphabet="(),_: []-01Reqn"),
    st.builds("{}{}{}".format, st.sampled_from(SEEN), st.sampled_from(["", ",", ", ", "(", ":", "_"]), st.sampled_from(SEEN)),
    st.builds(lambda text, cut: text[:cut], st.sampled_from(SEEN), st.integers(0, 100)),
))
@example("ReqNodeNotAvail, UnavailableNodes:n[1-999999999]")
@example("(")
@example(")(")
@example("İ" * 40)
def test_no_text_ever_raises(text: str) -> None:
    reason = parse_reason(text)
    assert reason is None or reason.code
    for pending in (True, False):
        info = explain_reason(text, pending=pending)
        assert info.title
        assert info.meaning
        assert info.todo
    assert isinstance(never_starts(text), bool)


# ---------------------------------------------------------------- explaining


def test_none_has_two_meanings() -> None:
    """D16."""
    waiting = explain_reason(None)
    assert waiting.title == "Not looked at yet"
    assert explain_reason("(null)") == explain_reason("") == explain_reason("None") == waiting
    over = explain_reason(None, pending=False)
    assert over.title == "No reason given"
    assert over.who == ()


def test_the_reason_kept_for_an_ended_job_is_history() -> None:
    """D17."""
    info = explain_reason("Dependency", pending=False)
    assert "while the job waited: Waits for another job." in info.meaning
    assert "Nothing to do" in info.todo
    assert info.wait_class == "dependency"
    assert (info.who, info.permanence, info.predictable) == ((), "no", False)
    assert explain_reason("OutOfMemory", pending=False) == explain_reason("OutOfMemory")
    assert explain_reason("JobHeldUser", pending=False).permanence == "no"


@pytest.mark.parametrize(
    "text",
    ["(launch failed requeued held)", "job requeued in held state", "job requeued in special exit state",
     "user env retrieval failed requeued held", "JobHeldUser", "JobHoldMaxRequeue"],
)
def test_held_jobs_get_no_prediction_but_a_way_out(text: str) -> None:
    """D13."""
    info = explain_reason(text)
    assert info.wait_class == "hold"
    assert never_starts(text)
    assert not info.predictable
    assert "scontrol release <jobid>" in info.todo


def test_an_admins_hold_cannot_be_released_by_the_user() -> None:
    assert explain_reason("JobHeldAdmin").who == ("admin",)


def test_variants_of_nodes_not_available_differ() -> None:
    maintenance = explain_reason("ReqNodeNotAvail, Reserved for maintenance")
    assert maintenance.predictable
    assert "TimeLimit" in maintenance.todo
    down = explain_reason("ReqNodeNotAvail, UnavailableNodes:gpu[01-03],cpu7")
    assert "gpu[01-03],cpu7" in down.meaning
    assert not down.predictable
    assert explain_reason("ReqNodeNotAvail, UnavailableNodes:").meaning.endswith("drained.")
    reserved = explain_reason("ReqNodeNotAvail, May be reserved for other job")
    assert len({maintenance.title, down.title, reserved.title, explain_reason("ReqNodeNotAvail").title}) == 4


@pytest.mark.parametrize(
    ("text", "wait_class"),
    [
        ("JobArrayTaskLimit", "limit"), ("QOSMaxJobsPerUserLimit", "limit"), ("Resources", "resources"),
        ("Priority", "priority"), ("BeginTime", "time"), ("JobHeldUser", "hold"), ("PartitionTimeLimit", "configuration"),
    ],
)
def test_the_reason_tells_which_wait_it_is(text: str, wait_class: str) -> None:
    """only some pending jobs compete for what is free."""
    assert explain_reason(text).wait_class == wait_class


def test_commands_are_whole() -> None:
    """A placeholder that a person must fill in is written <so>, and only known Slurm commands are named."""
    commands = re.compile(r"\b(scontrol|sacctmgr|sinfo|squeue|sacct|scancel|sprio|sshare)\b (\S+)")
    verbs = {"show", "update", "release", "-R", "-s", "-N", "-j", "-U", "<jobid>", "and"}
    seen = set()
    for code in ALL_REASONS:
        for found in commands.finditer(explain_reason(Reason(code)).todo):
            seen.add(found[1])
            assert found[2].rstrip(";,") in verbs, (code, found[0])
    assert {"scontrol", "sacctmgr", "scancel"} <= seen


def test_steps_on_one_line() -> None:
    info = explain_reason("DependencyNeverSatisfied")
    assert info.todo.startswith("Start it anyway: scontrol update JobId=<jobid> Dependency=; Or cancel it: scancel <jobid>; ")


def test_as_plain_values() -> None:
    info = explain_reason("QOSMaxGRESPerUser")
    plain = info.as_dict()
    assert plain["title"] == info.title
    assert plain["who"] == ["wait"]
    assert plain["steps"] == list(info.steps)
    assert plain["removed"] is None
    assert explain_reason("FrontEndDown").as_dict()["removed"] == "25.05"


def test_an_explanation_is_immutable_and_has_no_language(monkeypatch: pytest.MonkeyPatch) -> None:
    info: ReasonInfo = explain_reason("QOSMaxGRESPerUser")
    with pytest.raises(dataclasses.FrozenInstanceError):
        info.code = "x"  # type: ignore[misc]  # the point of the test
    assert hash(info) == hash(explain_reason("QOSMaxGRESPerUser"))

    def shout(text: str) -> str:
        return text.replace("Your", "YOUR")

    before = info.title
    monkeypatch.setattr("queuecast.i18n._", shout)
    assert info.title != before
    assert info.title == shout(before)


def _msgids(message: Message) -> set[str]:
    inner = (value for _, value in message.values if isinstance(value, Message))
    return {message.msgid}.union(*map(_msgids, inner))


def test_every_text_shown_can_be_found_by_the_extractor() -> None:
    extracted = {
        entry[2] for entry in extract_from_dir(Path(reasons_module.__file__).parent, method_map=[("**.py", "python")])
    }
    texts = [*ALL_REASONS, *SEEN, "launch failed requeued held", "job requeued in special exit state", "odd text", "BrandNew",
             "user env retrieval failed requeued held", "Burst buffer stage-in timeout", "Priority,Resources",
             "QOSMaxMysteryPerReservation", "AssocMaxMystery", "Job is at or exceeds QOS a's group max TRES(cpu) minutes"]
    for text in texts:
        for pending in (True, False):
            info = explain_reason(text, pending=pending)
            for message in (info.title_message, *info.meaning_messages, *info.step_messages, info.ends_by_message):
                assert _msgids(message) <= extracted, text


def test_a_made_up_language_reaches_the_noun_inside_the_sentence(monkeypatch: pytest.MonkeyPatch) -> None:
    info = explain_reason("QOSMaxGRESPerUser")
    words = {info.title_message.msgid: "已用完 %(resource)s", "GPUs": "显卡"}
    monkeypatch.setattr("queuecast.i18n._", lambda text: words.get(text, text))
    with use_language("zh_CN"):
        assert info.title == "已用完 显卡"
