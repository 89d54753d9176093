"""Estimators that run a learner: online to batch, and shards on several processes."""
