//! Makes a link to each virtio-serial port under the port's name, as udev does.

use super::log;
use crate::os::Res;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

const PORTS: &str = "/sys/class/virtio-ports";
const NAMES: &str = "/dev/virtio-ports";

/// Makes a link under /dev/virtio-ports to every port that has a name and is not linked yet; logs errors.
/// Ports appear one by one while the kernel sets the device up, so `wait_for_port` calls this repeatedly.
pub fn name_ports() {
    let Ok(ports) = std::fs::read_dir(PORTS) else {
        return; // the device does not exist yet
    };
    for port in ports.flatten() {
        let name = std::fs::read_to_string(port.path().join("name")).unwrap_or_default();
        let link = Path::new(NAMES).join(name.trim());
        if name.trim().is_empty() || link.exists() {
            continue;
        }
        let device = Path::new("/dev").join(port.file_name());
        let made = std::fs::create_dir_all(NAMES).and_then(|()| symlink(device, &link));
        if let Err(e) = made {
            log(&format!("{}: {e}", link.display()));
        }
    }
}

pub fn wait_for_port(path: &str, deadline: Instant) -> Res<()> {
    loop {
        name_ports();
        if Path::new(path).exists() {
            return Ok(());
        }
        if Instant::now() > deadline {
            return Err(format!(
                "{path}: not there; the machine needs a virtio-serial port of this name"
            ));
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}
