"""What TPUs did: their time, operations, copies, launches and padding."""
