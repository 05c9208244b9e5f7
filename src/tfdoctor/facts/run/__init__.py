"""What the run is: its framework, devices, hardware, program and XLA programs."""
