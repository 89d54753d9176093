"""Learners that hold several learners."""
