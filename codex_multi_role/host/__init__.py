"""The machine below: processes, programs, secrets, files that are written whole or watched."""
