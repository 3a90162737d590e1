"""``queuecast status``, ``sql``, ``train`` and ``serve``."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from queuecast import clock
from queuecast.cli.common import JsonOption, LakeOption, ParsableOption, WaitOption, context, print_json, print_lines
from queuecast.cli.gather import QuietOption, _progress
from queuecast.errors import ConfigError, NoDataError, NotPermitted, UsageError
from queuecast.i18n import _, ngettext
from queuecast.render.words import percent, safe, span

if TYPE_CHECKING:
    from queuecast.models.saving import Model
    from queuecast.store.lake import Lake


def status(as_json: JsonOption = False, lake: LakeOption = None) -> None:
    """What the lake holds: tables, rows, span, freshness, rejects."""
    from queuecast.answers.status import lake_status

    held = lake_status(context(lake, None).lake())
    if as_json:
        print_json(held.as_json())
        return
    lines = [
        f"{held.path}",
        _("written {when} by {who}, version {n}, schema {s}").format(
            when=held.written_at or "–", who=safe(held.written_by) or "–", n=held.version, s=held.schema_version
        ),
    ]
    now = clock.now()
    for cluster in dict.fromkeys(t.cluster for t in held.tables if t.table != "rejects"):
        age = held.age_s(now, cluster)
        lines += [
            "",
            _("{cluster}: read {age} ago").format(cluster=safe(cluster), age=span(age)),
            f"  {_('table'):<14}{_('rows'):>12}{_('files'):>7}{_('MiB'):>9}  {_('from'):<17}{_('to'):<17}",
        ]
        lines += [
            f"  {t.table:<14}{t.rows:>12,}{t.files:>7}{t.bytes / 2**20:>9.1f}  {t.low[:16]:<17}{t.high[:16]:<17}"
            for t in held.tables
            if t.cluster == cluster and t.table != "rejects"
        ]
        if cluster in held.backfill:
            note = held.backfill[cluster]
            lines.append(
                "  " + _("older history read from {since} to {until}").format(since=note["since"][:10], until=note["done_until"][:10])
            )
        score = held.answers.get(cluster)
        if score and score.given:
            lines.append(
                "  "
                + _("{n} answers given, {m} scored; 8-in-10 intervals held for {share}").format(
                    n=score.given, m=score.scored, share=percent(score.held_80)
                )
            )
        lost = held.runaways.get(cluster)
        if lost:
            jobs = ", ".join(safe(r.job_id) for r in lost[:8])
            lines.append(
                "  "
                + ngettext(
                    "{n} job runs in accounting but not in the queue ({jobs}): an operator can mend it with sacctmgr show runawayjobs",
                    "{n} jobs run in accounting but not in the queue ({jobs}): an operator can mend them with sacctmgr show runawayjobs",
                    len(lost),
                ).format(n=len(lost), jobs=jobs)
            )
    if held.rejects:
        lines += ["", _('rejects (queuecast sql "select * from rejects")')]
        lines += [f"  {n:>8}  {kind}: {safe(cause)}" for kind, cause, n in held.rejects[:12]]
    else:
        lines += ["", _("no rejects")]
    print_lines(lines)


def sql(
    query: Annotated[str, typer.Argument(metavar="SELECT")],
    as_json: JsonOption = False,
    parsable: ParsableOption = False,
    lake: LakeOption = None,
) -> None:
    """Read-only SQL (DuckDB) over the lake: the tables of docs/data-model.md, and the views waits and usage."""
    from queuecast.store.query import read_only

    ctx = context(lake, None)
    store = ctx.lake()
    if ctx.settings.privacy == "own" and os.getuid() not in (0, store.path.stat().st_uid):
        raise NotPermitted(
            _("SQL shows everybody's jobs; here people see only their own"), _("ask the owner of {path}").format(path=store.path)
        )
    rows = read_only(store, query)
    if as_json:
        print_json(rows.to_pylist())
        return
    names, records = rows.column_names, rows.to_pylist()
    if parsable:
        print("|".join(map(safe, names)))
        for r in records:
            print("|".join(safe("" if v is None else str(v)).replace("|", "\\x7c") for v in r.values()))
        return
    cells = [[safe("" if v is None else str(v))[:60] for v in r.values()] for r in records]
    widths = [max(len(n), *(len(c[i]) for c in cells)) if cells else len(n) for i, n in enumerate(names)]
    print("  ".join(n.ljust(w) for n, w in zip(names, widths, strict=True)).rstrip())
    print("  ".join("-" * w for w in widths))
    for c in cells:
        print("  ".join(v.ljust(w) for v, w in zip(c, widths, strict=True)).rstrip())
    print(_("({n} rows)").format(n=len(cells)), file=sys.stderr)


def train(
    full: Annotated[bool, typer.Option("--full", help="Make all past answers anew instead of going on from the last training.")] = False,
    corrections: Annotated[
        bool, typer.Option("--corrections", help="Learn nothing: only correct the levels by what came since (seconds).")
    ] = False,
    wait: WaitOption = 0.0,
    quiet: QuietOption = False,
    as_json: JsonOption = False,
    lake: LakeOption = None,
) -> None:
    """Learn how long jobs wait here, and how far past answers were off, so that intervals cover what they claim. Run it daily."""
    from queuecast.models.localtime import check_zone
    from queuecast.models.training import train_lake

    if full and corrections:
        raise UsageError(_("--full and --corrections exclude each other"), _("--full learns anew, --corrections learns nothing"))
    ctx = context(lake, None)
    store = ctx.lake()
    try:
        check_zone(ctx.zone)
    except ValueError as error:
        raise ConfigError(str(error), _('write its IANA name, for example zone = "Europe/Berlin"')) from error
    if corrections:
        model = _renewed(store, wait)
    else:
        with _progress(quiet or as_json) as bar:
            task = bar.add_task(_("learning"), total=None) if bar else None

            def progress(name: str, done: int, total: int) -> None:
                if bar and task is not None:
                    bar.update(task, description=safe(name), completed=done, total=total)

            model = train_lake(store, clock.now(), progress, full=full, zone=ctx.zone, wait_s=wait)
    _tell_model(model, quiet, as_json)


def _renewed(store: Lake, wait_s: float) -> Model:
    """The current model with its corrections renewed, or as it is if nothing was read since."""
    from queuecast.models.renewing import renew_lake
    from queuecast.models.saving import load_model

    folder = store.path / "models"
    model = renew_lake(store, clock.now(), wait_s=wait_s) or load_model(folder)
    if model is None:
        raise NoDataError(_("no model has been trained yet"), _("train one first: queuecast train"))
    return model


def _tell_model(model: Model, quiet: bool, as_json: bool) -> None:
    if as_json:
        print_json(
            {
                "model": model.name,
                "data_until": model.data_until.isoformat(),
                "clusters": {cluster: standing.as_json() for cluster, standing in model.standings.items()},
                "groups": [
                    {
                        "cluster": c,
                        "mode": m,
                        "partition": p,
                        "answers": k.count,
                        "coverage": {share: {"held": held, "counted": n} for share, (held, n) in model.coverage[c, m, p].items()},
                    }
                    for (c, m, p), k in model.calibrations.items()
                ],
            }
        )
    elif not quiet:
        lines = [
            _("model {name}, from data until {when} UTC").format(name=model.name, when=f"{model.data_until:%Y-%m-%d %H:%M}"),
            *_how(model),
            "",
            f"{_('cluster'):<14}{_('asked'):<10}{_('partition'):<14}{_('answers'):>8}"
            f"{_('50 % held'):>12}{_('80 % held'):>12}{_('95 % held'):>12}",
        ]
        words = {"submit": _("at submit"), "pending": _("pending")}
        for (c, m, p), k in model.calibrations.items():
            held = [percent(model.coverage[c, m, p][s][0]) if model.coverage[c, m, p][s][1] else "–" for s in ("0.5", "0.8", "0.95")]
            counted = model.coverage[c, m, p]["0.8"][1] or k.count
            lines.append(f"{safe(c):<14}{words[m]:<10}{safe(p):<14}{counted:>8}{held[0]:>12}{held[1]:>12}{held[2]:>12}")
        print_lines(lines)


def _how(model: Model) -> list[str]:
    """A line per cluster: what was learned, and what was corrected."""
    lines = []
    for cluster, standing in model.standings.items():
        named = {
            "cluster": safe(cluster),
            **{n: f"{getattr(standing, n):%Y-%m-%d %H:%M}" for n in ("learned_until", "corrected_until", "full_until")},
        }
        if standing.corrected_until > standing.learned_until:
            lines.append(_("{cluster}: learned until {learned_until}, corrected until {corrected_until}").format(**named))
        elif standing.full_until == standing.learned_until:
            lines.append(_("{cluster}: learned until {learned_until}, all past answers made anew").format(**named))
        else:
            lines.append(
                _("{cluster}: learned until {learned_until}, with the past answers made on {full_until} and since").format(**named)
            )
    return lines


def serve(
    port: Annotated[int, typer.Option("--port", min=1, max=65535)] = 8501,
    address: Annotated[str, typer.Option("--address", help="Address to listen on; the default is this machine only.")] = "127.0.0.1",
    lake: LakeOption = None,
) -> None:
    """The app in a browser."""
    from queuecast.cli.app import app_command

    ctx = context(lake, None)
    command = app_command(port, address)
    if command is None:
        raise ConfigError(_("the app is not installed"), _("pip install 'queuecast[app]'"))
    ctx.lake()  # a wrong path is told here, not in the browser
    os.environ["QUEUECAST_LAKE"] = str(ctx.lake().path)
    viewer = ctx.viewer(None)
    os.environ["QUEUECAST_SEES"] = "all" if viewer.sees_all else "own"
    os.environ["QUEUECAST_USER"] = viewer.user or ""
    print(_("queuecast serves http://{address}:{port} (Ctrl-C ends it)").format(address=address, port=port), flush=True)
    os.execv(command[0], command)  # noqa: S606  # an argument list, no shell
