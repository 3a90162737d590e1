"""Speed and memory, as ratios to a named peer or to a plain bound. Run with ``make bench``."""
