"""Orders of a shop: prices, discounts, taxes, shipping, stock. One bug is put in on purpose: see `Bulk`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation

CENT = Decimal("0.01")
STATES = ("open", "paid", "packed", "sent", "cancelled")


class OrderError(Exception):
    """Something is wrong with an order."""


class InvalidAmount(OrderError):
    """No amount of money."""


class UnknownArticle(OrderError):
    """The shop has no such article."""


class OutOfStock(OrderError):
    """Fewer are left than wanted."""

    def __init__(self, article: str, wanted: int, left: int) -> None:
        super().__init__(f"{wanted} of {article} are wanted, {left} are left")
        self.article = article
        self.missing = wanted - left


class WrongState(OrderError):
    """The order cannot go there from where it is."""


def amount(text: str) -> Decimal:
    """``"1,234.50"`` or ``"12"`` as an amount in cents; negative ones are refused."""
    cleaned = text.strip().replace(",", "")
    if not cleaned:
        raise InvalidAmount("nothing is no amount")
    try:
        value = Decimal(cleaned)
    except InvalidOperation as error:
        raise InvalidAmount(f"{text!r} is no amount") from error
    if not value.is_finite() or value < 0:
        raise InvalidAmount(f"{text!r} is no amount")
    return rounded(value)


def rounded(value: Decimal) -> Decimal:
    """To the cent, half a cent up."""
    return value.quantize(CENT, rounding=ROUND_HALF_UP)


@dataclass(frozen=True)
class Article:
    """What is sold. ``kind``: goods, food or book."""

    name: str
    price: Decimal
    kind: str = "goods"
    grams: int = 0

    def __post_init__(self) -> None:
        if self.price < 0:
            raise InvalidAmount(f"{self.name} costs less than nothing")
        if self.grams < 0:
            raise OrderError(f"{self.name} weighs less than nothing")


@dataclass(frozen=True)
class Line:
    """So many of an article."""

    article: Article
    count: int

    def __post_init__(self) -> None:
        if self.count < 1:
            raise OrderError("a line has at least one")

    @property
    def total(self) -> Decimal:
        return rounded(self.article.price * self.count)

    @property
    def grams(self) -> int:
        return self.article.grams * self.count


class Discount:
    """Takes something off a line; the base takes nothing."""

    name = "none"

    def off(self, line: Line) -> Decimal:
        return Decimal("0.00")

    def __or__(self, other: Discount) -> Discount:
        return Best([self, other])


class Percentage(Discount):
    """So many percent, from 0 to 100."""

    name = "percentage"

    def __init__(self, percent: int) -> None:
        if not 0 <= percent <= 100:
            raise OrderError(f"{percent} % cannot be taken off")
        self.percent = percent

    def off(self, line: Line) -> Decimal:
        return rounded(line.total * self.percent / 100)


class Bulk(Percentage):
    """So many percent from ``least`` articles on."""

    name = "bulk"

    def __init__(self, percent: int, least: int) -> None:
        super().__init__(percent)
        if least < 2:
            raise OrderError("one is no bulk")
        self.least = least

    def off(self, line: Line) -> Decimal:
        if line.count > self.least:  # the bug: ten are ten or more
            return super().off(line)
        return Decimal("0.00")


class OneFree(Discount):
    """Of every ``of`` one is free."""

    name = "one free"

    def __init__(self, of: int) -> None:
        if of < 2:
            raise OrderError("then all were free")
        self.of = of

    def off(self, line: Line) -> Decimal:
        return rounded(line.article.price * (line.count // self.of))


class Best(Discount):
    """The one of several that takes most."""

    name = "best"

    def __init__(self, discounts: Iterable[Discount]) -> None:
        self.discounts = list(discounts)
        if not self.discounts:
            raise OrderError("the best of nothing")

    def off(self, line: Line) -> Decimal:
        return max(each.off(line) for each in self.discounts)


class Tax:
    """Rates in percent by kind of article and country."""

    RATES = {  # noqa: RUF012 - read only
        "DE": {"goods": 19, "food": 7, "book": 7},
        "AT": {"goods": 20, "food": 10, "book": 10},
        "IE": {"goods": 23, "food": 0, "book": 0},
    }

    def __init__(self, country: str) -> None:
        if country not in self.RATES:
            raise OrderError(f"no rates for {country}")
        self.country = country

    def rate(self, kind: str) -> int:
        rates = self.RATES[self.country]
        if kind in rates:
            return rates[kind]
        return max(rates.values())

    def of(self, net: Decimal, kind: str) -> Decimal:
        return rounded(net * self.rate(kind) / 100)


def shipping(grams: int, net: Decimal, express: bool = False) -> Decimal:
    """Free from 50 on, unless it is express or heavier than 20 kg."""
    if grams < 0:
        raise OrderError("less than no weight")
    if grams == 0:
        return Decimal("0.00")
    if grams <= 1_000:
        cost = Decimal("3.90")
    elif grams <= 5_000:
        cost = Decimal("5.90")
    elif grams <= 20_000:
        cost = Decimal("9.90")
    else:
        parcels = -(-grams // 20_000)
        cost = Decimal("9.90") * parcels
    if express:
        return cost * 2
    if net >= 50 and grams <= 20_000:
        return Decimal("0.00")
    return cost


@dataclass
class Stock:
    """How many of each article are left."""

    left: dict[str, int] = field(default_factory=dict)

    def add(self, article: str, count: int) -> int:
        if count <= 0:
            raise OrderError("nothing to add")
        self.left[article] = self.left.get(article, 0) + count
        return self.left[article]

    def take(self, article: str, count: int) -> int:
        if article not in self.left:
            raise UnknownArticle(article)
        if self.left[article] < count:
            raise OutOfStock(article, count, self.left[article])
        self.left[article] -= count
        return self.left[article]

    def missing(self, lines: Iterable[Line]) -> dict[str, int]:
        """What is short, by article; what is there in full is not named."""
        wanted: dict[str, int] = {}
        for line in lines:
            wanted[line.article.name] = wanted.get(line.article.name, 0) + line.count
        return {
            name: count - self.left.get(name, 0) for name, count in wanted.items() if count > self.left.get(name, 0)
        }


class Order:
    """Lines, and the way from open to sent."""

    NEXT = {"open": "paid", "paid": "packed", "packed": "sent"}  # noqa: RUF012 - read only

    def __init__(self, tax: Tax, discount: Discount | None = None) -> None:
        self.tax = tax
        self.discount = discount or Discount()
        self.lines: list[Line] = []
        self.state = "open"

    def __len__(self) -> int:
        return sum(line.count for line in self.lines)

    def __iter__(self) -> Iterator[Line]:
        return iter(self.lines)

    def add(self, article: Article, count: int = 1) -> Order:
        if self.state != "open":
            raise WrongState(f"the order is {self.state}")
        for index, line in enumerate(self.lines):
            if line.article == article:
                self.lines[index] = Line(article, line.count + count)
                return self
        self.lines.append(Line(article, count))
        return self

    def net(self) -> Decimal:
        return sum((line.total - self.discount.off(line) for line in self.lines), Decimal("0.00"))

    def taxes(self) -> Decimal:
        found = Decimal("0.00")
        for line in self.lines:
            found += self.tax.of(line.total - self.discount.off(line), line.article.kind)
        return found

    def total(self, express: bool = False) -> Decimal:
        grams = sum(line.grams for line in self.lines)
        return self.net() + self.taxes() + shipping(grams, self.net(), express)

    def advance(self, stock: Stock) -> str:
        """To the next state; what is packed is taken from the stock, all or nothing."""
        if not self.lines:
            raise WrongState("the order is empty")
        if self.state not in self.NEXT:
            raise WrongState(f"the order is {self.state}")
        if self.state == "paid":
            short = stock.missing(self.lines)
            for name, count in short.items():
                raise OutOfStock(name, count, 0)
            for line in self.lines:
                stock.take(line.article.name, line.count)
        self.state = self.NEXT[self.state]
        return self.state

    def cancel(self, stock: Stock) -> str:
        """What was packed goes back; what was sent is gone."""
        if self.state in ("sent", "cancelled"):
            raise WrongState(f"the order is {self.state}")
        if self.state == "packed":
            for line in self.lines:
                stock.add(line.article.name, line.count)
        self.state = "cancelled"
        return self.state
