"""The papers' tables and figures, run again: specifications, measures, verdicts, report."""
