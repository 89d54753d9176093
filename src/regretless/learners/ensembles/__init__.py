"""Learners made of several learners."""
