"""Read: show files of several formats to the model."""
