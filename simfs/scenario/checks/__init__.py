"""What the models of the sections cannot see: names, locks and fits."""
