"""The machine: processes, programs, secrets, atomic writes, watched files."""
