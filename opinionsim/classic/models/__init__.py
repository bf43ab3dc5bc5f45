"""One file for each classic model, or for a family of models that share a kernel."""
