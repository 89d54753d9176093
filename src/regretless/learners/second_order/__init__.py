"""Second-order learners: one quadratic machine (docs/architecture.md), five forecast rules."""
