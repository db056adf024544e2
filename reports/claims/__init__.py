"""The paper's claims, each a rule over measured values with a verdict and its reason."""
