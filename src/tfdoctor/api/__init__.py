"""tfdoctor from Python and in notebooks: `tfdoctor.record` and `tfdoctor.Recorder`.

`import tfdoctor` loads none of this, and this loads neither TensorFlow nor Keras.
"""
