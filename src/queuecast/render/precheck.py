"""The findings of ``queuecast check`` for a terminal and for programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from queuecast.i18n import _, ngettext
from queuecast.render.words import safe, wrapped

if TYPE_CHECKING:
    from queuecast.answers.prechecks.precheck import Precheck


def precheck_lines(answer: Precheck, width: int) -> list[str]:
    """One block per finding: place, severity and why; then the fix. Ends with a summary."""
    words = {"error": _("error"), "warning": _("warning"), "note": _("note")}
    out: list[str] = []
    name = safe(answer.script)
    for finding in answer.findings:
        place = f"{name}:{finding.line}" if finding.line is not None else name
        out += wrapped(f"{place}: {words[finding.severity]}: {safe(finding.why)}", width, 4)
        if finding.fix:
            out += [f"    {line}" for line in wrapped(safe(finding.fix), width - 4, 0)]
    for text in answer.unchecked:
        out += wrapped(_("not checked: {what}").format(what=safe(text)), width, 4)
    out.append(summary(answer))
    return out


def summary(answer: Precheck) -> str:
    """``2 errors, 1 warning`` or that nothing was found."""
    errors, warnings = answer.count("error"), answer.count("warning")
    if not errors and not warnings:
        return _("{name}: nothing wrong was found").format(name=safe(answer.script))
    parts = []
    if errors:
        parts.append(ngettext("{n} error", "{n} errors", errors).format(n=errors))
    if warnings:
        parts.append(ngettext("{n} warning", "{n} warnings", warnings).format(n=warnings))
    return f"{safe(answer.script)}: {', '.join(parts)}"


def parsable(answer: Precheck) -> str:
    """A header and one line per finding, fields separated by ``|``."""

    def field(text: object) -> str:
        return "" if text is None else safe(str(text)).replace("|", "/")

    rows = ["line|severity|code|why|fix"]
    rows += ["|".join(field(v) for v in (f.line, f.severity, f.code, f.why, f.fix)) for f in answer.findings]
    return "\n".join(rows)
