"""Sums, scores and functions of numbers that kernels share."""
