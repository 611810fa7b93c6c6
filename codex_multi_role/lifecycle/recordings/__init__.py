"""Record the answers of a run's models, replay them, and compare the replay with the recorded run."""
