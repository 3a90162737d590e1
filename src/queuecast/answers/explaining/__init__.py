"""Why a job waits: what binds it, since when, until when, and what would change it."""
