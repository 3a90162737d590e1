"""Settings: environment first, then a TOML file, then defaults. Read with the standard library, so that the command
line starts at once.

Files, first found wins: $QUEUECAST_CONFIG, ~/.config/queuecast/config.toml, /etc/queuecast/config.toml.
"""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from queuecast.errors import ConfigError


@dataclass(frozen=True)
class Settings:
    """lake: folder of the lake. cluster: default for -M. ssh: host to run Slurm's commands on; None is this machine.
    slurm_bin: folder of Slurm's commands; None uses PATH. privacy: "all" or "own" (viewers see only their own jobs).
    zone: IANA name of the zone times are shown in; None is the viewer's own."""

    lake: str
    cluster: str | None = None
    ssh: str | None = None
    slurm_bin: str | None = None
    privacy: str = "all"
    zone: str | None = None


def default_lake() -> str:
    """Where the lake lies unless told."""
    return str(Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "queuecast" / "lake")


SYSTEM = Path("/etc/queuecast/config.toml")


def load_settings() -> Settings:
    """Raises ``ConfigError`` for a file that is not TOML, an unknown key or a wrong value.

    Where the site's own file says ``privacy = "own"``, neither a user's file nor the environment loosens it.
    """
    values: dict[str, str] = {"lake": default_lake()}
    path = _file()
    if path is not None:
        values |= _read(path)
    names = [f.name for f in fields(Settings)]
    values |= {n: os.environ[f"QUEUECAST_{n.upper()}"] for n in names if os.environ.get(f"QUEUECAST_{n.upper()}")}
    if SYSTEM.exists() and _read(SYSTEM).get("privacy") == "own":
        values["privacy"] = "own"
    if values.get("privacy", "all") not in ("all", "own"):
        raise ConfigError(f"privacy is {values['privacy']!r}", 'it is "all" or "own"')
    return Settings(**values)


def _read(path: Path) -> dict[str, str]:
    known = {f.name for f in fields(Settings)}
    raw = {k: v for k, v in _toml(path).items() if k not in ("gpus", "prices")}  # tables, read by load_hardware
    unknown = set(raw) - known
    if unknown:
        raise ConfigError(f"{path} has unknown settings: {', '.join(sorted(unknown))}", f"known: {', '.join(sorted(known))}")
    if not all(isinstance(v, str) for v in raw.values()):
        raise ConfigError(f"{path}: every setting is a text in quotes", 'for example: lake = "/srv/queuecast"')
    return raw


def _toml(path: Path) -> dict[str, Any]:
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{path} cannot be read: {error}", "correct it, or point QUEUECAST_CONFIG at another file") from error


GPU_NUMBERS = ("memory_gib", "fp16_tflops", "bf16_tflops", "fp32_tflops", "bandwidth_gbs")


@dataclass(frozen=True)
class Hardware:
    """What the site tells of its GPUs. gpus: by Slurm's type name, any of GPU_NUMBERS and nvlink (true or false).
    prices: per GPU-hour by type, in currency."""

    gpus: dict[str, dict[str, float | bool]]
    prices: dict[str, float]
    currency: str = ""


def load_hardware() -> Hardware:
    """The tables [gpus.TYPE] and [prices] of the configuration: the site's file, then a user's own. Raises ``ConfigError``."""
    gpus: dict[str, dict[str, float | bool]] = {}
    prices: dict[str, float] = {}
    currency = ""
    for path in dict.fromkeys(p for p in (SYSTEM if SYSTEM.exists() else None, _file()) if p is not None):
        raw = _toml(path)
        tables = {name: raw.get(name, {}) for name in ("gpus", "prices")}
        if not all(isinstance(t, dict) for t in tables.values()):
            raise ConfigError(f"{path}: gpus and prices are tables", "for example: [gpus.a100] and below it memory_gib = 80")
        for kind, values in tables["gpus"].items():
            gpus[kind.casefold()] = _gpu(path, kind, values)
        for kind, price in tables["prices"].items():
            if kind == "currency" and isinstance(price, str):
                currency = price
            elif _positive(price):
                prices[kind.casefold()] = float(price)
            else:
                raise ConfigError(f"{path}: [prices] {kind} is {price!r}", "it is a price per GPU-hour, for example: a100 = 1.2")
    return Hardware(gpus, prices, currency)


def _positive(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and 0 < value < float("inf")


def _gpu(path: Path, kind: str, values: Any) -> dict[str, float | bool]:
    known = (*GPU_NUMBERS, "nvlink")
    if not isinstance(values, dict) or set(values) - set(known):
        raise ConfigError(f"{path}: [gpus.{kind}] has unknown settings", f"known: {', '.join(known)}")
    for key, value in values.items():
        if not (isinstance(value, bool) if key == "nvlink" else _positive(value)):
            raise ConfigError(f"{path}: [gpus.{kind}] {key} is {value!r}", "numbers are above zero; nvlink is true or false")
    return values


def _file() -> Path | None:
    named = os.environ.get("QUEUECAST_CONFIG")
    if named:
        return Path(named)
    home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return next((p for p in (home / "queuecast" / "config.toml", SYSTEM) if p.exists()), None)
