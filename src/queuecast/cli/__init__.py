"""The command line: a thin twin of the library. Every command builds an answer and prints it."""
