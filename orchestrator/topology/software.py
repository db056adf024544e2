"""What nodes run, as the file says it: a broker, an MQTT client, or any command."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Discriminator, Field, Tag, WithJsonSchema

from ..language.scalars import Argv, Base, Duration, Frequency, Name, Port, Positive, Qos, Size, text
from .frames import Frames


class Broker(Base):
    """An MQTT broker, started in the foreground with a configuration rendered for this node."""

    broker: Literal["mosquitto"] = Field(description="Which broker.")
    port: Port = Field(1883, description="TCP port it listens on, on all addresses of its node.")
    persistence: bool = Field(False, description="Keep sessions and queued messages across restarts.")
    max_inflight_messages: int = Field(
        20, ge=0, le=65535, description="Unacknowledged messages a client; 0: any."
    )
    max_queued_messages: int = Field(
        1000, ge=0, le=2**31 - 1, description="Messages queued for a client; 0: any."
    )
    allow_anonymous: bool = Field(True, description="Admit clients without a password.")
    nodelay: bool = Field(
        False, description="Switch off Nagle's algorithm on its sockets (its own default: on)."
    )
    sys_interval: Duration = Field(
        text("0 s"),
        description="Period of its own $SYS messages; 0 s: none, so that captures hold the load only.",
    )
    options: dict[str, str | int | bool] = Field(
        default_factory=dict, description="Further lines of its configuration, name: value."
    )
    ready_within: Duration = Field(text("10 s"), description="Deadline for listening on its port.")
    restart: Literal["never", "on-failure", "always"] = Field("never", description="When it ends by itself.")
    stop_signal: Literal["SIGTERM", "SIGINT", "SIGKILL", "SIGHUP"] = Field(
        "SIGTERM", description="Signal of `stop`."
    )


class Publish(Base):
    """What an MQTT client sends, open loop: by the clock, whether or not the last message has arrived."""

    topic: str = Field(
        min_length=1,
        description="May hold {node}, {group}, {index}, {next} and {previous} (both wrap around).",
    )
    qos: Qos = Field(0, description="0: at most once, 1: at least once, 2: exactly once.")
    payload: Literal["metering-xml"] = Field("metering-xml", description="What the payload is made of.")
    payload_size: Size = Field(text("717 B"), description="Exact length of the payload.")
    rate: Frequency = Field(description="Messages a second; see `rate_of`.")
    rate_of: Literal["group", "client"] = Field(
        "group",
        description="group: `rate` is the whole group's, each message from a client drawn by the seed; "
        "client: `rate` is each one's own.",
    )
    arrivals: Literal["periodic", "poisson"] = Field(
        "periodic", description="Spacing of the scheduled times."
    )
    inflight: Positive = Field(20, le=65535, description="Window of unacknowledged QoS 1 and 2 messages.")
    queue: int = Field(
        1000,
        ge=0,
        le=2**31 - 1,
        description="Messages that may wait behind a full window or a lost connection.",
    )
    settle: Duration = Field(
        text("1 s"),
        description="Nothing is scheduled until this long after its own and its subscribers' connect time.",
    )


class Subscription(Base):
    """One subscription of an MQTT client."""

    topic: str = Field(
        min_length=1, description="Topic filter; the placeholders of `publish.topic`, and + and #."
    )
    qos: Qos = Field(0, description="Highest quality of service at which messages are delivered.")


def _version(value: Any) -> Any:
    return str(value) if value == 5 and not isinstance(value, bool) else value


_VERSIONS = WithJsonSchema({"title": "version", "enum": ["3.1.1", "5", 5]})
Version = Annotated[Literal["3.1.1", "5"], BeforeValidator(_version), _VERSIONS]


class MqttOptions(Base):
    """One MQTT client, spoken by the node's agent, every message accounted for."""

    broker: Name = Field(description="Node that runs the broker.")
    port: Port | None = Field(
        None, description="The broker's port; by default that of the broker software there."
    )
    version: Version = Field("3.1.1", description="Of MQTT.")
    keepalive: Duration = Field(text("60 s"), description="MQTT keep alive interval, whole seconds.")
    clean_session: bool = Field(True, description="Start without the state of an earlier connection.")
    reconnect: Duration = Field(
        text("1 s"), description="Wait before a new attempt to connect; 0 s: never reconnect."
    )
    publish: Publish | None = Field(None, description="What it sends.")
    subscribe: list[Subscription] = Field(default_factory=list, description="What it receives.")


class Client(Base):
    """An MQTT client."""

    mqtt: MqttOptions = Field(description="The client.")


class Ready(Base):
    """How a command shows that it is ready; without a subject it is ready at once."""

    tcp: Port | None = Field(None, description="A TCP port it listens on.")
    log: str | None = Field(None, min_length=1, description="Text that a line of its output contains.")
    command: Argv | None = Field(None, description="A command that then ends with status 0.")
    within: Duration = Field(text("10 s"), description="Deadline; after it the run fails.")


class Command(Base):
    """Any program. Its command, environment and files are jinja2 templates; see *Topics and templates*."""

    command: Argv = Field(description="Program and arguments; plain text is given to `sh -c`.")
    role: Literal["broker", "client", "utility"] = Field("utility", description="How reports group it.")
    env: dict[str, str] = Field(default_factory=dict, description="Environment variables.")
    files: dict[str, str] = Field(
        default_factory=dict, description="Path: content; relative paths are below the node's own directory."
    )
    ready: Ready | None = Field(None, description="Readiness probe.")
    expect: Literal["running", "exited"] = Field(
        "running", description="Expected state at the end of the hold."
    )
    restart: Literal["never", "on-failure", "always"] = Field("never", description="When it ends by itself.")
    start: Literal["setup", "ramp", "hold"] = Field(
        "setup", description="Phase at whose start it is started."
    )
    stop_signal: Literal["SIGTERM", "SIGINT", "SIGKILL", "SIGHUP"] = Field(
        "SIGTERM", description="Signal of `stop`."
    )


FORMS = {"broker": Broker, "mqtt": Client, "command": Command, "frames": Frames}


def _form(value: Any) -> str | None:
    if isinstance(value, Base):
        return next((f"<{key}>" for key, form in FORMS.items() if isinstance(value, form)), None)
    keys = [key for key in FORMS if isinstance(value, dict) and key in value]
    return f"<{keys[0]}>" if len(keys) == 1 else None


# The tags stand in error locations; the angle brackets tell them from keys of the file.
Software = Annotated[
    Annotated[Broker, Tag("<broker>")]
    | Annotated[Client, Tag("<mqtt>")]
    | Annotated[Command, Tag("<command>")]
    | Annotated[Frames, Tag("<frames>")],
    Discriminator(
        _form,
        custom_error_type="rule",
        custom_error_message="software needs exactly one of broker, mqtt, command and frames",
        custom_error_context={
            "rule": "software has exactly one of the keys broker, mqtt, command and frames",
            "remedy": 'write for example "broker: mosquitto" or "command: [iperf3, -s]"',
        },
    ),
]
