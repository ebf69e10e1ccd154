"""The one file that is pushed to a machine: supervisor of a run, reader of its logs, prober of the machine.

This folder is its source; `remote/bundle.py` zips it into that file, which Python runs as it is. Rules for all that is
in here: Python 3.8, the standard library alone, no import from the rest of dflash_tui, and the rest never imports it.
Nothing from a request becomes a path before it has been checked, and nothing becomes part of a program or shell line.

A request is one JSON line, `{"id": 1, "ops": [{"op": "status", ...}, ...]}`. An answer is one JSON line with the length
of each result's bytes, `{"id": 1, "results": [...], "blobs": [0, ...]}`, then those bytes. A result that holds `error`
is one sentence for a person.
"""
