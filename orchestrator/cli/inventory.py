"""Implements `vnet inventory`, which prints a running lab as a dynamic inventory for Ansible.

The command is also the inventory script `inventory/lab`.
"""

from __future__ import annotations

from typing import Any

import click

from orchestrator.cli import completing
from orchestrator.cli.control import payload
from orchestrator.cli.errors import USAGE, CliError
from orchestrator.cli.output import print_json
from orchestrator.cli.running import asked, connect, find

TEMPLATES = ("{{", "{%", "{#")


@click.command("inventory")
@click.argument("lab", required=False, envvar="VNET_LAB", shell_complete=completing.labs)
@click.option("--list", "_list", is_flag=True, help="Print the whole inventory, as without options.")
@click.option("--host", "node", metavar="NODE", help="The variables of one node only.")
def inventory_command(lab: str | None, _list: bool, node: str | None) -> None:
    """Print a running lab as an Ansible inventory (JSON): groups by role, group, kind and segment.

    Without LAB, VNET_LAB names it, or the only running lab is taken. `inventory/lab` is this command as an
    inventory script for Ansible.

    \b
    Example:  vnet inventory pair
              VNET_LAB=pair ansible-playbook -i inventory/lab playbooks/deploy.yml
    """
    lab = lab or _only()
    with connect(lab, looks=True) as control:
        status = payload(asked(control, "status"))
        nodes = payload(asked(control, "inspect"))["nodes"]
    found = inventory(lab, str(find(lab).state_dir), status, nodes)
    if node is None:
        print_json(found)
    elif node in nodes:
        print_json(found["_meta"]["hostvars"][node])
    else:
        raise CliError(f'lab {lab}: node "{node}": no such node; nodes: {", ".join(nodes)}')


def _only() -> str:
    """Returns the name of the running lab; CliError unless exactly one runs."""
    from orchestrator.lab.cleanup import running_labs

    running = running_labs()
    if len(running) == 1:
        return running[0]
    if not running:
        raise CliError("inventory: no lab runs here; `vnet up FILE` starts one")
    raise CliError(
        f"inventory: several labs run here: {', '.join(running)}; name one, or set VNET_LAB={running[0]}",
        USAGE,
    )


def inventory(lab: str, state_dir: str, status: dict[str, Any], nodes: dict[str, Any]) -> dict[str, Any]:
    """Makes Ansible's dynamic inventory from a lab's answers to `status` and `inspect` (its `nodes`)."""
    groups: dict[str, Any] = {}
    for name, node in nodes.items():
        for group in _groups(node):
            groups.setdefault(group, {"hosts": []})["hosts"].append(name)
    return {
        "_meta": {"hostvars": {name: words(hostvars(name, node)) for name, node in nodes.items()}},
        "all": {
            "children": ["ungrouped", *sorted(groups)],
            "vars": words(
                {
                    "ansible_connection": "vnet",
                    "ansible_pipelining": True,
                    "ansible_python_interpreter": "auto_silent",
                    "vnet_lab": lab,
                    "vnet_state_dir": state_dir,
                    "vnet_run_dir": status["run_dir"],
                    "vnet_kernel": status["kernel"].get("kind"),
                }
            ),
        },
        **groups,
    }


def words(value: Any) -> Any:
    """Returns the value, in which each text that Ansible would evaluate as a template is marked as unsafe, at
    every level of mappings and lists.
    """
    if isinstance(value, str):
        return {"__ansible_unsafe": value} if any(opening in value for opening in TEMPLATES) else value
    if isinstance(value, dict):
        return {key: words(one) for key, one in value.items()}
    return [words(one) for one in value] if isinstance(value, list) else value


def _groups(node: dict[str, Any]) -> list[str]:
    """Returns the names of a node's Ansible groups: `role_`, `group_`, `kind_` and `segment_` with the name,
    and `_` in place of `-`.
    """
    segments = [card["segment"] for card in node["interfaces"]]
    words = [f"group_{node['group']}", f"kind_{node['kind']}", *(f"segment_{name}" for name in segments)]
    return [word.replace("-", "_") for word in dict.fromkeys([*_roles(node), *words])]


def _roles(node: dict[str, Any]) -> list[str]:
    return [f"role_{role}" for role in node["roles"]]


def hostvars(name: str, node: dict[str, Any]) -> dict[str, Any]:
    """Returns the Ansible variables of the node `name` from its entry in the answer to `inspect`."""
    cards = node["interfaces"]
    second = {card["name"]: card["second"] for card in cards if card.get("second")}
    found = {
        "ansible_host": name,
        "vnet_node": name,
        "vnet_kind": node["kind"],
        "vnet_group": node["group"],
        "vnet_roles": node["roles"],
        "vnet_state": node["state"],
        "vnet_hostname": node["hostname"],
        "vnet_address": cards[0]["address"] if cards else None,
        "vnet_addresses": {card["name"]: card["address"] for card in cards},
        **({"vnet_second_addresses": second} if second else {}),
        "vnet_segments": {card["name"]: card["segment"] for card in cards},
        # programs that init starts have no HOME, so `~` would fail
        "ansible_remote_tmp": "/var/tmp/.ansible",
    }
    if directory := node.get("directory"):  # a light node has a directory of its own
        found |= {"vnet_directory": directory, "ansible_remote_tmp": f"{directory}/.ansible"}
    return found
