"""A ready message for each user, in English or Chinese: what would be enough, with flags to paste, and which GPUs are idle.

The texts lie in ``templates/messages``. What the site's default caused is said to be so. Names are written by anybody: they are cleaned.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

from queuecast.answers.rightsizing.answer import Change, Proposal
from queuecast.answers.rightsizing.overrequest_answer import OverRequests
from queuecast.errors import UsageError
from queuecast.i18n import _
from queuecast.render.overrequest_words import asked_of, held, most_used, proposed_of, risk_of, share, short, usual_used
from queuecast.render.words import safe
from queuecast.usage.idle import IdleGpu

FOLDER = Path(__file__).resolve().parents[1] / "templates" / "messages"
LANGUAGES = ("en", "zh")
MOST = 5
"""Kinds of jobs in one message: a longer one is not read."""
WORTH = 0.0005
"""What saves a smaller share of the cluster's hours is not written about."""


@dataclass(frozen=True)
class UserMessage:
    """``text`` is plain text with line feeds, without the subject."""

    user: str
    subject: str
    text: str


def messages(answer: OverRequests, language: str = "en", zone: str = "UTC") -> tuple[UserMessage, ...]:
    """One for each user with something to gain, or with idle GPUs; those with most first. Times in ``zone``.

    Raises ``UsageError`` for a language without texts.
    """
    texts = load_texts(language)
    proposals: dict[str, list[Proposal]] = {}
    idle: dict[str, list[IdleGpu]] = {}
    for p in answer.proposals.items:
        if p.kind.user is not None and (p.weight >= WORTH or p.more):
            proposals.setdefault(p.kind.user, []).append(p)
    for job in answer.idle or ():
        if job.user is not None:
            idle.setdefault(job.user, []).append(job)
    users = [*proposals, *(u for u in idle if u not in proposals)]
    return tuple(_message(answer, texts, user, proposals.get(user, [])[:MOST], idle.get(user, []), zone) for user in users)


def load_texts(language: str) -> dict[str, str]:
    """The texts of a language by name. Raises ``UsageError``."""
    if language not in LANGUAGES:
        raise UsageError(
            _("there are no messages in {language}").format(language=repr(language)),
            _("--language is one of: {names}").format(names=", ".join(LANGUAGES)),
        )
    out: dict[str, str] = {}
    name = ""
    for line in (FOLDER / f"{language}.txt").read_text(encoding="utf-8").split("\n"):
        if line.startswith("## "):
            name = line[3:].strip()
            out[name] = ""
        elif name:
            out[name] += line + "\n"
    return {k: v.strip("\n") for k, v in out.items()}


def _message(
    answer: OverRequests, texts: dict[str, str], user: str, proposals: Sequence[Proposal], idle: Sequence[IdleGpu], zone: str
) -> UserMessage:
    common = {"user": short(user), "cluster": safe(answer.cluster), "since": _day(answer.since, zone), "until": _day(answer.at, zone)}
    only_more = bool(proposals) and all(c.more for p in proposals for c in p.changes)
    kind = "" if proposals and not only_more else "_more" if only_more else "_idle"
    parts = [texts["greeting"].format(**common), texts[f"intro{kind}"].format(**common)]
    parts += [_kind(texts, number, p) for number, p in enumerate(proposals, 1)]
    if idle:
        head = [] if kind == "_idle" else [texts["idle_intro"]]
        parts.append("\n".join([*head, *(_idle(texts, job, zone) for job in idle)]))
        parts.append(texts["idle_outro"])
    if any(p.generated for p in proposals) or any(j.generated for j in idle):
        parts.append(texts["generated"])
    parts.append(texts["closing"])
    return UserMessage(user, texts[f"subject{kind}"].format(**common), "\n\n".join(parts) + "\n")


def _kind(texts: dict[str, str], number: int, p: Proposal) -> str:
    name = short(p.kind.shown or p.kind.command)
    lines = [texts["kind"].format(number=number, name=name, partition=short(p.kind.partition), jobs=p.jobs)]
    lines += [_change(texts, c) for c in p.changes]
    least = min(c.evidence.n for c in p.changes)
    lines.append(texts["evidence"].format(n=least, risk=share(risk_of(p))))
    if p.flags:
        lines.append(texts["flags"].format(flags=" ".join(safe(f) for f in p.flags)))
    return "\n".join(lines)


def _change(texts: dict[str, str], change: Change) -> str:
    name = f"{change.what}_more" if change.more else "memory_default" if change.site_default else change.what
    used = texts["used_most" if held(change) else "used_95"].format(most=most_used(change), p95=usual_used(change))
    return texts[name].format(asked=asked_of(change), proposed=proposed_of(change), most=most_used(change), used=used)


def _idle(texts: dict[str, str], job: IdleGpu, zone: str) -> str:
    return texts["idle"].format(
        job=safe(job.job_id_text),
        name=short(job.name),
        gpus=job.gpus,
        type=short(job.gpu_type or ""),
        nodes=short(job.node_list),
        since=f"{job.idle_since.astimezone(ZoneInfo(zone)):%Y-%m-%d %H:%M}",
    )


def _day(value: datetime, zone: str) -> str:
    return f"{value.astimezone(ZoneInfo(zone)):%Y-%m-%d}"


def write_messages(found: Sequence[UserMessage], folder: Path, subject: str = "Subject: {subject}") -> list[Path]:
    """One file for each message, readable by their owner only; files of the same names are replaced.

    Raises ``UsageError`` if the folder cannot be written.
    """
    paths: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for one in found:
            path = folder / file_name(one.user, {p.name.casefold() for p in paths})
            path.unlink(missing_ok=True)  # a link is not followed
            path.touch(mode=0o600, exist_ok=False)
            path.write_text(subject.format(subject=one.subject) + "\n\n" + one.text, encoding="utf-8")
            paths.append(path)
    except OSError as error:
        raise UsageError(
            _("messages cannot be written to {folder}: {why}").format(folder=folder, why=error.strerror), _("choose another folder")
        ) from error
    return paths


def file_name(user: str, taken: set[str]) -> str:
    """A plain file name for any user name, none of ``taken`` (case-folded)."""
    base = re.sub(r"[^A-Za-z0-9._-]", "_", user)[:64].lstrip(".-") or "user"
    name, number = f"{base}.txt", 2
    while name.casefold() in taken:
        name, number = f"{base}-{number}.txt", number + 1
    return name
