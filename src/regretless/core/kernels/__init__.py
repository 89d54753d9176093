"""Compiled code: how kernels are compiled, cached and called."""
