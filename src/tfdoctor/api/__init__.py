"""tfdoctor from Python and in notebooks: `tfdoctor.record` and `tfdoctor.Recorder`.

`import tfdoctor` loads none of this, and this loads neither TensorFlow nor Keras.
"""

from tfdoctor.api.recorder import Recorder
from tfdoctor.api.run import Run, record

__all__ = ["Recorder", "Run", "record"]
