"""Result files as tests read them: only with csv and json, and as bytes."""

import csv
import json


def rows_in(folder):
    """Return the rows of a dataset's folder of results, as texts, each with its parameters in place of their name."""
    rows = []
    for path in files_in(folder):
        settings = json.loads(path.with_suffix(".json").read_text())["settings"]
        with path.open(newline="") as file:
            for row in csv.DictReader(file):
                params = json.dumps(settings[row["settings"]], sort_keys=True)
                rows.append({"params" if key == "settings" else key: row[key] for key in row} | {"params": params})
    return rows


def files_in(folder):
    """Return the files of a dataset's rows, sorted by method."""
    return sorted(folder.glob("*.csv"))


def contents(folder):
    """Return the bytes of rows, and the settings, by file; without origins, which hold dates and run times."""
    settings = {path.name: json.loads(path.read_text())["settings"] for path in folder.glob("*.json")}
    return {path.name: path.read_bytes() for path in files_in(folder)} | settings


def jobs_in(path):
    """Return the lines of jobs beside a results file, each with what it shares with others of its origin."""
    record = json.loads(path.with_suffix(".json").read_text())
    return [record["origins"][job["origin"]] | job for job in record["jobs"]]
