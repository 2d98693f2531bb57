"""Result files as tests read them: only with csv and json, and as bytes."""

import csv
import json


def rows_in(folder):
    """Return the rows of a dataset's folder of results, as texts, each with its parameters in place of their name."""
    rows = []
    for path in files_in(folder):
        settings = json.loads(path.with_suffix(".settings.json").read_text())
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                params = json.dumps(settings[row["settings"]]["params"], sort_keys=True)
                rows.append({"params" if key == "settings" else key: row[key] for key in row} | {"params": params})
    return rows


def files_in(folder):
    """Return the files of a dataset's rows, sorted by method."""
    return sorted(path for path in folder.glob("*.csv") if not path.name.endswith(".jobs.csv"))


def contents(folder):
    """Return the bytes of rows and settings, by file; without records of jobs, which hold dates and run times."""
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir()) if not path.name.endswith(".jobs.csv")}
