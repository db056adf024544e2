"""Implements `vnet completion`, which prints the completion script for a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from orchestrator.cli.output import document


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def completion_command(shell: str) -> None:
    """Print the script that lets SHELL complete commands, options, labs, their nodes and links.

    \b
    Example:  vnet completion bash >> ~/.bashrc
              vnet completion zsh >> ~/.zshrc
              vnet completion fish > ~/.config/fish/completions/vnet.fish
    """
    from orchestrator.cli.main import vnet

    found = get_completion_class(shell)
    assert found is not None, "click knows the three shells"
    document(found(vnet, {}, "vnet", "_VNET_COMPLETE").source())
