"""Second-order learners: one quadratic machine (MATH section 2), five forecast rules."""
