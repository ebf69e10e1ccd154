"""Runs a script of `tests/data/cases` as it is, in the trainer's place: `script` is its path, `argv` its arguments."""
