"""``queuecast overrequest``: what is asked for and not used, whose, and what would do."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from queuecast.cli.common import AtOption, ClusterOption, JsonOption, LakeOption, ParsableOption, context, print_json, print_lines, width
from queuecast.errors import UsageError
from queuecast.i18n import _, ngettext

if TYPE_CHECKING:
    from datetime import datetime

    from queuecast.answers.rightsizing.answer import How
    from queuecast.answers.rightsizing.overrequest_answer import By, OverRequests
    from queuecast.store.lake import Lake

_O = typer.Option


def overrequest(
    since: Annotated[str, _O("--since", metavar="TIME", help="From when on: 30d (ago, before --at), 2026-06-01.")] = "30d",
    by: Annotated[str, _O("--by", metavar="LIST", help="Tables by any of: user, account, partition, kind.")] = "user,kind",
    partition: Annotated[str | None, _O("-p", "--partition", metavar="NAME", help="Only jobs of this partition.")] = None,
    account: Annotated[str | None, _O("-A", "--account", metavar="NAME", help="Only jobs of this account.")] = None,
    user: Annotated[str | None, _O("-u", "--user", metavar="NAME", help="Only jobs of this user.")] = None,
    risk: Annotated[float, _O("--risk", metavar="SHARE", help="At most this share of jobs may need more than is proposed.")] = 0.01,
    top: Annotated[int, _O("--top", metavar="N", help="Rows of a table, and proposals, that are shown.", min=1, max=1000)] = 10,
    idle: Annotated[float, _O("--idle", metavar="HOURS", help="Running jobs whose GPUs did nothing for so long; 0: none.")] = 2.0,
    waits: Annotated[
        str | None,
        _O("--waits", metavar="model|futures", help="Change of wait of the proposals shown: by the wait model, or played (slow)."),
    ] = None,
    effect: Annotated[bool, _O("--effect", help="Replay the queue as if the 10 worst had been right: takes minutes.")] = False,
    csv: Annotated[Path | None, _O("--csv", metavar="FILE", help="Write the tables as CSV, and the proposals beside it.")] = None,
    messages: Annotated[Path | None, _O("--messages", metavar="DIR", help="Write a ready message to each user into this folder.")] = None,
    language: Annotated[str, _O("--language", metavar="en|zh", help="Language of the messages.")] = "en",
    at: AtOption = None,
    as_json: JsonOption = False,
    parsable: ParsableOption = False,
    cluster: ClusterOption = None,
    lake: LakeOption = None,
) -> None:
    """What is asked for and not used: by user, account, partition and kind of job, with the request that would do."""
    from queuecast.answers.rightsizing.overrequest import overrequest as answer_to
    from queuecast.answers.rightsizing.rightsize import check_risk, sizes_at, uses_at
    from queuecast.policy.tables import policy_at
    from queuecast.render.overrequest_messages import load_texts

    load_texts(language)  # a wrong language is told before the work
    check_risk(risk)
    dimensions, how = _dimensions(by), _how(waits)
    ctx = context(lake, cluster)
    the_lake = ctx.lake()
    name = _cluster(the_lake, ctx.cluster)
    moment = ctx.at(at, the_lake, name)
    begin = _since(since, moment, ctx.zone)
    viewer = ctx.viewer(None)
    if user is not None:
        viewer.check(user, user)
    uses = uses_at(the_lake, name, begin, moment)
    sizes = sizes_at(uses, risk)
    policy = policy_at(the_lake, name, moment)
    answer = answer_to(
        the_lake,
        name,
        since=begin,
        at=moment,
        viewer=viewer,
        by=dimensions,
        partition=partition,
        account=account,
        user=user,
        risk=risk,
        top=top,
        idle_hours=idle if idle > 0 else None,
        uses=uses,
        sizes=sizes,
        policy=policy,
    )
    if waits is not None:
        answer = _with_waits(the_lake, answer, moment, how)
    if effect and answer.status == "ok":
        from queuecast.answers.rightsizing.overrequest_effect import effect as effect_of
        from queuecast.answers.rightsizing.rightsize import judged
        from queuecast.config import load_hardware

        with _bar() as update:
            found = judged(uses, sizes, policy, load_hardware(), risk)
            answer = replace(answer, effect=effect_of(the_lake, name, found, since=begin, at=moment, progress=update))
    _write(answer, csv, messages, language, ctx.zone)
    if as_json:
        print_json(answer.as_json())
    elif parsable:
        from queuecast.render.overrequest_table import parsable as rows

        print(rows(answer))
    else:
        from queuecast.render.overrequest import overrequest_lines

        print_lines(overrequest_lines(answer, ctx.zone, max(110, width())))


def _dimensions(text: str) -> tuple[By, ...]:
    from queuecast.answers.rightsizing.overrequest_answer import DIMENSIONS

    wanted = [w.strip().casefold() for w in text.split(",") if w.strip()]
    unknown = [w for w in wanted if w not in DIMENSIONS]
    if unknown or not wanted:
        raise UsageError(_("--by {text} is not known").format(text=text), _("give any of: {names}").format(names=", ".join(DIMENSIONS)))
    return tuple(d for d in DIMENSIONS if d in wanted)


def _since(text: str, at: datetime, zone: str) -> datetime:
    """``30d`` counts back from the moment asked about, not from now."""
    from queuecast import clock

    given = clock.parse_instant(text, zone)
    if re.fullmatch(r"\d+\s*[a-z]+", text.strip()):
        given = at - (clock.now() - given)
    if given >= at:
        raise UsageError(_("--since {text} is not before the moment asked about").format(text=text), _("for example: --since 30d"))
    return given


def _cluster(lake: Lake, wanted: str | None) -> str:
    names = lake.clusters
    found = [n for n in names if wanted is None or n.casefold() == wanted.casefold()]
    if len(found) == 1:
        return found[0]
    if not names:
        raise UsageError(_("this lake is empty"), _("read some history first: queuecast collect, or queuecast ingest FOLDER"))
    problem = _("this lake holds several clusters") if wanted is None else _("cluster {name} is not in this lake").format(name=wanted)
    raise UsageError(problem, _("name one with -M: {names}").format(names=", ".join(names)))


def _how(text: str | None) -> How:
    if text not in (None, "model", "futures"):
        raise UsageError(_("--waits {text} is not known").format(text=text), _("give model or futures"))
    return "futures" if text == "futures" else "model"


def _with_waits(lake: Lake, answer: OverRequests, moment: datetime, how: How) -> OverRequests:
    from queuecast.answers.forecast import Forecaster
    from queuecast.answers.rightsizing.waits import with_waits

    items = answer.proposals.items
    told = with_waits(Forecaster(lake, answer.cluster), items[: answer.top], moment, how=how)
    return replace(answer, proposals=replace(answer.proposals, items=(*told, *items[answer.top :])))


def _write(answer: OverRequests, csv: Path | None, messages: Path | None, language: str, zone: str) -> None:
    """The files asked for; what was written is told on stderr."""
    if csv is not None:
        from queuecast.render.overrequest_table import groups_csv, proposals_csv

        beside = csv.with_name(f"{csv.stem}-proposals{csv.suffix or '.csv'}")
        try:
            csv.write_bytes(groups_csv(answer))
            beside.write_bytes(proposals_csv(answer))
        except OSError as error:
            raise UsageError(_("{file} cannot be written: {why}").format(file=csv, why=error.strerror), _("choose another file")) from error
        print(_("written: {files}").format(files=f"{csv}, {beside}"), file=sys.stderr)
    if messages is not None:
        from queuecast.render.overrequest_messages import messages as ready
        from queuecast.render.overrequest_messages import write_messages

        paths = write_messages(ready(answer, language, zone), messages)
        print(
            ngettext(
                "{n} message written to {folder}; read it before you send it",
                "{n} messages written to {folder}; read them before you send them",
                len(paths),
            ).format(n=len(paths), folder=messages),
            file=sys.stderr,
        )


@contextmanager
def _bar() -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on stderr, if that is a terminal."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    from queuecast.twin import ready

    words = _("replaying the queue")
    with Progress(console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(words if ready() else _("compiling the replay, the first time only: about two minutes"), total=None)
        yield lambda done, total: progress.update(task, completed=done, total=total, description=words)
