"""Codes of a database that can only be read in slices, as those on disk."""

from hashbench import Problem


class Slices:
    """Packed codes that record which rows are read."""

    def __init__(self, packed):
        self.packed, self.shape, self.read = packed, packed.shape, []

    def __getitem__(self, rows):
        self.read += range(*rows.indices(len(self.packed)))
        return self.packed[rows]


def in_slices(query, database, n_bits, affinity):
    return Problem.of_packed(query, Slices(database), n_bits, affinity)
