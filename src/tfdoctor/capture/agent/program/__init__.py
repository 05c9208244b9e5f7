"""What the run builds: graphs, layers, datasets and their batches, kept until they are written."""
