"""Shapes of language models: from a size such as ``7b``, or from parts. Parameters are counted from the shape.

Known shapes are those of openly published models (their ``config.json`` or the paper's table), named in ``source``. A size stands
for more than one model; the one named is taken and told.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from queuecast.errors import UsageError
from queuecast.i18n import _


@dataclass(frozen=True)
class Shape:
    """A decoder-only transformer.

    ``ffn``: width of the MLP (of one expert). ``gated``: three matrices (SwiGLU) instead of two. ``tied``: the output layer shares the
    embedding. ``experts`` and ``active``: of each MLP, 1 and 1 if dense. ``total``, ``used``: parameters told by the asker (all, and
    those that work on one token); None: counted from the shape.
    """

    name: str
    layers: int
    hidden: int
    heads: int
    kv_heads: int
    ffn: int
    vocab: int
    gated: bool = True
    tied: bool = False
    experts: int = 1
    active: int = 1
    total: int | None = None
    used: int | None = None
    source: str = ""

    @property
    def kv_width(self) -> int:
        """Width of keys, and of values: kv_heads x head size."""
        return self.hidden * self.kv_heads // self.heads

    @property
    def attention_params(self) -> int:
        """Q, K, V and output matrices of one layer."""
        return 2 * self.hidden * self.hidden + 2 * self.hidden * self.kv_width

    @property
    def expert_params(self) -> int:
        """The matrices of one MLP (of one expert)."""
        return (3 if self.gated else 2) * self.hidden * self.ffn

    @property
    def embedding_params(self) -> int:
        """Embedding, and output layer unless shared."""
        return self.vocab * self.hidden * (1 if self.tied else 2)

    def _count(self, experts: int) -> int:
        router = self.hidden * self.experts if self.experts > 1 else 0
        layer = self.attention_params + experts * self.expert_params + router + 2 * self.hidden
        return self.layers * layer + self.embedding_params + self.hidden

    @property
    def params(self) -> int:
        """All parameters: they must be held."""
        return self.total or self._count(self.experts)

    @property
    def active_params(self) -> int:
        """Parameters that work on one token: they must be computed with."""
        return self.used or (self.total if self.total and self.experts == 1 else self._count(self.active))

    @property
    def layer_params(self) -> int:
        """Of one layer, all experts: what ZeRO-3 gathers at once."""
        return max(1, (self.params - self.embedding_params) // self.layers)


def _gpt(name: str, layers: int, hidden: int, heads: int, source: str, vocab: int = 50272) -> Shape:
    return Shape(name, layers, hidden, heads, heads, 4 * hidden, vocab, gated=False, tied=True, source=source)


SHAPES = (
    _gpt("125m", 12, 768, 12, "OPT-125M"),
    _gpt("350m", 24, 1024, 16, "OPT-350M"),
    Shape("0.5b", 24, 896, 14, 2, 4864, 151936, tied=True, source="Qwen2.5-0.5B"),
    _gpt("760m", 24, 1536, 16, "GPT-3 Large", 50257),
    Shape("1b", 16, 2048, 32, 8, 8192, 128256, tied=True, source="Llama 3.2 1B"),
    Shape("1.1b", 22, 2048, 32, 4, 5632, 32000, source="TinyLlama 1.1B"),
    _gpt("1.3b", 24, 2048, 32, "OPT-1.3B"),
    Shape("1.5b", 28, 1536, 12, 2, 8960, 151936, tied=True, source="Qwen2.5-1.5B"),
    _gpt("2.7b", 32, 2560, 32, "OPT-2.7B"),
    Shape("3b", 28, 3072, 24, 8, 8192, 128256, tied=True, source="Llama 3.2 3B"),
    _gpt("6.7b", 32, 4096, 32, "OPT-6.7B"),
    Shape("7b", 32, 4096, 32, 32, 11008, 32000, source="Llama 2 7B"),
    Shape("8b", 32, 4096, 32, 8, 14336, 128256, source="Llama 3 8B"),
    Shape("13b", 40, 5120, 40, 40, 13824, 32000, source="Llama 2 13B"),
    Shape("14b", 48, 5120, 40, 8, 13824, 152064, source="Qwen2.5-14B"),
    _gpt("30b", 48, 7168, 56, "OPT-30B"),
    Shape("32b", 64, 5120, 40, 8, 27648, 152064, source="Qwen2.5-32B"),
    Shape("33b", 60, 6656, 52, 52, 17920, 32000, source="LLaMA 33B"),
    Shape("34b", 48, 8192, 64, 8, 22016, 32000, source="Code Llama 34B"),
    Shape("65b", 80, 8192, 64, 64, 22016, 32000, source="LLaMA 65B"),
    Shape("70b", 80, 8192, 64, 8, 28672, 128256, source="Llama 3 70B"),
    Shape("72b", 80, 8192, 64, 8, 29568, 152064, source="Qwen2.5-72B"),
    _gpt("175b", 96, 12288, 96, "GPT-3 175B", 50257),
    Shape("405b", 126, 16384, 128, 8, 53248, 128256, source="Llama 3.1 405B"),
    Shape("8x7b", 32, 4096, 32, 8, 14336, 32000, experts=8, active=2, source="Mixtral 8x7B"),
    Shape("8x22b", 56, 6144, 48, 8, 16384, 32768, experts=8, active=2, source="Mixtral 8x22B"),
)

_SIZE = re.compile(r"(\d{1,4}(?:\.\d{1,3})?)\s*([mbt])", re.IGNORECASE)
_MIXTURE = re.compile(r"(\d{1,4})\s*x\s*(\d{1,4}(?:\.\d{1,3})?)\s*([mb])", re.IGNORECASE)
_UNITS = {"m": 10**6, "b": 10**9, "t": 10**12}


def parse_count(text: str, option: str) -> int:
    """``7b``, ``350M``, ``46.7B``: parameters. Raises ``UsageError``."""
    found = _SIZE.fullmatch(text.strip())
    count = round(float(found[1]) * _UNITS[found[2].lower()]) if found else 0
    if not count:
        raise UsageError(
            _("{option} {text} is not a number of parameters").format(option=option, text=text), _("write it like 7b, 1.3B or 350m")
        )
    return count


@dataclass(frozen=True)
class Parts:
    """What was told of a shape, part by part; None: not told."""

    layers: int | None = None
    hidden: int | None = None
    heads: int | None = None
    kv_heads: int | None = None
    ffn: int | None = None
    vocab: int | None = None
    params: str | None = None
    active: str | None = None


def find_shape(model: str | None, parts: Parts) -> Shape:
    """The shape of ``model`` with what ``parts`` tells instead. Raises ``UsageError`` where the shape would have to be guessed."""
    _check(parts)
    known = {s.name: s for s in SHAPES}
    key = re.sub(r"\s+", "", (model or "").casefold())
    mixture = _MIXTURE.fullmatch(key)
    shape = known.get(key)
    if shape is None and mixture and not (parts.params and parts.active):
        raise UsageError(
            _("the shape of the mixture of experts {model} is not known").format(model=model),
            _("give --params (all), --active (used per token), --layers, --hidden and --heads; known: 8x7b, 8x22b"),
        )
    if shape is None and (parts.layers is None or parts.hidden is None or parts.heads is None):
        sizes = ", ".join(s.name for s in SHAPES)
        raise UsageError(
            _("the shape of a model of size {model} is not known").format(model=model) if model else _("no model is named"),
            _("take a near size of {sizes}, or give --layers, --hidden and --heads").format(sizes=sizes),
        )
    return _with_parts(shape, model or _("by parts"), bool(mixture), parts)


def _with_parts(shape: Shape | None, name: str, mixture: bool, parts: Parts) -> Shape:
    told = {k: v for k in ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab") if (v := getattr(parts, k)) is not None}
    total = parse_count(parts.params, "--params") if parts.params else None
    used = parse_count(parts.active, "--active") if parts.active else None
    if total is None and used is not None:
        raise UsageError(_("--active needs --params"), _("all parameters must be held, not only those used per token"))
    if total is None and shape is None and name[:1].isdigit() and _SIZE.fullmatch(name.strip()):
        total = parse_count(name, "--model")
    if shape is None:
        hidden, heads = told["hidden"], told["heads"]
        shape = Shape(name, told["layers"], hidden, heads, heads, _ffn(hidden), 32000, source=_("parts given"))
    elif told:
        shape = replace(shape, source=_("{source}, changed").format(source=shape.source))
    shape = replace(shape, **told)
    if "heads" in told and "kv_heads" not in told:
        shape = replace(shape, kv_heads=told["heads"])
    if shape.hidden % shape.heads or shape.heads % shape.kv_heads:
        raise UsageError(
            _("{hidden} is not a multiple of {heads} heads, or these of {kv} key-value heads").format(
                hidden=shape.hidden, heads=shape.heads, kv=shape.kv_heads
            ),
            _("look at the model's config.json: hidden_size, num_attention_heads, num_key_value_heads"),
        )
    if total is not None:
        if used is not None and used > total:
            raise UsageError(_("--active is more than --params"), _("--active are those used per token"))
        shape = replace(shape, total=total, used=used)
        if "ffn" not in told:
            shape = _fitted(shape, total, used, mixture)
    return shape


def _ffn(hidden: int) -> int:
    """Width of a gated MLP as large as one of 4 x hidden: 8/3 x hidden, up to a multiple of 256 (Touvron et al. 2023)."""
    return -(-8 * hidden // 3 // 256) * 256


def _fitted(shape: Shape, total: int, used: int | None, mixture: bool) -> Shape:
    """The MLP's width that gives the parameters told (of a mixture: those active)."""
    rest = (used or total) - shape.embedding_params - shape.layers * shape.attention_params
    per_width = (3 if shape.gated else 2) * shape.hidden * shape.layers
    if rest < per_width:
        raise UsageError(
            _("layers, width and vocabulary alone have more parameters than were told"), _("check --params against --layers and --hidden")
        )
    width = rest // per_width
    # of a mixture told by its sums, all active experts are one MLP of that width
    return replace(shape, ffn=width, experts=1, active=1) if mixture or used is not None else replace(shape, ffn=width)


def _check(parts: Parts) -> None:
    for name in ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab"):
        value = getattr(parts, name)
        if value is not None and not 1 <= value <= 10**7:
            option = "--" + name.replace("_", "-")
            raise UsageError(_("{option} must be at least 1").format(option=option), _("look at the model's config.json"))
