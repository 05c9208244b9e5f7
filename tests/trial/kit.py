"""What tests here are written with: ``from tests.trial.kit import *``."""

import dataclasses
import py_compile
import threading
from contextlib import contextmanager, nullcontext, suppress
from fractions import Fraction

import psutil
from typer.testing import CliRunner

from tests.capture.running import SOURCES, environment
from tests.cases import sure
from tests.cli.kit import made
from tests.compare.made import MACHINE, SUBJECT, report, series
from tests.edits.kit import finding, recorded, remedy
from tests.kit import *
from tests.report import diagnoses
from tests.report.diagnoses import HELPS, NOISY, NOTHING, SLOW, full, tried, untried
from tests.rules.verdicts import as_finding
from tests.trial.made import *
from tfdoctor import cli
from tfdoctor.capture.agent.trial.settings import NO_XLA
from tfdoctor.capture.plan import Kind, agent_environment
from tfdoctor.capture.sampler.rapl import RaplSampler
from tfdoctor.cli import FOUND
from tfdoctor.cli.gates import exit_code
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.rule import Topic
from tfdoctor.diagnosis.savings import Order, Relation, Relationship, RunSaving, Saving
from tfdoctor.diagnosis.trials import Difference, Measured, TrainingMatch, TrainingState, Trial, Trials
from tfdoctor.edits import edited
from tfdoctor.facts.run_work.run_parts import RunPart
from tfdoctor.recording import HostMachine, Recording
from tfdoctor.recording.program import ProgramRecord, RecordedDataset, RecordedFunction
from tfdoctor.recording.typed import read
from tfdoctor.report import terminal
from tfdoctor.report.findings import BY_TRIAL
from tfdoctor.report.formats import render
from tfdoctor.report.trial_words import against_itself, saved
from tfdoctor.rulebook.config import FailOn
from tfdoctor.rules import all_rules
from tfdoctor.source_code.splice import Declined
from tfdoctor.terms import student_t
from tfdoctor.terms.errors import CaptureError, InterruptedTrialError
from tfdoctor.terms.humanize import MINUS
from tfdoctor.terms.kinds import DeviceKind, EnergySource, Part
from tfdoctor.terms.verdict import *
from tfdoctor.trial import clock as clocks
from tfdoctor.trial import diffs, layer, of_recording, proposals, statistics, stored, taking_out, trial
from tfdoctor.trial.clock import FEWEST_TIMED, FEWEST_WARM, NEVER, Enough, TrialClock
from tfdoctor.trial.of_recording import Request
from tfdoctor.trial.program import (
    AS_IS,
    NotTried,
    RecordedProgram,
    Variant,
    bytes_beside_others,
    distinct,
    must_be_unchanged,
    texts_of,
)
from tfdoctor.trial.rounds import AROUND, Runs
from tfdoctor.trial.running import LEASH, EnergyCounters, Runner, TrialRun
from tfdoctor.trial.schedule import LEAST_ROUNDS, by_promise, first_rounds, narrow
from tfdoctor.trial.statistics import FEWEST_ROUNDS, Round
from tfdoctor.trial.taking_out import LEAST_STEPS, Length
from tfdoctor.trial.times import Loop, Timing, TrainedState, TrialTimes, aligned, times_of
from tfdoctor.trial.training import compare
from tfdoctor.trial.trial import with_measured
from tfdoctor.trial.turns import TurningRun, take_turns
