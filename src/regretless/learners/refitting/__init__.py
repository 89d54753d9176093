"""Learners that remember rows: exact solutions of problems that other learners approximate, at a growing cost."""
