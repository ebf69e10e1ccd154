"""The rows of a store's run, repeated behind its end until there are so many times as many. Words: the file, how many.

By SQL: a log of ten million steps takes 2.6 GB and minutes to write.
"""

import sys

import duckdb

with duckdb.connect(sys.argv[1]) as db:
    [(num,)] = db.execute("select count(*) from logged").fetchall()
    for nth in range(1, int(sys.argv[2])):
        db.execute(
            "insert into step_rows select * replace (line_no + $by as line_no, step + $by as step,"
            ' "time" + $by * 2.12 as "time") from step_rows where line_no <= $num',
            {"by": nth * num, "num": num},
        )
    db.execute(
        "update cursors set line_no = 1 + $last, before_step = $last, last_step = $last,"
        " byte_offset = byte_offset * $times",
        {"last": num * int(sys.argv[2]), "times": int(sys.argv[2])},
    )
print("{}")
