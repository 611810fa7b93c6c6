"""What is broken, by the promises of the design."""

from __future__ import annotations

from tests.promises.breakage import breakages
from tests.promises.breakages.answers import ANSWERS
from tests.promises.breakages.limits import LIMITS
from tests.promises.breakages.outside import OUTSIDE
from tests.promises.breakages.recorded import RECORDED
from tests.promises.breakages.secrets import SECRETS
from tests.promises.breakages.steering import STEERING
from tests.promises.breakages.verdicts import VERDICTS
from tests.promises.breakages.waits import WAITS

BREAKAGES = (
    *breakages(1, RECORDED),
    *breakages(2, WAITS),
    *breakages(3, OUTSIDE),
    *VERDICTS,
    *breakages(4, LIMITS),
    *breakages(5, SECRETS),
    *breakages(6, STEERING),
    *breakages(7, ANSWERS),
)
