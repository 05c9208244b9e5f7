"""What edits are written with: ``from tfdoctor.edits.kit import *``."""

import ast
import re

from tfdoctor.edits.calls import *
from tfdoctor.edits.values import *
from tfdoctor.recording.program import ProgramRecord
from tfdoctor.source_code.splice import *
from tfdoctor.source_code.syntax import *
from tfdoctor.source_code.tree import *
