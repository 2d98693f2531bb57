"""From packed codes and an affinity to the scores of every query."""
