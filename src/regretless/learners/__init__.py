"""The learners, one package per family."""
