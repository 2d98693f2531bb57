"""The command line: it parses and prints, and leaves the work to other packages.

main          the group of all commands, where a new one is a line of ``COMMANDS``, and its errors; on
catalogue     list, info, check
pipeline      prepare, encode, export, run
scoring       evaluate, candidates, save, explain
thresholds    thresholds
comparing     compare
tuning        tune
reports       tables, plot, report, diff
results       results merge, check, rerun
options       options that several commands share, rules on which go together, and names that a shell completes
inputs        options for what is scored, and how it is read
outputs       checks of files that users name for output
console       runs with their progress, and what is printed of scores
descriptions  what info prints
progress      progress of long work, on stderr
"""
