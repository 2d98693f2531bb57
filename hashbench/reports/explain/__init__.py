"""Why numbers differ: the same codes through the scoring scripts that people use.

scripts     the scripts, one row of scripts.csv each; a new one goes there, and if it sorts into
            tests/reports/test_orders.py
orders      the tie orders of scripts, by the sorts they call
sorts       the sorts that are compiled
ranking     queries as scripts see them: distances, the order of the items, scores; the loop over all queries
quantities  means over queries, and what some scripts compute that is none of hashbench's metrics
emulation   their values beside the exact ones, and what makes each difference
answers     these as tables and JSON; the search for scripts, metrics and orders of the database that print a number
run_tools   the same for runs: trec_eval, pytrec_eval, ir_measures and ranx
explained   what the command prints of codes or a run, and Python gets as data frames
"""
