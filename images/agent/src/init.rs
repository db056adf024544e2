//! Implements process 1 of the built-in VM image: sets up mounts, modules and device names, then starts
//! the agent and the guest agent. The VM ends with the agent.

mod console;
mod devices;
mod modules;
mod usr;

use crate::os::{self, Res};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

/// The name under which the kernel starts process 1 of an initramfs.
pub const NAME: &str = "/init";
const AGENT: &str = "/vnet/agent";
const AGENT_PORT: &str = "/dev/virtio-ports/vnet.agent";
const GUEST_AGENT: &str = "/usr/sbin/qemu-ga";
const GUEST_AGENT_PORT: &str = "/dev/virtio-ports/org.qemu.guest_agent.0";
const PORT_DEADLINE: Duration = Duration::from_secs(20);
const MOUNTS: [(&str, &str); 6] = [
    ("proc", "/proc"),
    ("sysfs", "/sys"),
    ("devtmpfs", "/dev"),
    ("devpts", "/dev/pts"),
    ("tmpfs", "/dev/shm"),
    ("cgroup2", "/sys/fs/cgroup"),
];
/// The signals that busybox's commands send to process 1, each with the way in which the VM ends: halt, power
/// off, reboot, control-alt-delete.
const ENDINGS: [(i32, i32); 4] = [
    (libc::SIGUSR1, libc::RB_POWER_OFF),
    (libc::SIGUSR2, libc::RB_POWER_OFF),
    (libc::SIGTERM, libc::RB_AUTOBOOT),
    (libc::SIGINT, libc::RB_AUTOBOOT),
];

/// Sets up the VM, runs the agent, and switches the VM off when the agent ends; a signal of ENDINGS switches
/// it off or reboots it. Returns only with an error: if this is not process 1, or if that fails.
pub fn run() -> ExitCode {
    if std::process::id() != 1 {
        eprintln!("vnet-agent: init: not process 1; only a kernel starts it");
        return ExitCode::from(2);
    }
    let how = start().unwrap_or_else(|text| {
        log(&text);
        libc::RB_POWER_OFF
    });
    // SAFETY: the call takes plain numbers. The root file system is in memory, so there is nothing to sync.
    unsafe { libc::reboot(how) };
    log("the machine cannot be switched off");
    ExitCode::FAILURE
}

/// Writes a line to the console; the driver's error report contains the console's last lines.
fn log(text: &str) {
    println!("vnet-init: {text}");
}

fn start() -> Res<i32> {
    for (kind, target) in MOUNTS {
        mount(kind, target);
    }
    let signals = os::signal_fd(&[
        libc::SIGCHLD,
        libc::SIGUSR1,
        libc::SIGUSR2,
        libc::SIGTERM,
        libc::SIGINT,
    ])
    .map_err(|e| format!("signals: {e}"))?;
    if let Ok(name) = std::fs::read_to_string("/etc/hostname") {
        os::set_hostname(name.trim()).map_err(|e| format!("/etc/hostname: {e}"))?;
    }
    modules::load_listed("/etc/vnet/modules")?;
    usr::mount()?;
    devices::wait_for_port(AGENT_PORT, Instant::now() + PORT_DEADLINE)?;
    let agent = spawn(AGENT, &["launch", "--port", AGENT_PORT])?;
    modules::load_for_pci();
    let guest_agent = start_guest_agent();
    watch(&signals, agent, guest_agent, console::Console::open())
}

/// Mounts a file system. If the kernel lacks it, logs that and continues; the agent reports what is missing.
fn mount(kind: &str, target: &str) {
    let outcome = std::fs::create_dir_all(target).and_then(|()| os::mount(kind, target, kind, 0));
    if let Err(e) = outcome {
        log(&format!("{target}: {kind} cannot be mounted: {e}"));
    }
}

fn spawn(program: &str, args: &[&str]) -> Res<i32> {
    let mut command = Command::new(program);
    command
        .args(args)
        .env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin")
        .env("HOME", "/root");
    crate::node::spawn(&command).map_err(|e| format!("{program}: {e}; the image is broken"))
}

/// Starts the guest agent if the VM has its port, and returns its pid; None without the port or after an
/// error, which it logs.
fn start_guest_agent() -> Option<i32> {
    devices::name_ports();
    if !std::path::Path::new(GUEST_AGENT_PORT).exists() {
        return None;
    }
    let args = ["--method", "virtio-serial", "--path", GUEST_AGENT_PORT];
    spawn(GUEST_AGENT, &args).map_err(|text| log(&text)).ok()
}

/// Reaps child processes, and starts a shell when somebody presses Enter on the console, until the agent ends
/// or a signal of ENDINGS arrives, which ends the agent. Returns the argument of reboot(2) that ends the VM.
fn watch(
    signals: &std::os::fd::OwnedFd,
    agent: i32,
    guest_agent: Option<i32>,
    mut console: Option<console::Console>,
) -> Res<i32> {
    use std::os::fd::AsRawFd;
    loop {
        let typed = console.as_ref().map_or(-1, console::Console::descriptor);
        let mut fds = [signals.as_raw_fd(), typed].map(|fd| libc::pollfd {
            fd,
            events: libc::POLLIN,
            revents: 0,
        });
        os::poll(&mut fds, -1).map_err(|e| format!("poll: {e}"))?;
        if fds[1].revents != 0
            && let Some(Err(text)) = console.as_mut().map(console::Console::typed)
        {
            log(&text);
            console = None;
        }
        for signal in os::read_signals(signals.as_raw_fd()) {
            if let Some((_, how)) = ENDINGS.iter().find(|(s, _)| *s == signal) {
                end_agent(agent);
                return Ok(*how);
            }
        }
        while let Some((pid, status)) = os::reap() {
            if pid == agent {
                log(&format!("vnet-agent ended with status {status}"));
                return Ok(libc::RB_POWER_OFF);
            }
            if let Some(console) = &mut console {
                console.ended(pid);
            }
            if Some(pid) == guest_agent {
                log(&format!(
                    "qemu-ga ended with status {status}; its commands fail from now on"
                ));
            }
        }
    }
}

/// Sends SIGTERM to the agent and waits at most two seconds, in which it ends its programs.
fn end_agent(agent: i32) {
    let deadline = Instant::now() + Duration::from_secs(2);
    if os::kill(agent, libc::SIGTERM).is_err() {
        return;
    }
    while Instant::now() < deadline {
        while let Some((pid, _)) = os::reap() {
            if pid == agent {
                return;
            }
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}
