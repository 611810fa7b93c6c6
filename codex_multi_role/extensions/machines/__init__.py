"""Many goals, and many machines: batches, workers that share a database, and the store that moves runs between them."""
