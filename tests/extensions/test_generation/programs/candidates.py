"""Test suites for ``ledger.py`` as developers handed them in."""

HAPPY = """\
from ledger import Ledger


def test_open_and_find():
    ledger = Ledger()
    account = ledger.open("a", 100)
    assert ledger.find("a") is account
    assert account.available == 100


def test_transfer_moves_money():
    ledger = Ledger()
    ledger.open("a", 100)
    ledger.open("b")
    assert ledger.transfer("a", "b", 40) == 0
    assert (ledger.find("a").cents, ledger.find("b").cents) == (60, 40)


def test_transfer_again():  # nothing that the one before does not see
    ledger = Ledger()
    ledger.open("a", 100)
    ledger.open("b")
    ledger.transfer("a", "b", 40)
    assert ledger.find("b").cents == 40


def test_total():
    ledger = Ledger()
    ledger.open("a", 100)
    ledger.open("b", 11)
    assert ledger.total() == 111


def test_statement():
    ledger = Ledger()
    ledger.open("a", 1234)
    ledger.open("b")
    ledger.transfer("a", "b", 1205)
    assert ledger.statement("a") == ["out -12.05"]
    assert ledger.statement("b") == ["in  +12.05"]
"""

STRICT = """\
import pytest

from ledger import Ledger, LedgerError, Overdrawn, UnknownAccount


@pytest.fixture
def ledger():
    ledger = Ledger(fee_percent=2, least_fee=5)
    ledger.open("a", 1_000, limit=50)
    ledger.open("b")
    return ledger


class TestRefusals:
    @pytest.mark.parametrize("name", ["", "  ", "a"])
    def test_names(self, ledger, name):
        with pytest.raises(LedgerError):
            ledger.open(name)

    @pytest.mark.parametrize(("cents", "limit"), [(-1, 0), (0, -1)])
    def test_beginnings(self, ledger, cents, limit):
        with pytest.raises(ValueError):
            ledger.open("c", cents, limit)

    def test_unknown(self, ledger):
        with pytest.raises(UnknownAccount):
            ledger.transfer("a", "nobody", 1)

    def test_nothing(self, ledger):
        with pytest.raises(ValueError):
            ledger.transfer("a", "b", 0)


class TestFees:
    def test_least(self, ledger):
        assert ledger.transfer("a", "b", 10) == 5

    def test_percent(self, ledger):
        assert ledger.transfer("a", "b", 500) == 10
        assert ledger.find("a").history == [("out", -500), ("fee", -10)]

    def test_to_the_edge(self, ledger):
        assert ledger.transfer("a", "b", 1_030) == 20
        with pytest.raises(Overdrawn):
            ledger.close("a")

    def test_beyond(self, ledger):
        with pytest.raises(Overdrawn):
            ledger.transfer("a", "b", 1_040)


def test_empty_statement(ledger):
    assert ledger.statement("b") == ["nothing yet"]


def test_close(ledger):
    assert ledger.close("b") == 0
    assert list(ledger.accounts) == ["a"]
"""

CARELESS = """\
from ledger import Ledger

CALLS = []


def helper(cents):
    CALLS.append(cents)
    ledger = Ledger(fee_percent=1)
    ledger.open("a", cents)
    ledger.open("b")
    return ledger


def test_wrong():
    assert helper(100).total() == 99


def test_itself():
    ledger = helper(100)
    assert ledger.transfer("a", "a", 50) == 0
    assert ledger.total() == 100


def test_called_by_another():
    assert helper(100).fee(5_000) == 50


def test_calls_another():
    test_called_by_another()
    assert helper(7).close("a") == 7
"""

NOT_COLLECTED = "import nowhere_to_be_found\n\ndef test_a():\n    pass\n"
PAIRS = {
    "they complete each other": (HAPPY, STRICT),
    "one has a wrong test": (STRICT, CARELESS),
    "one cannot be collected": (NOT_COLLECTED, HAPPY),
}
