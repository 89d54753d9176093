"""Wrappers around a learner: online-to-batch conversion, and learning in shards."""
