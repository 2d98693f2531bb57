"""Why numbers differ: the same codes through the scoring scripts that people use.

orders       in which they leave ties, by the sorts they call
conventions  the words that describe a script, what it sees of a query, how it averages
quantities   what some scripts give in place of a metric
evaluators   the scripts, an entry each; a new one goes there
emulation    their numbers beside ours, and what makes each difference
layout       tables, JSON, and which scripts give a number that is known
figure       all of them on the range of ties
"""
