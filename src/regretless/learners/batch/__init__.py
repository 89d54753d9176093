"""Batch predictors: fitted once on all rows, with a bound on their risk on new rows."""
