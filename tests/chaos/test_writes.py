"""Tests that strace's lines are read as steps."""

from pathlib import Path

from writes import Recorder, Step, unsynced


def test_a_reader_that_seeks_does_not_move_the_writer() -> None:
    recorder = Recorder(Path("/top"))

    def hexadecimal(text: bytes) -> str:
        return '"' + "".join(f"\\x{byte:02x}" for byte in text) + '"'

    recorder.take("openat", 'AT_FDCWD</>, "", O_WRONLY|O_CREAT|O_TRUNC', 5, "/top/log")
    recorder.take("write", f"1</top/log>, {hexadecimal(b'one')}, 3", 3, None)
    recorder.take("openat", 'AT_FDCWD</>, "", O_RDONLY', 7, "/top/log")
    recorder.take("lseek", "7</top/log>, 0, SEEK_SET", 0, None)
    recorder.take("write", f"1</top/log>, {hexadecimal(b'two')}, 3", 3, None)
    assert recorder.steps == [
        Step("create", "log"),
        Step("write", "log", b"one", 0),
        Step("write", "log", b"two", 3),
    ]


def test_contents_are_as_late_as_their_fsync() -> None:
    first, second, late = Step("write", "a", b"1"), Step("write", "a", b"2", 1), Step("write", "b", b"3")
    renamed = Step("rename", "a", target="c")
    steps = [Step("create", "a"), first, Step("create", "b"), renamed, late, Step("sync", "c"), second]
    moved = Step("write", "c", b"1")
    assert unsynced(steps) == [steps[0], steps[2], renamed, moved, Step("sync", "c")]
