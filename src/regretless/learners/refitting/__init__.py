"""Exact, slow forecasters: they keep every row, and solve the problem that others approximate."""
