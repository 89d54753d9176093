"""What the theorems speak of: losses, domains, bounds, and the best choice in hindsight."""
