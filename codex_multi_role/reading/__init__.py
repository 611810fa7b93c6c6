"""What every part reads with: names, and data that people, models or programs wrote."""
