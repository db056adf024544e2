"""The closed root of a lab in virtual time: the files that the lab sees, laid out before the boot.

`closed.py` is the way through: what a plan names (`wanted.py`), the packages that these files come from
(`dpkg.py`, `closure.py`), the tree of all their files (`tree.py`), and the archives that the kernel unpacks
(`archive.py`). docs/virtual-time.md says what a lab sees and what it does not.
"""
