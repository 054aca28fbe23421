"""Published measurements: data sets, the metrics of their rows, and which scenario predicts them."""
