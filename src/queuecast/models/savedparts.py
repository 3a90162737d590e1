"""Wait models and track records as named arrays, and back: numbers and plain texts only."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import numpy.typing as npt

from queuecast.features.lakecases import FEATURES
from queuecast.models.calibration import GRID, Calibration
from queuecast.models.levelmaps import LEVELS, LevelMaps
from queuecast.models.localtime import check_zone
from queuecast.models.record import TrackRecord
from queuecast.models.stacked import restored, saved
from queuecast.models.waitmodel import WORDS, WaitModel

Arrays = dict[str, npt.NDArray[np.generic]]
WIDEST = max(len(dims) for dims in LEVELS)


def pack_wait_model(model: WaitModel) -> Arrays:
    """Arrays of a wait model. A map's key is (level, codes), filled up with -1."""
    keys = [(level, *key, *[-1] * (WIDEST - len(key))) for level, key in model.maps.maps]
    texts = {f"words_{text}": np.array(model.words[text], np.str_) for text in WORDS}
    return {
        **{f"learned_{name}": array for name, array in saved(model.stacked).items()},
        **texts,
        "map_keys": np.array(keys, np.int64).reshape(len(keys), WIDEST + 1),
        "map_honest": np.array([c.honest for c in model.maps.maps.values()], np.float64).reshape(len(keys), len(GRID)),
        "map_count": np.array([c.count for c in model.maps.maps.values()], np.int64),
        "shares": model.shares,
        "usual_names": np.array(list(model.usual), np.str_),
        "usual_values": np.array(list(model.usual.values()), np.float32).reshape(len(model.usual), len(FEATURES)),
        "cases": np.array(model.cases),
        "zone": np.array(model.zone),
    }


def unpack_wait_model(arrays: Arrays) -> WaitModel:
    """From saved arrays. Raises ``ValueError`` or ``KeyError`` if they are not a whole model of this version."""
    stacked = restored({n.removeprefix("learned_"): a for n, a in arrays.items() if n.startswith("learned_")})
    if stacked.names != tuple(f.name for f in FEATURES):
        raise ValueError("the model was learned from other features")
    keys, honest = arrays["map_keys"].astype(np.int64), arrays["map_honest"].astype(np.float64)
    if honest.shape != (len(keys), len(GRID)) or (np.diff(honest, axis=1) < 0).any() or keys.shape[1:] != (WIDEST + 1,):
        raise ValueError("corrections are not whole")
    if len(keys) and not ((keys[:, 0] >= 0) & (keys[:, 0] < len(LEVELS))).all():
        raise ValueError("corrections of an unknown level")
    maps = {
        (int(key[0]), tuple(int(v) for v in key[1 : 1 + len(LEVELS[int(key[0])])])): Calibration(row, int(count))
        for key, row, count in zip(keys, honest, arrays["map_count"], strict=True)
    }
    usual = dict(zip((str(n) for n in arrays["usual_names"]), arrays["usual_values"].astype(np.float32), strict=True))
    if any(len(v) != len(FEATURES) for v in usual.values()) or len(arrays["shares"]) != 2:
        raise ValueError("usual values are not whole")
    zone = str(arrays["zone"])
    check_zone(zone)
    return WaitModel(
        stacked,
        LevelMaps(maps),
        arrays["shares"].astype(np.float64),
        {text: [str(w) for w in arrays[f"words_{text}"]] for text in WORDS},
        usual,
        int(arrays["cases"]),
        zone,
    )


def pack_record(record: TrackRecord) -> Arrays:
    """Arrays of a track record."""
    return {f.name: np.array(getattr(record, f.name)) for f in fields(record)}


def unpack_record(arrays: Arrays) -> TrackRecord:
    """From saved arrays. Raises ``ValueError`` or ``KeyError`` if they are not whole."""
    parts = {f.name: arrays[f.name] for f in fields(TrackRecord)}
    names = tuple(str(n) for n in parts.pop("partitions"))
    if len({len(a) for a in parts.values()}) > 1 or ((parts["partition"] < 0) | (parts["partition"] >= len(names))).any():  # type: ignore[operator]
        raise ValueError("the record is not whole")
    return TrackRecord(**parts, partitions=names)  # type: ignore[arg-type]  # arrays by name
