"""Sends or receives IEC 61850 messages with libiec61850 (GPLv3, so in a process of its own) and prints a JSON
line for each.

Arguments: `take-sv`, `send-sv`, `take-goose` or `send-goose`, the interface, and the number of messages.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pyiec61850.pyiec61850 as iec
from pyiec61850.goose.publisher import GoosePublisher
from pyiec61850.goose.subscriber import GooseSubscriber
from pyiec61850.sv.subscriber import SVSubscriber

GROUP = [0x01, 0x0C, 0xCD, 0x04, 0x00, 0x01]
APPID, RATE = 0x4001, 400
CONTROL, EVENTS, EVENT_GROUP = "IED1/LLN0$GO$trip", 0x0001, [0x01, 0x0C, 0xCD, 0x01, 0x00, 0x01]


def say(**what: Any) -> None:
    print(json.dumps(what), flush=True)


def parameters(group: list[int], appid: int) -> Any:
    made = iec.CommParameters()
    made.appId, made.vlanId, made.vlanPriority = appid, 5, 6
    iec.CommParameters_setDstAddress(made, *group)
    return made


def take(start: Callable[[Callable[[Any], None]], object], count: int) -> None:
    """Prints the received messages once there are `count`, or once none has come for half a second after the
    first (20 s before it).

    Its threads end with the process, because stopping them may hang.
    """
    heard: list[Any] = []
    kept = start(heard.append)
    say(ready=kept is not None)
    seen, quiet_at = 0, time.monotonic() + 20
    while len(heard) < count and time.monotonic() < quiet_at:
        time.sleep(0.01)
        if len(heard) > seen:
            seen, quiet_at = len(heard), time.monotonic() + 0.5
    for one in heard:
        say(**one)
    os._exit(0)


def take_samples(interface: str, hear: Callable[[Any], None]) -> object:
    subscriber = SVSubscriber(interface)
    subscriber.set_app_id(APPID)
    subscriber.set_listener(
        lambda m: hear({"sv_id": m.sv_id, "smp_cnt": m.smp_cnt, "conf_rev": m.conf_rev, "values": m.values})
    )
    subscriber.start()
    return subscriber


def send_samples(interface: str, count: int) -> None:
    publisher = iec.SVPublisher_createEx(parameters(GROUP, APPID), interface, True)
    asdu = iec.SVPublisher_addASDU(publisher, "MU01", None, 1)
    places = [(iec.SVPublisher_ASDU_addINT32(asdu), iec.SVPublisher_ASDU_addQuality(asdu)) for _ in range(8)]
    iec.SVPublisher_ASDU_setSmpCntWrap(asdu, RATE)
    iec.SVPublisher_setupComplete(publisher)
    iec.SVPublisher_ASDU_setSmpSynch(asdu, 2)  # before setupComplete it would be lost
    for number in range(count):
        for value, quality in places:
            iec.SVPublisher_ASDU_setINT32(asdu, value, number)
            iec.SVPublisher_ASDU_setQuality(asdu, quality, 0)
        iec.SVPublisher_publish(publisher)
        iec.SVPublisher_ASDU_increaseSmpCnt(asdu)
        time.sleep(1 / RATE)
    iec.SVPublisher_destroy(publisher)
    say(sent=count)


def take_events(interface: str, hear: Callable[[Any], None]) -> object:
    subscriber = GooseSubscriber(interface, CONTROL)
    subscriber.set_app_id(EVENTS)
    names = (
        *("st_num", "sq_num", "conf_rev", "time_allowed_to_live", "go_id", "data_set", "values", "is_valid"),
        "needs_commissioning",
    )
    subscriber.set_listener(lambda m: hear({name: getattr(m, name) for name in names}))
    subscriber.start()
    return subscriber


def send_events(interface: str, count: int) -> None:
    """Sends `count` GOOSE events, each three times."""
    publisher = GoosePublisher(interface)
    publisher.set_go_cb_ref(CONTROL)
    publisher.set_app_id(EVENTS)
    publisher.set_dst_mac(bytes(EVENT_GROUP))
    publisher.set_conf_rev(1)
    publisher.set_time_allowed_to_live(300)
    publisher.start()
    for number in range(count):
        publisher.increase_st_num()
        for _ in range(3):
            publisher.publish([number % 2 == 0, 0])
            time.sleep(0.002)
    say(sent=count)
    os._exit(0)


what, interface, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
if what.startswith("take"):
    take(partial(take_samples if what == "take-sv" else take_events, interface), count)
elif what == "send-sv":
    send_samples(interface, count)
else:
    send_events(interface, count)
