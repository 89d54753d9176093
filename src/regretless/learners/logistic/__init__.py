"""OnlineLogisticRegression, the learner with nothing to tune, and the parts it is made of."""
