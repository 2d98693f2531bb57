"""The command line: it parses and prints, everything else is done elsewhere.

main          the group of all commands, and its errors
catalogue     list, info, check
pipeline      prepare, encode, run
scoring       evaluate
reports       tables, plot, diff
options       options that several commands share
completion    names that a shell completes
console       runs with their progress, scores as text
descriptions  what info tells
progress      how far long work is, on stderr
"""
