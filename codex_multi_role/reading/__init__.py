"""What every part reads with: names, parts by name, and data that people, models or programs wrote."""
