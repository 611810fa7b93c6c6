"""Sixty functions, each with a planted bug: ``name(arguments) | right | wrong | call | what the right one gives``."""

# ruff: noqa: E501 - a table
from __future__ import annotations

from typing import NamedTuple

from tests.support.teams import Record

PLANTED = """
clamp(n, low, high) | max(low, min(n, high)) | max(low, min(n, low)) | clamp(5, 0, 9) | 5
is_leap(y) | y % 4 == 0 and (y % 100 != 0 or y % 400 == 0) | y % 4 == 0 | is_leap(1900) | is:false
median(v) | sorted(v)[len(v) // 2] | v[len(v) // 2] | median([3, 1, 2]) | 2
initials(s) | "".join(w[0].upper() for w in s.split()) | "".join(w[0] for w in s.split()) | initials("ada lovelace") | "AL"
slugged(s) | "-".join(s.lower().split()) | s.lower().replace(" ", "-") | slugged("A  B") | "a-b"
last(v) | v[-1] if v else None | v[0] if v else None | last([1, 2]) | 2
empty(v) | v[-1] if v else None | v[-1] | empty([]) | is:none
product(v) | __import__("math").prod(v) | sum(v) | product([2, 3, 4]) | 24
vowels(s) | sum(c in "aeiou" for c in s.lower()) | sum(c in "aeiou" for c in s) | vowels("AbE") | 2
reverse(s) | s[::-1] | s[::1] | reverse("abc") | "cba"
palindrome(s) | s.lower() == s.lower()[::-1] | s == s[::-1] | palindrome("Anna") | is:true
percent(a, b) | 100 * a / b | 100 * b / a | percent(1, 4) | close:25
celsius(f) | (f - 32) * 5 / 9 | f - 32 * 5 / 9 | celsius(212) | close:100
hypot(a, b) | (a * a + b * b) ** 0.5 | (a + b) ** 0.5 | hypot(3, 4) | close:5
unique(v) | list(dict.fromkeys(v)) | sorted(set(v)) | unique([3, 1, 3]) | [3, 1]
chunks(v, n) | [v[i:i + n] for i in range(0, len(v), n)] | [v[i:i + n] for i in range(len(v))] | chunks([1, 2, 3], 2) | [[1, 2], [3]]
flatten(v) | [x for each in v for x in each] | [each[0] for each in v] | flatten([[1, 2], [3]]) | [1, 2, 3]
count(v) | {x: v.count(x) for x in v} | {x: 1 for x in v} | count("aab") | {"a": 2, "b": 1}
invert(d) | {v: k for k, v in d.items()} | dict(d) | invert({"a": 1}) | {1: "a"}
merge(a, b) | {**a, **b} | {**b, **a} | merge({"x": 1}, {"x": 2}) | {"x": 2}
common(a, b) | set(a) & set(b) | set(a) or set(b) | common([1, 2], [2, 3]) | {2}
minmax(v) | (min(v), max(v)) | (max(v), min(v)) | minmax([2, 1]) | (1, 2)
mean(v) | sum(v) / len(v) | sum(v) // len(v) | mean([1, 2]) | close:1.5
parse(s) | int(s.strip()) | int(s.strip().lstrip("-")) | parse(" -4 ") | -4
refuse(s) | int(s) | int(s) if s.isdigit() else 0 | refuse("x") | raises:ValueError
strict(d, k) | d[k] | d.get(k) | strict({}, 1) | raises:KeyError
divide(a, b) | a / b | a / (b or 1) | divide(1, 0) | raises:ZeroDivisionError
forgive(d, k) | d.get(k, 0) | d[k] | forgive({}, 1) | 0
even(n) | n % 2 == 0 | n % 2 != 0 | even(4) | is:true
odd(n) | n % 2 == 1 | n & 2 == 1 | odd(3) | is:true
factorial(n) | __import__("math").factorial(n) | n * (n - 1) | factorial(5) | 120
fib(n) | n if n < 2 else fib(n - 1) + fib(n - 2) | n if n < 2 else fib(n - 1) + 1 | fib(7) | 13
gcd(a, b) | a if b == 0 else gcd(b, a % b) | a if b == 0 else b | gcd(12, 18) | 6
prime(n) | n > 1 and all(n % i for i in range(2, n)) | all(n % i for i in range(2, n)) | prime(1) | is:false
digits(n) | sum(int(c) for c in str(abs(n))) | sum(1 for c in str(abs(n))) | digits(-25) | 7
binary(n) | bin(n)[2:] | bin(n) | binary(5) | "101"
hexed(n) | format(n, "02x") | format(n, "x") | hexed(10) | "0a"
title(s) | s.title() | s.capitalize() | title("two words") | "Two Words"
trim(s, n) | s if len(s) <= n else s[:n - 1] + "…" | s[:n - 1] + "…" | trim("abc", 3) | "abc"
pad(s, n) | s.rjust(n, "0") | s.ljust(n, "0") | pad("7", 3) | "007"
words(s) | len(s.split()) | s.count(" ") + 1 | words(" a  b ") | 2
lines(s) | len(s.splitlines()) | s.count(chr(10)) | lines("a") | 1
extension(s) | s.rpartition(".")[2] if "." in s else "" | s.split(".")[1] if "." in s else "" | extension("a.tar.gz") | "gz"
domain(s) | s.rpartition("@")[2].lower() | s.rpartition("@")[2] | domain("a@B.org") | "b.org"
mask(s) | "*" * (len(s) - 2) + s[-2:] | "*" * len(s) | mask("1234") | "**34"
rotate(v, n) | v[n:] + v[:n] | v[:n] + v[n:] | rotate([1, 2, 3], 1) | [2, 3, 1]
window(v, n) | [tuple(v[i:i + n]) for i in range(len(v) - n + 1)] | [tuple(v[i:i + n]) for i in range(len(v) - n)] | window([1, 2, 3], 2) | [(1, 2), (2, 3)]
diff(v) | [b - a for a, b in zip(v, v[1:])] | [a - b for a, b in zip(v, v[1:])] | diff([1, 4]) | [3]
running(v) | [sum(v[:i + 1]) for i in range(len(v))] | [sum(v[:i]) for i in range(len(v))] | running([1, 2]) | [1, 3]
index(v, x) | v.index(x) if x in v else -1 | v.index(x) | index([1], 2) | -1
top(d) | max(d, key=d.get) | max(d) | top({"a": 2, "b": 1}) | "a"
by_size(v) | sorted(v, key=len) | sorted(v) | by_size(["bb", "c"]) | ["c", "bb"]
discount(p, d) | round(p * (1 - d / 100), 2) | round(p * d / 100, 2) | discount(50, 10) | close:45
interest(p, r, n) | p * (1 + r) ** n | p * (1 + r * n) | interest(100, 0.1, 2) | close:121
seconds(s) | sum(int(x) * 60 ** i for i, x in enumerate(reversed(s.split(":")))) | sum(int(x) * 60 for x in s.split(":")) | seconds("1:02") | 62
clock(n) | f"{n // 60:02d}:{n % 60:02d}" | f"{n // 60}:{n % 60}" | clock(65) | "01:05"
weekday(n) | ["mo", "tu", "we", "th", "fr", "sa", "su"][n % 7] | ["mo", "tu", "we", "th", "fr", "sa", "su"][n] | weekday(7) | "mo"
safe(v) | list(v) | v.sort() | safe((2, 1)) | [2, 1]
sign(n) | (n > 0) - (n < 0) | 1 if n >= 0 else -1 | sign(0) | 0
nan(n) | float("nan") if n < 0 else n ** 0.5 | abs(n) ** 0.5 | nan(-1) | is:nan
"""


