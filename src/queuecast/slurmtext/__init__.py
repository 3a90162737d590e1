"""The only place that knows how Slurm writes things: durations, times, sizes, TRES, job ids, states, host lists.

Every parser takes one ``str`` and either returns a value or raises :class:`queuecast.errors.ParseError`;
unknown is ``None``, never zero. Nothing here imports more than the standard library, so that the command
line starts quickly; import the module you need, this package re-exports nothing.
"""
