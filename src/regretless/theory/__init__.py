"""The objects of the theorems: losses, domains, bounds, and the best model in hindsight."""
