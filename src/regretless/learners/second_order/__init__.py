"""Second-order learners: one sum of quadratics (docs/architecture.md), five forecast rules."""
