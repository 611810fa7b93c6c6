"""The commands of batches and of workers."""
