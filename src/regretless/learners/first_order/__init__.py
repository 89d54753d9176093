"""First-order learners: one gradient per row, a mirror map and a schedule of step sizes."""
