"""Evaluation: one pass over a stream, and the scores of every learner."""
