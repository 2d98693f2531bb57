"""Options of a command line, from keywords."""


def options(**values):
    """Write keywords as options: query_codes="q.npy" as --query-codes q.npy, and pairs as two values."""
    return [
        part
        for key, value in values.items()
        for part in (f"--{key.replace('_', '-')}", *(value if isinstance(value, tuple) else (value,)))
    ]
