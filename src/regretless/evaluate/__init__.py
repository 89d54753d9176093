"""The game played to be measured: one pass over a stream, and the score of every learner."""
