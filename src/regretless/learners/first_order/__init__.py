"""First-order learners: a mirror map, a schedule of step sizes, and a gradient a round."""
