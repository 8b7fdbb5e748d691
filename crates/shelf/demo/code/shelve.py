"""Sorts shelfmarks the way they stand: by room, then by number, not by letter."""


def key(shelfmark: str) -> tuple:
    """B.4.2.17 stands after B.4.2.9."""
    room, *numbers = shelfmark.split(".")
    return (room, *(int(number) for number in numbers))


def shelve(marks: list[str]) -> list[str]:
    return sorted(marks, key=key)


if __name__ == "__main__":
    print("\n".join(shelve(["B.4.2.17", "B.4.2.9", "A.10.1.1", "A.2.1.1"])))
