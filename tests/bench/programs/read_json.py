"""DuckDB's own way: a log by its typed read_json into a table of a file. Words: the log, the file."""

import json
import sys

import duckdb

with open(sys.argv[1]) as log:
    first = json.loads(log.readline())
kinds = {bool: "BOOLEAN", int: "DOUBLE", float: "DOUBLE", str: "VARCHAR", list: "DOUBLE[]"}
columns = {key: kinds[type(value)] for key, value in first.items()}
with duckdb.connect(sys.argv[2]) as db:
    db.execute(
        "create table steps as select * from read_json($f, format = 'newline_delimited', columns = $c)",
        {"f": sys.argv[1], "c": columns},
    )
print("{}")
