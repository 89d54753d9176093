"""The parts that all learners share: input of rows and labels, running sums, files, locks, compilation."""
