"""The journal of runs in a database that several processes and machines share, on DBOS."""
