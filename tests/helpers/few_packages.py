"""Python in a process that has the packages of the base install, and none of the extras."""

import subprocess
import sys

REFUSING = """
import sys
ALLOWED = {*sys.stdlib_module_names, "hashbench"}
ALLOWED |= {"numpy", "h5py", "click", "cloup", "typing_extensions", "filelock", "platformdirs"}
ALLOWED |= {"rich", "markdown_it", "mdurl", "pygments"}
class Refusing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] not in ALLOWED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Refusing())
"""


def run_with_few_packages(code, *arguments, **options):
    """Run a piece of code, with ``arguments`` from ``sys.argv[1]`` on; return what it printed, as stdout and stderr."""
    command = [sys.executable, "-c", REFUSING + code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, **options)
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr
