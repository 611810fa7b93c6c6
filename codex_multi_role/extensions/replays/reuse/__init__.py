"""What turns of an earlier run stand for turns of another, and what decides on that."""
