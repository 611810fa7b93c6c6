"""The web pages: all runs, one run live, decisions, files, starting a run (extra ``[web]``)."""
