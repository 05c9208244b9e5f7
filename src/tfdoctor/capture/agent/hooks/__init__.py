"""What the agent puts around functions of TensorFlow and Keras, and around parts and the end of the process."""
