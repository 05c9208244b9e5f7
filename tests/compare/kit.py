"""What tests here are written with: ``from tests.compare.kit import *``."""

from tests.compare.made import MACHINE, SUBJECT, finding, report, series, with_outcome, with_work
from tests.facts.kit import Told, fields, stated
from tests.kit import *
from tests.report import diagnoses
from tfdoctor.diagnosis import Diagnosis
from tfdoctor.diagnosis.comparison import WIDEST, ChangeOfStep, Direction, FindingState, PartChange, RunComparison
from tfdoctor.diagnosis.gates import BudgetCheck, BudgetState, Off, Settings
from tfdoctor.diagnosis.results import Result
from tfdoctor.diagnosis.savings import Order, Relation, Relationship, Takes
from tfdoctor.diagnosis.step import StepRow, StepsSummary
from tfdoctor.diagnosis.work import PhaseRow, RunAccount
from tfdoctor.report.formats.json import contract
from tfdoctor.terms.kinds import DeviceKind, Phase
from tfdoctor.terms.verdict import *
