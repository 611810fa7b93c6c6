"""A small ledger: accounts that hold money in cents, transfers, fees and statements."""

from __future__ import annotations

from dataclasses import dataclass, field


class LedgerError(Exception):
    """What the ledger refuses."""


class UnknownAccount(LedgerError):
    """There is no such account."""


class Overdrawn(LedgerError):
    """There is not enough in it."""


@dataclass
class Account:
    name: str
    cents: int = 0
    limit: int = 0
    history: list[tuple[str, int]] = field(default_factory=list)

    @property
    def available(self) -> int:
        return self.cents + self.limit

    def book(self, kind: str, cents: int) -> None:
        self.cents += cents
        self.history.append((kind, cents))


class Ledger:
    def __init__(self, fee_percent: int = 0, least_fee: int = 10) -> None:
        self.accounts: dict[str, Account] = {}
        self.fee_percent = fee_percent
        self.least_fee = least_fee

    def open(self, name: str, cents: int = 0, limit: int = 0) -> Account:
        if not name.strip():
            raise LedgerError("an account needs a name")
        if name in self.accounts:
            raise LedgerError(f"{name} is there already")
        if cents < 0 or limit < 0:
            raise ValueError("no account begins below zero")
        account = Account(name, cents, limit)
        self.accounts[name] = account
        return account

    def find(self, name: str) -> Account:
        try:
            return self.accounts[name]
        except KeyError:
            raise UnknownAccount(name) from None

    def fee(self, cents: int) -> int:
        if self.fee_percent == 0:
            return 0
        return max(self.least_fee, cents * self.fee_percent // 100)

    def transfer(self, source: str, target: str, cents: int) -> int:
        if cents <= 0:
            raise ValueError("nothing to transfer")
        giver, taker = self.find(source), self.find(target)
        if giver is taker:
            return 0
        fee = self.fee(cents)
        if giver.available < cents + fee:
            raise Overdrawn(source)
        giver.book("out", -cents)
        taker.book("in", cents)
        if fee:
            giver.book("fee", -fee)
        return fee

    def statement(self, name: str, last: int = 5) -> list[str]:
        account = self.find(name)
        lines = []
        for kind, cents in account.history[-last:]:
            sign = "-" if cents < 0 else "+"
            whole, rest = divmod(abs(cents), 100)
            lines.append(f"{kind:<4}{sign}{whole}.{rest:02d}")
        return lines or ["nothing yet"]

    def total(self) -> int:
        total = 0
        for account in self.accounts.values():
            total += account.cents
        return total

    def close(self, name: str) -> int:
        account = self.find(name)
        if account.cents < 0:
            raise Overdrawn(name)
        del self.accounts[name]
        return account.cents
