"""Training on ratings of statements: data, reward models, and models that draft statements."""
