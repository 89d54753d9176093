"""Rows and labels in: user input to arrays, and its checks."""
