"""Python in a process of its own."""

import subprocess
import sys


def printed_by(code, **options):
    """Return what a piece of code prints in a fresh interpreter that has imported ``sys``; it must succeed."""
    command = [sys.executable, "-c", f"import sys\n{code}"]
    return subprocess.run(command, capture_output=True, text=True, check=True, **options).stdout