class Program(NamedTuple):
    """A line of the table; `expected` reads what the call ``gives``."""

    signature: str
    right: str
    wrong: str
    call: str
    gives: str

    @property
    def name(self) -> str:
        return self.signature.partition("(")[0]

    def text(self, has_bug: bool) -> str:
        return f"def {self.signature}:\n    return {self.wrong if has_bug else self.right}\n"

    def item(self, number: int, **more: object) -> Record:
        return item(number, self.call, self.gives, **more)


def planted() -> list[Program]:
    return [Program(*(part.strip() for part in line.split(" | "))) for line in PLANTED.strip().splitlines()]


def expected(text: str) -> Record:
    """An expectation of a plan: ``is:none``, ``raises:KeyError``, ``close:1.5``, ``nothing_raised:``, or an expression."""
    kind, _, value = text.partition(":")
    match kind:
        case "is" | "raises":
            return {kind: value}
        case "close":
            return {"close": float(value), "within": 0.01}
        case "nothing_raised":
            return {"nothing_raised": True}
    return {"equals": text}


def item(number: int, call: str, gives: str, *setup: str, **more: object) -> Record:
    usual = {"id": f"P{number}", "why": f"case {number}", "source": "name", "setup": [*setup]}
    return {**usual, "call": call, "expect": expected(gives), **more}
