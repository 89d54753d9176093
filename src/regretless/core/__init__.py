"""What every learner is made of: rows and labels in, tallies, files, locks, compiled code."""
