"""run: one pass of a learner over a file. Writes forecasts, model, scores and a report, and can be resumed."""
