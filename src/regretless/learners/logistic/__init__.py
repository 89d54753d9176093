"""OnlineLogisticRegression, the learner with nothing to tune, and its parts."""
