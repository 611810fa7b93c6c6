"""What several test modules share, by what it helps with. No test module imports another one."""
