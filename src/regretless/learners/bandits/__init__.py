"""Learners with bandit feedback."""
