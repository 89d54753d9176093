"""Learners that partition the rows by trees."""
