"""Protocols, which clients run, and aggregates of their reports. A client needs only NumPy and SciPy."""

from skldp.protocols._aggregate import Aggregate
from skldp.protocols._base import Protocol
from skldp.protocols._category_protocol import CategoryProtocol
from skldp.protocols._client import Client
from skldp.protocols._gradient_model import GradientModel
from skldp.protocols._gradient_protocol import GradientProtocol
from skldp.protocols._gradient_server import GradientClient, GradientServer
from skldp.protocols._label_record_protocol import LabelRecordProtocol
from skldp.protocols._moment_choice import axis_constant, moment_mechanism, moment_risk
from skldp.protocols._moment_protocol import CovarianceProtocol, LabelMomentProtocol, MomentProtocol
from skldp.protocols._pair_protocol import PairProtocol
from skldp.protocols._record_protocol import RecordProtocol
from skldp.protocols._report_files import load_reports, save_reports
from skldp.protocols._round_protocol import CountRoundProtocol, RoundProtocol
from skldp.protocols._sampled_moment_protocol import SampledLabelMomentProtocol, SampledMomentProtocol
from skldp.protocols._sampled_values import SampledValueProtocol
from skldp.protocols._values import ValueProtocol

__all__ = [
    "Aggregate",
    "CategoryProtocol",
    "Client",
    "CovarianceProtocol",
    "GradientClient",
    "GradientModel",
    "GradientProtocol",
    "GradientServer",
    "LabelMomentProtocol",
    "LabelRecordProtocol",
    "MomentProtocol",
    "PairProtocol",
    "Protocol",
    "RecordProtocol",
    "CountRoundProtocol",
    "RoundProtocol",
    "SampledLabelMomentProtocol",
    "SampledMomentProtocol",
    "SampledValueProtocol",
    "ValueProtocol",
    "axis_constant",
    "load_reports",
    "moment_mechanism",
    "moment_risk",
    "save_reports",
]
