"""Entry point of the ``queuecast`` command. Commands import what they need when they run, so that it starts at once."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

from queuecast import __version__
from queuecast.cli import alternatives, ask, check, evaluate, failed, gather, keep, overrequest, retry, suggest
from queuecast.errors import QueuecastError

app = typer.Typer(
    name="queuecast",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
    help="How long will this wait, why, and what else could I ask for? Answers from a Slurm cluster's own history.",
)

for group, commands in (
    ("Ask", (ask.when, alternatives.alternatives, suggest.suggest, ask.why, ask.queue)),
    ("Before submitting", (check.check, check.template)),
    ("After it ran", (failed.failed, retry.retry, retry.lineage, overrequest.overrequest)),
    ("Collect", (gather.collect, gather.backfill, gather.ingest, gather.rebuild, gather.doctor)),
    ("Keep", (keep.status, keep.sql, keep.train, evaluate.evaluate, keep.serve)),
):
    for command in commands:
        app.command(rich_help_panel=group)(command)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"queuecast {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[bool, typer.Option("--version", "-V", callback=_version, is_eager=True, help="Print the version.")] = False,
) -> None:
    pass


def main() -> None:
    """Run; errors of ours are one message and exit 1 (2 for a wrong request), never a traceback."""
    from queuecast.errors import UsageError

    try:
        app()
    except QueuecastError as error:
        print(f"queuecast: {error}", file=sys.stderr)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except KeyboardInterrupt:
        print("queuecast: interrupted; what was stored is whole, the same command goes on", file=sys.stderr)
        sys.exit(130)
    except BrokenPipeError:  # queuecast ... | head
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)


if __name__ == "__main__":
    main()
