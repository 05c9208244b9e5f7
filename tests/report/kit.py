"""What tests here are written with: ``from tests.report.kit import *``."""

import base64
from collections import defaultdict
from difflib import ndiff
from html.parser import HTMLParser
from itertools import combinations, cycle, product
from typing import Literal

import jsonschema
import plotly.graph_objects as go
from axe_playwright_python.sync_playwright import Axe
from hypothesis import example
from jsonschema import Draft4Validator
from markdown_it import MarkdownIt
from markdown_it.token import Token
from playwright.sync_api import Browser, BrowserContext, Dialog, Page, Position, expect
from plotly.offline import get_plotlyjs_version
from rich.cells import cell_len
from rich.text import Text

from benchmarks import gallery
from scripts.report_schema import schema
from tests.cases import sure
from tests.diagnose.kit import chart_of, effects, part, states, times
from tests.facts.kit import Told
from tests.fleet.runs import finding, reported
from tests.history.made import commit, followed, noisy
from tests.kit import *
from tests.report import diagnoses
from tests.report.diagnoses import *
from tests.report.diagnoses import saving as saves
from tfdoctor.diagnose import engine, savings
from tfdoctor.diagnose.diagnose import diagnose
from tfdoctor.diagnose.order import order
from tfdoctor.diagnose.summary.timeline import TimelineWork
from tfdoctor.diagnose.summary.timeline import drawn as timeline_of
from tfdoctor.diagnosis import Diagnosis, Trust
from tfdoctor.diagnosis.comparison import Direction, PartChange, RunComparison, Undecided
from tfdoctor.diagnosis.entries import Entry
from tfdoctor.diagnosis.fleet_report import FleetReport
from tfdoctor.diagnosis.gates import BaselineUse
from tfdoctor.diagnosis.history_report import History, HistoryRun, MetricHistory, RegressionCheck, RunMetric
from tfdoctor.diagnosis.rank import with_measured_bounds
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.rule import Rule, Topic
from tfdoctor.diagnosis.savings import *
from tfdoctor.diagnosis.step import StepsSummary
from tfdoctor.diagnosis.trials import Beside, Measured, TrainingMatch, TrainingState, Trial, Trials
from tfdoctor.diagnosis.work import DeviceRates, PhaseRow, Profile, PythonPart, RunAccount
from tfdoctor.facts.chart import Chart
from tfdoctor.facts.input.input_pipeline import PipelineSegment
from tfdoctor.facts.savings.step_model import StepModel
from tfdoctor.facts.step_time.breakdown import PARTS as EXPOSED
from tfdoctor.recording import Recording
from tfdoctor.report import comparison, findings, fleet, sentences, template, terminal, trials
from tfdoctor.report import run as bar
from tfdoctor.report.files import write_texts
from tfdoctor.report.findings import changes
from tfdoctor.report.formats import FORMATS, html, llm, md, sarif
from tfdoctor.report.formats import json as json_format
from tfdoctor.report.formats.json import MOST_OPERATIONS, contract
from tfdoctor.report.history import charts as history_charts
from tfdoctor.report.history import page as history_page
from tfdoctor.report.pictures.figures import Figure, figure_json
from tfdoctor.report.pictures.palette import DARK_PAGE, LIGHT_PAGE, PART_COLOURS, SHARE_SCALE, ink, shade
from tfdoctor.report.pictures.roofline import *
from tfdoctor.report.pictures.step_bars import caption, lanes, step_bars, ticks
from tfdoctor.report.run import GLYPHS, PHASE_COLOURS, PHASE_NOUNS, RunSection, section
from tfdoctor.report.sections import energy_brief, energy_notes
from tfdoctor.report.tables import Grid
from tfdoctor.report.template import coded, to_html
from tfdoctor.report.terminal import capture
from tfdoctor.report.terminal.table import LINES, WIDEST, brief, fitted, widths
from tfdoctor.report.trial_words import against, against_itself, beside, less, saved, trained
from tfdoctor.report.words import PART_LABELS, joined, run_saving
from tfdoctor.rules import all_rules
from tfdoctor.stored.files import open_report
from tfdoctor.stored.report import finished
from tfdoctor.terms import humanize, text
from tfdoctor.terms.humanize import counted, energy, milliseconds, place
from tfdoctor.terms.json_form import converted
from tfdoctor.terms.kinds import DeviceKind, EnergySource, Phase, RunCall, StepSource, TrustLevel
from tfdoctor.terms.run_time import LongStepTime, PhaseLine, PhaseSegment, WorkersTime
from tfdoctor.terms.text import legible
from tfdoctor.terms.units import Quantity, Unit, bandwidth, count, flop_rate, ms, nbytes, ratio
from tfdoctor.terms.verdict import *

Compare = Callable[[str, str], None]
