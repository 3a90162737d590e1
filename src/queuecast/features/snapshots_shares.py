"""What sshare, sprio and squeue --start had told last about a job and those it is charged to."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from queuecast.features.declare import Feature
from queuecast.features.history import Floats, Ints
from queuecast.features.snapshots_readings import QUEUE_AGE_S, SLOW_AGE_S, Readings, Words, pick, seconds, whole
from queuecast.store.files import floats

SHARE_COLUMNS = ("observed_at", "account", "user", "partition", "norm_shares", "effective_usage", "fairshare", "level_fs")
PRIORITY_COLUMNS = ("observed_at", "job_id", "priority", "age", "fairshare", "qos_factor")
ESTIMATE_COLUMNS = ("observed_at", "job_id", "start_estimate", "clamped")

LEVEL_BOUND = 10.0
"""ln(LevelFS) is held within plus and minus that: an account that used nothing has an infinite level."""


def _feature(name: str, unit: str, topic: str, meaning: str) -> Feature:
    return Feature(name, unit, "snapshot", topic, meaning)


SHARE_FEATURES = (
    _feature("share_age_s", "s", "fairshare", "age of the last reading of sshare"),
    _feature("share_user_fairshare", "0 to 1", "fairshare", "FairShare factor of the user in the account"),
    _feature("share_user_log_level", "ln", "fairshare", "ln(LevelFS) of the user, within 10: above 0 is under-served"),
    _feature("share_user_usage", "0 to 1", "fairshare", "effective usage of the user"),
    _feature("share_user_norm", "0 to 1", "fairshare", "normalised shares of the user"),
    _feature("share_account_fairshare", "0 to 1", "fairshare", "FairShare factor of the account; Slurm's Fair Tree gives it none"),
    _feature("share_account_log_level", "ln", "fairshare", "ln(LevelFS) of the account, within 10"),
    _feature("share_account_usage", "0 to 1", "fairshare", "effective usage of the account"),
    _feature("share_account_norm", "0 to 1", "fairshare", "normalised shares of the account"),
)
PRIORITY_FEATURES = (
    _feature("sprio_age", "share", "priority", "share of the job's priority that it has for waiting"),
    _feature("sprio_fairshare", "share", "priority", "share of the job's priority that it has for fairshare"),
    _feature("sprio_qos", "share", "priority", "share of the job's priority that it has for its QOS"),
)
ESTIMATE_FEATURES = (
    _feature("estimate_age_s", "s", "estimate", "age of Slurm's own estimate, or of the reading that had none for the job"),
    _feature("estimate_told", "0 or 1", "estimate", "1 if Slurm gave an estimate, 0 if the job was listed without one"),
    _feature("estimate_remaining_s", "s", "estimate", "Slurm's estimated start minus the moment asked about; below 0 if it has passed"),
    _feature("estimate_clamped", "0 or 1", "estimate", "1 if the estimate was no later than the reading: overdue, or about to start"),
)


@dataclass(frozen=True)
class Shares:
    """Rows of sshare by (reading, account, user, partition)."""

    readings: Readings
    fairshare: Floats
    log_level: Floats
    usage: Floats
    norm: Floats

    @classmethod
    def of(cls, rows: pa.Table, accounts: Words, users: Words, partitions: Words) -> Shares:
        number = _owner(accounts.encode(rows["account"]), users.encode(rows["user"]), partitions.encode(rows["partition"]))
        readings, order, begin = Readings.of(seconds(rows["observed_at"]), number)
        row = order[begin]
        with np.errstate(divide="ignore", invalid="ignore"):
            level = np.log(floats(rows["level_fs"])[row])
        return cls(
            readings,
            floats(rows["fairshare"])[row],
            np.clip(level, -LEVEL_BOUND, LEVEL_BOUND),
            floats(rows["effective_usage"])[row],
            floats(rows["norm_shares"])[row],
        )

    def features(self, asked: Floats, account: Ints, user: Ints, partition: Ints) -> list[Floats]:
        """Columns of ``SHARE_FEATURES``. An association of that very partition goes before the one for all."""
        reading = self.readings.last(asked, SLOW_AGE_S)
        reading = np.where(account >= 0, reading, -1)
        nobody = np.full(len(asked), -1)
        columns = [asked - self.readings.time(self.readings.last(asked, SLOW_AGE_S))]
        for who, known in ((user, user >= 0), (nobody, account >= 0)):
            entry = self.readings.find(reading, _owner(account, who, partition))
            entry = np.where(entry < 0, self.readings.find(reading, _owner(account, who, nobody)), entry)
            entry = np.where(known, entry, -1)
            columns += [pick(values, entry) for values in (self.fairshare, self.log_level, self.usage, self.norm)]
        return columns


def _owner(account: Ints, user: Ints, partition: Ints) -> Ints:
    """One number for an association; null is its own value."""
    return ((account + 3) << 36) | ((user + 3) << 12) | (partition + 3)


@dataclass(frozen=True)
class Factors:
    """Rows of sprio by (reading, job); of a job in several partitions the one with the highest priority."""

    readings: Readings
    shares: tuple[Floats, ...]

    @classmethod
    def of(cls, rows: pa.Table) -> Factors:
        total, ties = floats(rows["priority"]), (-floats(rows["age"]), -floats(rows["fairshare"]))  # so that storage order is nothing
        readings, order, begin = Readings.of(seconds(rows["observed_at"]), whole(rows["job_id"]), -np.nan_to_num(total), *ties)
        row = order[begin]
        whole_of = np.where(total[row] > 0, total[row], np.nan)
        return cls(readings, tuple(floats(rows[name])[row] / whole_of for name in ("age", "fairshare", "qos_factor")))

    def features(self, asked: Floats, job_id: Ints, array_job_id: Ints, submit: Floats) -> list[Floats]:
        """Columns of ``PRIORITY_FEATURES``; readings from before ``submit`` are of an earlier attempt."""
        entry = self.readings.find_job(current(self.readings, asked, submit), job_id, array_job_id)
        return [pick(values, entry) for values in self.shares]


@dataclass(frozen=True)
class Estimates:
    """Rows of squeue --start by (reading, job): the earliest estimate over a job's partitions and tasks."""

    readings: Readings
    start: Floats
    clamped: Floats

    @classmethod
    def of(cls, rows: pa.Table) -> Estimates:
        observed, start = seconds(rows["observed_at"]), seconds(rows["start_estimate"])
        readings, order, begin = Readings.of(observed, whole(rows["job_id"]), np.where(np.isnan(start), np.inf, start))
        row = order[begin]
        told = floats(rows["clamped"].cast(pa.int64()))[row]
        return cls(readings, start[row], np.where(np.isnan(told), _no_later(start[row], observed[row]), told))

    def features(self, asked: Floats, job_id: Ints, array_job_id: Ints, submit: Floats, other: Floats, other_seen: Floats) -> list[Floats]:
        """Columns of ``ESTIMATE_FEATURES``. ``other`` is what squeue itself showed at ``other_seen`` (nan: job not seen):
        it stands where squeue --start was not read or does not list the job."""
        reading = current(self.readings, asked, submit)
        entry = self.readings.find_job(reading, job_id, array_job_id)
        here = entry >= 0
        start = np.where(here, pick(self.start, entry), other)
        seen = np.where(here, self.readings.time(np.where(here, reading, -1)), other_seen)
        clamped = np.where(here, pick(self.clamped, entry), _no_later(other, other_seen))
        told = np.where(np.isnan(seen), np.nan, ~np.isnan(start))
        return [asked - seen, told, start - asked, np.where(np.isnan(start), np.nan, clamped)]


def _no_later(start: Floats, seen: Floats) -> Floats:
    return np.where(np.isnan(start), np.nan, start <= seen)


def current(readings: Readings, asked: Floats, submit: Floats) -> Ints:
    """The last reading of the two hours before ``asked`` that can know the attempt submitted at ``submit`` (nan: any)."""
    reading = readings.last(asked, QUEUE_AGE_S)
    return np.where(readings.time(reading) < submit, -1, reading)
