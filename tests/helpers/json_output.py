"""What commands print as JSON."""

import json


def scores_in(text, **options):
    """Return the values by metric that ``evaluate`` printed, without the version that stands before them."""
    content = json.loads(text, **options)
    assert next(iter(content)) == "hashbench"
    del content["hashbench"]
    return content
