"""Compare whole learners, at their defaults, on every table of the folder CRAFTMAPS_DATA.

    $ python -m benchmarks.league run
    $ python -m benchmarks.league report

`datasets.py` lists the tables, `rivals.py` and `ours.py` the learners. A new one of either kind is
a few lines there. Results are lines of `results.jsonl`, and what is there is not run again.
"""
