"""The command line: it parses and prints, and leaves the work to other packages.

main          the group of all commands, where a new one is a line of ``COMMANDS``, and its errors
catalogue     list, info, check
pipeline      prepare, encode, run
scoring       evaluate, candidates
thresholds    thresholds
explain       explain
saving        save
comparing     compare
cluster       on
export        export
tuning        tune
reports       tables, plot, report, diff
results       results merge, check, rerun
options       options that several commands share, and rules on which go together
inputs        options for what is scored, and how it is read
outputs       checks of files that users name for output
completion    names that a shell completes
console       runs with their progress, and what is printed of scores
descriptions  what info prints
progress      progress of long work, on stderr
"""
