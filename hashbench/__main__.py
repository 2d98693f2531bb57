"""`python -m hashbench`, the same as the command `hashbench`."""

from hashbench.cli.main import cli

if __name__ == "__main__":
    cli()
