"""All commands, and options of a command line from keywords."""

import click


def commands(group, path=()):
    """Yield each command line that there is, such as ``results check``, with its command."""
    for name in group.list_commands(None):
        command = group.get_command(None, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*path, name)) if name != "on" else ()  # whose commands are those above it
        else:
            yield " ".join((*path, name)), command


def options(**values):
    """Write keywords as options: query_codes="q.npy" as --query-codes q.npy, and pairs as two values."""
    return [
        part
        for key, value in values.items()
        for part in (f"--{key.replace('_', '-')}", *(value if isinstance(value, tuple) else (value,)))
    ]
