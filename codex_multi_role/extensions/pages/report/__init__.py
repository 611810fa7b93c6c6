"""The report: everything that happened in a run on one page, which needs no other file and no network."""
