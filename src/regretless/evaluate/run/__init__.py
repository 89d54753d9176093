"""A file through a learner: forecasts, model, score and a report in a folder, with checkpoints to go on from."""
