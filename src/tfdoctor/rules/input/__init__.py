"""The input pipeline, from its datasets to the device."""
