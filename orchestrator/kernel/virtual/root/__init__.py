"""The closed root of a lab in virtual time: the files that the lab sees, collected before the boot.

`closed.py` does all steps: finds what a plan names (`wanted.py`), the packages that these files come from
(`dpkg.py`, `closure.py`), the tree of all their files (`tree.py`), and writes the archives that the kernel
unpacks. docs/virtual-time.md says what a lab sees and what it does not.
"""
