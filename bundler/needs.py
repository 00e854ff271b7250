"""Which libraries a payload opens by name that are not part of it.

The names come from the files themselves; what each one means is a table in
`recipes/run_time_needs.json`. A name that the table does not know is passed on as
unknown, never dropped.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase

from bundler.lock import LockedFile, Need, NeedKind
from bundler.names import Version

TABLE = "run_time_needs.json"


@dataclass(frozen=True)
class NeedRule:
    """One line of the table.

    Args:
        pattern: a lower-case shell pattern of file names.
        kind: a `NeedKind`, or `system` or `internal` for names that are not listed.
        provider: where the library usually comes from.
        reason: what goes wrong without it.
        versions: cuDNN versions it holds for, first included, last excluded.
    """

    pattern: str
    kind: str
    provider: str
    reason: str
    versions: tuple[Version, Version] | None

    def applies(self, name: str, version: Version) -> bool:
        """Say whether the rule speaks of this name in this version."""
        if self.versions is not None and not self.versions[0] <= version < self.versions[1]:
            return False
        return fnmatchcase(name.lower(), self.pattern)


def load_rules(data: bytes) -> tuple[NeedRule, ...]:
    """Read the table.

    Args:
        data: the bytes of `recipes/run_time_needs.json`.
    """
    return tuple(
        NeedRule(
            rule["pattern"],
            rule["kind"],
            rule["provider"],
            rule["reason"],
            _version_range(rule.get("versions")),
        )
        for rule in json.loads(data)["rules"]
    )


def _version_range(bounds: list[str] | None) -> tuple[Version, Version] | None:
    return (Version.parse(bounds[0]), Version.parse(bounds[1])) if bounds else None


def needs_of(
    payload: Iterable[LockedFile], version: Version, rules: Iterable[NeedRule]
) -> tuple[Need, ...]:
    """List the run-time needs of a payload, sorted by name.

    Args:
        payload: the libraries; names among them are no needs.
        version: of the release.
        rules: the table.
    """
    libraries = sorted(payload, key=lambda file: file.name)
    own = {file.name.lower() for file in libraries}
    users: dict[str, set[str]] = {}
    spelling: dict[str, str] = {}
    for file in libraries:
        facts = file.library
        for name in (*facts.imports, *facts.run_time_names) if facts else ():
            if name.lower() not in own:
                users.setdefault(name.lower(), set()).add(file.name)
                spelling.setdefault(name.lower(), name)
    table = tuple(rules)
    found = (_need(spelling[key], users[key], version, table) for key in sorted(users))
    return tuple(need for need in found if need is not None)


def _need(name: str, users: set[str], version: Version, rules: tuple[NeedRule, ...]) -> Need | None:
    rule = next((rule for rule in rules if rule.applies(name, version)), None)
    needed_by = tuple(sorted(users))
    if rule is None:
        reason = "this tool does not know what it is for"
        return Need(name, needed_by, NeedKind.UNKNOWN, reason, "")
    if rule.kind in {"system", "internal"}:
        return None
    return Need(name, needed_by, NeedKind(rule.kind), rule.reason, rule.provider)


def need_warnings(needs: Iterable[Need]) -> list[str]:
    """Say which names nothing is known about, so that somebody looks."""
    return [
        f"{need.name} is opened by {', '.join(need.needed_by)}: {need.reason}"
        for need in needs
        if need.kind is NeedKind.UNKNOWN
    ]
