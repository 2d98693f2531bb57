"""Why numbers differ: the same codes through the scoring scripts that people use.

orders            the orders in which scripts leave ties, by the sorts they call
conventions       how a script is described: what it sees of a query, how it averages
quantities        what some scripts compute instead of a metric
evaluators        the scripts, one entry each; a new one goes there
emulation         their numbers beside ours, and what makes each difference
explanation_text  tables and JSON of these, and which scripts print a given number
figure            all scripts on the range of ties
spreads           all kept codes of a dataset through the scripts' orders of ties
run_tools         the same for runs: trec_eval, pytrec_eval, ir_measures and ranx
"""
