"""Counts the steps through the code that a reader of `vnet run` follows: `make walk`, or `walk.py [DIRECTORY
OF ANOTHER CHECKOUT]`.

It runs `vnet run` under the kernel `fake` and watches the calls of the main thread. A *step* is a call from a
function of one module to a function of another one, counted once however often it happens, as a reader reads
it once. A step is a *return* if the module that it leads to was entered before and left again. Steps count
from the modules that order a run (command line, campaign, run, kernels); modules that parse, plan, reduce and
draw are entered, but not followed. The lab's own process is not watched.
"""

from __future__ import annotations

import os
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

ORDERS = ("orchestrator.cli", "orchestrator.campaign", "orchestrator.run", "orchestrator.kernel")
PRODUCT = ("orchestrator", "capture", "reports", "contract")
HERE = Path(__file__).parent.parent
Function = tuple[str, str]  # module and name


@dataclass
class Walk:
    """The steps of one run, in their order; `returns` counts those that lead back."""

    tree: Path
    steps: dict[tuple[Function, Function], bool] = field(default_factory=dict)  # step -> whether it returns
    _left: set[str] = field(default_factory=set)
    _importing: int = 0

    def watch(self, frame: FrameType, event: str, _argument: Any) -> None:
        """Records a step between modules; it is the profile function of the main thread."""
        if event not in ("call", "return") or (function := self._function(frame)) is None:
            return
        if function[1] == "<module>":
            self._importing += 1 if event == "call" else -1
        elif not self._importing:
            caller = self._caller(frame)
            if caller is not None and caller[0] != function[0]:
                self._crossed(caller, function, event)

    def _crossed(self, caller: Function, function: Function, event: str) -> None:
        if event == "return":
            self._left.add(function[0])
        elif caller[0].startswith(ORDERS):
            self.steps.setdefault((caller, function), function[0] in self._left)

    def _function(self, frame: FrameType) -> Function | None:
        """Returns the function of a frame; None outside the product's modules."""
        module = str(frame.f_globals.get("__name__", ""))
        ours = module.split(".")[0] in PRODUCT and frame.f_code.co_filename.startswith(str(self.tree))
        return (module, frame.f_code.co_qualname if sys.version_info >= (3, 11) else "") if ours else None

    def _caller(self, frame: FrameType) -> Function | None:
        before = frame.f_back
        while before is not None and (found := self._function(before)) is None:
            before = before.f_back
        return found if before is not None else None

    @property
    def returns(self) -> int:
        """The number of steps that lead back into a module that was entered before and left."""
        return sum(self.steps.values())

    def text(self) -> str:
        """Returns the counts of steps, returns and modules as one line."""
        modules = {to for _, (to, _) in self.steps}
        return (
            f"{len(self.steps)} steps between modules, {self.returns} of them returns; {len(modules)} modules"
        )


def walked(tree: Path) -> Walk:
    """Runs `vnet run` of the checkout `tree` in this process and returns its steps."""
    sys.path.insert(0, str(tree))
    from orchestrator.cli.main import vnet

    walk = Walk(tree)
    with tempfile.TemporaryDirectory(prefix="vnet-walk-") as directory:
        os.environ["VNET_STATE_DIR"] = f"{directory}/state"
        words = ["run", str(tree / "topologies/pair.yaml"), "-p", "hold=1s", "--kernel", "fake", "--out"]
        sys.setprofile(walk.watch)
        try:
            vnet.main([*words, f"{directory}/run"], standalone_mode=False)
        finally:
            sys.setprofile(None)
    return walk


def main(arguments: list[str]) -> int:
    """Prints the counts of the walk; with --steps also each step."""
    trees = [Path(word).resolve() for word in arguments if word != "--steps"]
    walk = walked(trees[0] if trees else HERE)
    if "--steps" in arguments:
        for (caller, function), back in walk.steps.items():
            print(f"{'<-' if back else '->'} {'.'.join(caller)}  {'.'.join(function)}")
    print(walk.text())
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
